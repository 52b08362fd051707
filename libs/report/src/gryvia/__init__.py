"""Report metrics from training code, and read the hyperparameters of a trial.

    import gryvia

    rate = gryvia.parameters()["learning_rate"]
    for step in range(epochs):
        gryvia.report(step=step, loss=loss, val_accuracy=accuracy)

One dependency-free import that works everywhere: under Gryvia the job service reads the printed lines, elsewhere they are only lines.
Nothing here ever raises into training code because of a value it is given.
"""

from __future__ import annotations

from gryvia.parameters import parameters
from gryvia.reporting import report

__all__ = ["parameters", "report"]
