"""Every command in the README and the docs is run as it stands, in a folder like the clone, against one platform.

A command is a line of a code block that begins with a program we know. `make` lines are only resolved: the targets run elsewhere.
A new command is run by being written; what cannot be run here is listed with the reason.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    )
    if page.is_file()
)
PROGRAMS = re.compile(
    r"(make|kubectl|gryvia|\.venv/bin/\w+|python|pip|pytest|helm|docker|export|rm|tail|cat|\w+=\S+ \w+) .+"
)
ELSEWHERE = {
    r"kubectl (?!.*--kubeconfig)": "for the reader's own cluster: on the embedded one a kubectl line names its kubeconfig",
    r"pytest ": "tests are not run by tests",
    r"python -m gryvia_(bridge|jobs|tuner|workflow|registry)$": "for a real cluster; tests/e2e runs the services as processes",
    r"pip install ": "installs from the network",
    r"(export GRYVIA_|python subscriber.py|GRYVIA_NATS_URL=)": "the subscriber has a test of its own, tests/examples",
    r"python -m gryvia_devcluster": "tests/devcluster runs it as a process",
    r"(helm|docker) ": "for a real cluster",
    r"python -m tools.realcluster": "needs the programs of make kube-tools; tests/conformance and tests/kube start it",
    r"python -m bench\.": "takes many minutes; tests/cli runs bench by its entry",
    r"GRYVIA_RECORD=": "rewrites the recordings of a real API server, for minutes",
}
LASTING = re.compile(r" -w\b|gryvia events (?!.*--limit)")
"""Goes on until it is ended: it has worked once it has said something."""


@dataclass(frozen=True, slots=True)
class Command:
    """`line` as it stands, without its remark."""

    page: str
    line: str


def commands(page: Path) -> list[Command]:
    """The command lines of the page's code blocks, fenced or indented."""
    found, fenced = [], False
    for text in page.read_text().splitlines():
        if text.startswith("```"):
            fenced = not fenced
            continue
        if not fenced and not text.startswith("    "):
            continue
        line = re.sub(r"\s{2,}#.*$", "", text.strip().removeprefix("$ "))
        if PROGRAMS.fullmatch(line) and "──" not in line and not re.match(r"\w+ {2,}", line):
            found.append(Command(str(page.relative_to(ROOT)), line))
    return found


COMMANDS = [command for page in PAGES for command in commands(page)]


def elsewhere(line: str) -> bool:
    return any(re.match(pattern, line) for pattern in ELSEWHERE)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder that looks like the clone, with a platform running in it, and the environment of its user."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("examples", "crds", "Makefile", "tools"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.prefix))
    programs = sysconfig.get_path("scripts")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1"}
    for name in ("KUBECONFIG", "GRYVIA_NATS_URL", "GRYVIA_NAMESPACE"):
        environment.pop(name, None)
    with subprocess.Popen(["gryvia", "up"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as platform:
        assert platform.stdout is not None
        try:
            assert any("Ctrl-C stops everything" in line for line in platform.stdout)
            study = "kubectl --kubeconfig .gryvia/kubeconfig apply -f examples/ml-workflow/hyperparameter-tuning.yaml"
            subprocess.run(study, shell=True, cwd=folder, env=environment, check=True, capture_output=True)
            yield folder, environment
        finally:
            platform.send_signal(signal.SIGTERM)
            platform.stdout.read()
            assert platform.wait() == 0


def test_there_are_commands_to_run_and_no_exception_without_use() -> None:
    assert len([one for one in COMMANDS if not elsewhere(one.line)]) > 25
    used = [pattern for pattern in ELSEWHERE if any(re.match(pattern, one.line) for one in COMMANDS)]
    assert {"README.md", "docs/cli.md", "docs/embedded.md"} <= {one.page for one in COMMANDS}
    assert used


@pytest.mark.parametrize(
    "command",
    [one for one in dict.fromkeys(COMMANDS) if not elsewhere(one.line)],
    ids=lambda command: f"{command.page}: {command.line}",
)
def test_the_command_works_as_it_stands(clone: tuple[Path, dict[str, str]], command: Command) -> None:
    folder, environment = clone
    line = re.sub(r"^((?:\w+=\S+ )*)make ", r"\1make -n ", command.line)
    if not LASTING.search(line):
        result = subprocess.run(
            line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=90, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "\x1b" not in result.stdout
        return
    with subprocess.Popen(f"exec {line}", shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE) as lasting:
        assert lasting.stdout is not None
        try:
            assert lasting.stdout.readline().strip()
            assert lasting.poll() is None
        finally:
            lasting.terminate()
