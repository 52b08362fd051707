"""The simulation's own modules are imported by name; test modules are imported by path. Logs of thousands of lives are kept
to what is an error."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import structlog

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def only_errors() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor | None]:
    """For many plans only: a worker takes a second to start."""
    if not os.environ.get("GRYVIA_FAULTS"):
        yield None
        return
    from workers import workers

    with workers() as pool:
        yield pool
