"""`python -m gryvia_jobs`: the job service as a process of its own."""

from __future__ import annotations

from gryvia_common.runtime.process import main
from gryvia_jobs.controller import run
from gryvia_jobs.settings import JobsSettings

if __name__ == "__main__":
    main("jobs", JobsSettings, run)
