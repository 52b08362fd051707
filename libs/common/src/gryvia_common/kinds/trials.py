"""The trials of a study, wherever they are kept: `status.trials` of the tuner and its archive.

Status holds a bounded window (running, best, newest), the archive all that left it: ConfigMaps `<tuner>-trials-<k>`, owned
by the tuner, k = number // block. A trial is in the archive before it leaves the window, so the union of the two is the
whole history after any crash; the status wins where both have a trial. Service and CLI read both through `history`.

A block is compact JSON: parameter names once, then one row a trial (about 100 bytes; 500 rows stay far below the 1 MB that
a ConfigMap may have). A row: number, parameter values, phase, value, start, end, message, [[step, value], ...]; trailing empty
cells are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from gryvia_common.kinds.autotuner import IntermediateMetric, Trial, TrialPhase
from gryvia_common.kube.children import NAME_LIMIT, child_name
from gryvia_common.kube.objects import Json, labels_of, metadata
from gryvia_common.kube.resources import GROUP

TUNER_LABEL = f"{GROUP}/tuner"
ARCHIVE_KEY = "trials.json"
LONGEST_MESSAGE = 240
"""Messages stay in the history of 20,000 trials."""
LOST = "lost to the infrastructure"
"""How the message of a trial begins that does not count: its job failed by no fault of its own."""

_NUMBER = re.compile(r"-trial-(\d{1,9})$")
_LONGEST_SUFFIX = len("-trial-123456789")


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial as code wants it. `rungs` are the intermediate metrics, `started` and `ended` RFC 3339 or empty."""

    number: int
    parameters: Mapping[str, str]
    phase: TrialPhase
    value: float | None = None
    started: str = ""
    ended: str = ""
    message: str = ""
    rungs: tuple[tuple[int, float], ...] = ()

    @property
    def active(self) -> bool:
        return self.phase in ("Pending", "Running")

    @property
    def result(self) -> float | None:
        """The value, if it counts: that of a trial that succeeded."""
        return self.value if self.phase == "Succeeded" else None

    @property
    def lost(self) -> bool:
        """Failed by no fault of its own: it does not use up the budget, and its point is run again."""
        return self.phase == "Failed" and self.message.startswith(LOST)

    @property
    def abandoned(self) -> bool:
        """Its job must not run on: it was stopped, or lost and its point is run again."""
        return self.phase == "Stopped" or self.lost

    def ended_as(self, phase: TrialPhase, message: str, at: str) -> TrialRecord:
        """With the message shortened; the time of an end that is known already stays."""
        if len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 1] + "…"
        return replace(self, phase=phase, message=message, ended=self.ended or at)


def trial_name(tuner: str, number: int) -> str:
    """`<tuner>-trial-<n>`. A tuner name too long for that is shortened with a hash, never the number: it is read back."""
    room = NAME_LIMIT - _LONGEST_SUFFIX
    if len(tuner) > room:
        digest = child_name(tuner + "." * NAME_LIMIT)[-10:]
        tuner = f"{tuner[: room - 11].rstrip('-.')}-{digest}"
    return f"{tuner}-trial-{number}"


def trial_number(name: str) -> int | None:
    """None for the name of something else."""
    match = _NUMBER.search(name)
    return int(match[1]) if match else None


def tuner_label(tuner: str) -> str:
    """The value of the label gryvia.io/tuner, which has 63 characters at most."""
    return child_name(tuner)


def archive_name(tuner: str, block: int) -> str:
    return child_name(tuner, "trials", str(block))


def to_trial(tuner: str, record: TrialRecord) -> Trial:
    """As it stands in the status."""
    name = trial_name(tuner, record.number)
    return Trial(
        name=name,
        job_name=name,
        parameters=dict(record.parameters),
        phase=record.phase,
        metric_value=record.value,
        intermediate_metrics=[IntermediateMetric(step=step, value=value) for step, value in record.rungs] or None,
        start_time=record.started or None,
        completion_time=record.ended or None,
        message=record.message or None,
    )


def to_record(trial: Trial) -> TrialRecord | None:
    """None for an entry that is no trial of ours."""
    number = trial_number(trial.name)
    if number is None:
        return None
    return TrialRecord(
        number=number,
        parameters=trial.parameters,
        phase=trial.phase,
        value=trial.metric_value,
        started=trial.start_time or "",
        ended=trial.completion_time or "",
        message=trial.message or "",
        rungs=tuple((metric.step, metric.value) for metric in trial.intermediate_metrics or ()),
    )


def to_records(trials: Iterable[Trial]) -> dict[int, TrialRecord]:
    """By number, without the entries that are no trials of ours."""
    return {record.number: record for trial in trials if (record := to_record(trial)) is not None}


def encode_block(records: Iterable[TrialRecord]) -> str:
    """The rows are in order of their numbers, so that equal blocks are equal text."""
    ordered = sorted(records, key=lambda record: record.number)
    names = sorted({name for record in ordered for name in record.parameters})
    rows = [_row(record, names) for record in ordered]
    return orjson.dumps({"version": 1, "parameters": names, "trials": rows}).decode()


def decode_block(text: str) -> tuple[TrialRecord, ...]:
    """ValueError for what is no block of a known version."""
    block = orjson.loads(text)
    if not isinstance(block, dict) or block.get("version") != 1:
        raise ValueError("not an archive of trials, or of a newer version")
    names = block["parameters"]
    return tuple(_record(row, names) for row in block["trials"])


def read_block(text: str) -> tuple[TrialRecord, ...]:
    """A block that cannot be read counts as empty: the service adopts its trials again from their jobs and writes it anew."""
    try:
        return decode_block(text)
    except (ValueError, LookupError, TypeError):
        return ()


ReadBlock = Callable[[str], tuple[TrialRecord, ...]]


def archived(config_maps: Iterable[Json], tuner: str, read: ReadBlock = read_block) -> dict[int, TrialRecord]:
    """Every trial in those of the ConfigMaps that are the tuner's archive, by number."""
    texts = (archive_text(config_map, tuner) for config_map in config_maps)
    return {record.number: record for text in texts if text is not None for record in read(text)}


def archive_text(config_map: Json, tuner: str) -> str | None:
    """The block in this ConfigMap; None when it is not part of the tuner's archive."""
    if labels_of(config_map).get(TUNER_LABEL) != tuner_label(tuner):
        return None
    text = (config_map.get("data") or {}).get(ARCHIVE_KEY)
    return text if isinstance(text, str) else None


def records_of(tuner: Json, config_maps: Iterable[Json], read: ReadBlock = read_block) -> list[TrialRecord]:
    """Every trial of the study in order of their numbers, from the tuner as the API has it and the ConfigMaps of its
    namespace (others among them do no harm)."""
    trials = (Trial.model_validate(raw) for raw in (tuner.get("status") or {}).get("trials") or ())
    known = archived(config_maps, metadata(tuner)["name"], read) | to_records(trials)
    return [known[number] for number in sorted(known)]


def history(tuner: Json, config_maps: Iterable[Json]) -> list[Trial]:
    """As `records_of`, in the form that the status has."""
    return [to_trial(metadata(tuner)["name"], record) for record in records_of(tuner, config_maps)]


def _row(record: TrialRecord, names: list[str]) -> list[Any]:
    row = [
        record.number,
        [record.parameters.get(name) for name in names],
        record.phase,
        record.value,
        record.started,
        record.ended,
        record.message,
        [list(rung) for rung in record.rungs],
    ]
    while row[-1] in (None, "", []):
        row.pop()
    return row


def _record(row: list[Any], names: list[str]) -> TrialRecord:
    number, values, phase, value, started, ended, message, rungs = (*row, *_EMPTY_ROW[len(row) :])
    return TrialRecord(
        number=number,
        parameters={name: text for name, text in zip(names, values, strict=True) if text is not None},
        phase=phase,
        value=value,
        started=started,
        ended=ended,
        message=message,
        rungs=tuple((step, at) for step, at in rungs),
    )


_EMPTY_ROW: tuple[Any, ...] = (0, [], "Failed", None, "", "", "", ())
