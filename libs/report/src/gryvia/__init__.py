"""Report metrics from training code, read the hyperparameters of a trial, hand results on to later steps.

    import gryvia

    rate = gryvia.parameters()["learning_rate"]
    for step in range(epochs):
        gryvia.report(step=step, loss=loss, val_accuracy=accuracy)
    gryvia.outputs(val_accuracy=accuracy, model="/models/3")

One dependency-free import that works everywhere: under Gryvia the services read what is said here, elsewhere it is only lines.
`report` never raises into training code because of a value it is given; `outputs` does, because a later step relies on it.
"""

from __future__ import annotations

from gryvia.parameters import parameters
from gryvia.reporting import report
from gryvia.results import outputs

__all__ = ["outputs", "parameters", "report"]
