"""What a schedule does about times that passed while nobody looked, while a run went on, while it was suspended, or edited."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_common.kinds.conditions import parse_timestamp, timestamp
from gryvia_common.kinds.workflow import GryviaWorkflowSpec, GryviaWorkflowStatus
from gryvia_pipelines.cron import parse_cron, parse_zone
from gryvia_pipelines.schedule import Due, due, problems

T0 = datetime(2026, 5, 4, 0, 0, 30, tzinfo=UTC)
FIVE = timedelta(minutes=5)
SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-05-{text}").replace(tzinfo=UTC)


def spec_of(schedule: str = "*/5 * * * *", **fields: object) -> GryviaWorkflowSpec:
    return GryviaWorkflowSpec.model_validate({"steps": [], "schedule": schedule, **fields})


@dataclass
class Life:
    """A workflow as the engine keeps it: a pass asks `due`, writes what it says, and begins the run it names."""

    spec: GryviaWorkflowSpec
    created: datetime = T0
    now: datetime = T0
    status: GryviaWorkflowStatus = field(default_factory=GryviaWorkflowStatus)
    runs: list[tuple[datetime, datetime]] = field(default_factory=list)
    """Scheduled time, and when it began."""
    generation: int = 1

    @property
    def running(self) -> bool:
        return self.status.phase == "Running"

    def look(self) -> Due:
        """A pass: the status is all that is remembered from one to the next."""
        edited = (self.status.observed_generation or 0) != self.generation
        said = due(self.spec, self.status, self.created, self.now, running=self.running, edited=edited)
        changed: dict[str, object] = {
            **said.fields(),
            "observed_generation": self.generation,
            "phase": "Running" if self.running else "Scheduled",
        }
        if said.start is not None:
            assert not self.running, "a second run at once"
            self.runs.append((said.start, self.now))
            changed |= {
                "phase": "Running",
                "start_time": timestamp(self.now),
                "completion_time": None,
                "last_schedule_time": timestamp(said.start),
            }
        self.status = self.status.model_copy(update=changed)
        return said

    def finish(self) -> None:
        """The run ends, and the same pass looks for the next."""
        assert self.running
        self.status = self.status.model_copy(update={"phase": "Scheduled", "completion_time": timestamp(self.now)})

    def edit(self, **fields: object) -> None:
        self.spec = self.spec.model_copy(update=fields)
        self.generation += 1

    def run_at_once(self) -> None:
        """Passes until nothing starts, with runs that take no time."""
        self.look()
        while self.running:
            self.finish()
            self.look()

    @property
    def scheduled(self) -> list[str]:
        return [f"{scheduled:%d %H:%M}" for scheduled, _ in self.runs]

    @property
    def missed(self) -> int:
        return self.status.missed_runs or 0


def started(spec: GryviaWorkflowSpec) -> Life:
    """One pass after creation."""
    life = Life(spec)
    life.look()
    return life


def test_the_first_run_is_the_next_time_after_creation() -> None:
    life = started(spec_of())
    assert (life.scheduled, life.status.next_schedule_time) == ([], "2026-05-04T00:05:00Z")
    life.now = at("04T00:04:59")
    life.look()
    assert life.scheduled == []
    life.now = at("04T00:05:00")
    life.look()
    assert life.scheduled == ["04 00:05"]
    assert life.status.next_schedule_time == "2026-05-04T00:10:00Z"


def test_created_on_the_minute_waits_for_the_next_time() -> None:
    life = Life(spec_of(), created=at("04T00:05:00"), now=at("04T00:05:00"))
    life.look()
    assert life.runs == []
    assert life.status.next_schedule_time == "2026-05-04T00:10:00Z"


@pytest.mark.parametrize(
    ("policy", "scheduled", "missed"),
    [
        ({"catchUp": "none"}, [], 108),
        ({}, ["04 09:00"], 107),
        ({"catchUp": "latest"}, ["04 09:00"], 107),
        ({"catchUp": "all", "catchUpLimit": 3}, ["04 08:50", "04 08:55", "04 09:00"], 105),
        ({"catchUp": "all"}, [f"04 08:{m:02}" for m in range(15, 60, 5)] + ["04 09:00"], 98),
        ({"catchUp": "all", "catchUpLimit": 500}, [f"04 {m // 60:02}:{m % 60:02}" for m in range(5, 541, 5)], 0),
    ],
)
def test_nine_hours_away_miss_108_times(policy: dict[str, object], scheduled: list[str], missed: int) -> None:
    life = started(spec_of(**policy))
    life.now = at("04T09:03:00")
    life.run_at_once()
    assert life.scheduled == scheduled
    assert life.missed == missed
    assert life.status.next_schedule_time == "2026-05-04T09:05:00Z"
    assert life.status.pending_runs is None
    life.now = at("04T09:05:00")
    life.run_at_once()
    assert life.scheduled[len(scheduled) :] == ["04 09:05"], "afterwards the schedule just goes on"


def test_missed_times_wait_in_the_status_oldest_first_and_run_one_after_the_other() -> None:
    life = started(spec_of(catchUp="all", catchUpLimit=3))
    life.now = at("04T09:03:00")
    life.look()
    assert life.scheduled == ["04 08:50"]
    assert life.status.pending_runs == ["2026-05-04T08:55:00Z", "2026-05-04T09:00:00Z"]
    for _ in range(3):
        life.look()
    assert len(life.runs) == 1, "no second run while one goes on"


def test_catching_up_ends_though_each_run_takes_longer_than_the_interval() -> None:
    """What comes due meanwhile is one follow-up, so the backlog shrinks with every run."""
    life = started(spec_of(catchUp="all", catchUpLimit=4))
    life.now = at("04T09:03:00")
    for _ in range(8):
        life.look()
        life.now += 2 * FIVE
        life.finish()
    assert life.scheduled == [
        "04 08:45",
        "04 08:50",
        "04 08:55",
        "04 09:00",
        "04 09:40",
        "04 09:50",
        "04 10:00",
        "04 10:10",
    ]
    assert life.status.pending_runs is None


def test_with_catch_up_none_a_restart_of_the_service_at_the_wrong_second_costs_nothing() -> None:
    life = started(spec_of(catchUp="none"))
    life.now = at("04T00:05:45")
    life.look()
    assert life.scheduled == ["04 00:05"]


@pytest.mark.parametrize("policy", [{}, {"catchUp": "none"}, {"catchUp": "all"}])
def test_five_restarts_during_one_long_run_give_one_follow_up(policy: dict[str, object]) -> None:
    life = started(spec_of(**policy))
    life.now = at("04T00:05:00")
    life.look()
    for minutes in (7, 11, 13, 21, 31):
        life.now = at("04T00:00:00") + timedelta(minutes=minutes)
        life = Life(life.spec, life.created, life.now, life.status, life.runs)
        life.look()
        assert life.scheduled == ["04 00:05"]
    life.now = at("04T00:33:00")
    life.finish()
    life.run_at_once()
    assert life.scheduled == ["04 00:05", "04 00:30"]
    assert life.runs[1][1] == at("04T00:33:00"), "right after the run"
    assert life.status.next_schedule_time == "2026-05-04T00:35:00Z"
    assert life.missed == 4


def test_with_all_an_outage_after_a_long_run_is_made_up_for_and_the_overlap_is_one_run() -> None:
    life = started(spec_of(catchUp="all", catchUpLimit=10))
    life.now = at("04T00:05:00")
    life.look()
    life.now = at("04T00:22:00")
    life.finish()
    life.now = at("04T00:37:00")
    life.run_at_once()
    assert life.scheduled == ["04 00:05", "04 00:20", "04 00:25", "04 00:30", "04 00:35"]
    assert life.missed == 2


def test_three_days_of_suspension_replay_nothing_and_count_nothing() -> None:
    life = started(spec_of())
    life.edit(suspend=True)
    said = life.look()
    assert said.next is None
    assert "spec.suspend" in said.message
    for hours in range(0, 72, 7):
        life.now = at("04T01:00:00") + timedelta(hours=hours)
        life.look()
    life.edit(suspend=False)
    life.now = at("07T01:02:00")
    life.run_at_once()
    assert life.runs == []
    assert life.missed == 0
    assert life.status.next_schedule_time == "2026-05-07T01:05:00Z"


def test_a_suspension_drops_what_waited_before_it() -> None:
    life = started(spec_of(catchUp="all", catchUpLimit=5))
    life.now = at("04T09:03:00")
    life.look()
    life.edit(suspend=True)
    life.look()
    life.finish()
    life.now = at("07T09:03:00")
    life.edit(suspend=False)
    life.run_at_once()
    assert life.scheduled == ["04 08:40"]
    assert life.missed == 103 + 4


def test_a_workflow_created_suspended_starts_with_the_time_after_its_resumption() -> None:
    life = started(spec_of(suspend=True))
    life.now = at("06T12:01:00")
    life.edit(suspend=None)
    life.run_at_once()
    assert (life.runs, life.status.next_schedule_time) == ([], "2026-05-06T12:05:00Z")


def test_an_edit_begins_the_new_schedule_when_it_is_seen() -> None:
    life = started(spec_of("0 12 * * *"))
    life.now = at("04T06:01:00")
    life.edit(schedule="*/5 * * * *")
    life.look()
    assert (life.runs, life.status.next_schedule_time) == ([], "2026-05-04T06:05:00Z")
    life.edit(schedule="0 3 * * *")
    life.look()
    assert life.status.next_schedule_time == "2026-05-05T03:00:00Z"
    life.edit(time_zone="America/New_York")
    life.look()
    assert life.status.next_schedule_time == "2026-05-04T07:00:00Z"


def test_an_edit_while_the_service_was_away_makes_up_for_no_time_of_the_new_schedule() -> None:
    life = started(spec_of("0 3 * * *"))
    life.now = at("04T08:00:00")
    life.edit(schedule="30 4 * * *")
    life.run_at_once()
    assert (life.runs, life.status.next_schedule_time) == ([], "2026-05-05T04:30:00Z")


def test_an_edit_of_something_else_at_the_very_moment_loses_no_run() -> None:
    life = started(spec_of("0 3 * * *"))
    life.edit(parameters={"EPOCHS": "5"})
    life.now = at("04T03:00:01")
    life.look()
    assert life.scheduled == ["04 03:00"]


def test_an_edit_drops_waiting_times_that_are_none_any_more() -> None:
    life = started(spec_of(catchUp="all", catchUpLimit=3))
    life.now = at("04T09:03:00")
    life.look()
    life.edit(schedule="*/10 * * * *")
    life.look()
    assert life.status.pending_runs == ["2026-05-04T09:00:00Z"]
    life.edit(catch_up="none")
    life.look()
    assert life.status.pending_runs is None
    assert life.missed == 105 + 2


def test_a_schedule_set_on_an_old_workflow_starts_now_and_not_at_its_creation() -> None:
    life = Life(spec_of(), now=at("24T10:01:00"), status=GryviaWorkflowStatus(phase="Succeeded", observed_generation=1))
    life.generation = 2
    life.run_at_once()
    assert (life.runs, life.status.next_schedule_time) == ([], "2026-05-24T10:05:00Z")


def test_a_clock_that_goes_back_replays_nothing_and_says_so() -> None:
    life = started(spec_of())
    life.now = at("04T02:00:00")
    life.run_at_once()
    life.now = at("04T01:00:00")
    said = life.look()
    assert said.message.startswith(
        "the clock says 2026-05-04T01:00:00Z, before the last run's time 2026-05-04T02:00:00Z"
    )
    for minutes in range(65):
        life.now = at("04T01:00:00") + timedelta(minutes=minutes)
        life.run_at_once()
    assert life.scheduled == ["04 02:00"]
    life.now = at("04T02:05:00")
    life.run_at_once()
    assert life.scheduled == ["04 02:00", "04 02:05"]


def test_a_day_that_never_comes_is_said() -> None:
    said = started(spec_of("0 0 30 2 *")).look()
    assert said.next is None
    assert said.message == (
        "spec.schedule '0 0 30 2 *' names no time within the next five years: change it, or remove it to run once"
    )


def test_a_status_that_a_person_wrote_into_is_no_crash() -> None:
    status = GryviaWorkflowStatus.model_validate(
        {"phase": "Scheduled", "nextScheduleTime": "2026-99-99T00:00:00Z", "lastScheduleTime": "2026-02-30T00:00:00Z",
         "pendingRuns": ["2026-13-01T00:00:00Z"]}
    )  # fmt: skip
    said = due(spec_of(), status, T0, at("04T09:03:00"), running=False, edited=False)
    assert said.next == at("04T09:05:00")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"schedule": None, "timeZone": "Europe/Berlin"}, "spec.timeZone is about scheduled runs"),
        ({"schedule": None, "catchUp": "none"}, "spec.catchUp is about scheduled runs"),
        ({"schedule": None, "catchUpLimit": 3}, "spec.catchUpLimit is about scheduled runs"),
        ({"schedule": None, "suspend": True}, "spec.suspend: true is about scheduled runs"),
        ({"catchUpLimit": 3}, "spec.catchUpLimit counts with spec.catchUp all only"),
        ({"catchUp": "all", "catchUpLimit": 1001}, "use 1 to 1000"),
        ({"timeZone": "Europe/Berln"}, "did you mean Europe/Berlin"),
        ({"schedule": "61 * * * *"}, "minute '61'"),
        ({"schedule": ""}, "0 fields"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, object], sentence: str) -> None:
    spec = GryviaWorkflowSpec.model_validate({"steps": [], "schedule": "0 3 * * *", **fields})
    (found,) = problems(spec)
    assert sentence in found


@pytest.mark.parametrize("fields", [{}, {"schedule": None, "suspend": False}, {"catchUp": "all", "catchUpLimit": 1000}])
def test_what_is_right_has_no_problems(fields: dict[str, object]) -> None:
    assert problems(GryviaWorkflowSpec.model_validate({"steps": [], "schedule": "0 3 * * *", **fields})) == ()


MOVES = st.one_of(
    st.tuples(st.just("look"), st.integers(1, 900)),
    st.tuples(st.just("away"), st.integers(3600, 40_000)),
    st.tuples(st.just("finish"), st.integers(0, 2000)),
    st.tuples(st.just("back"), st.integers(1, 5000)),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(MOVES, max_size=30),
    st.sampled_from(("*/5 * * * *", "* * * * *", "0 * * * *", "7,9 */2 * * 1-5", "30 2 * * *")),
    st.sampled_from(("UTC", "Europe/Berlin", "Australia/Lord_Howe")),
    st.sampled_from((None, "none", "latest", "all")),
    st.integers(1, 5),
)
def test_in_any_life_each_time_runs_once_waits_is_missed_or_is_still_to_come(
    moves: list[tuple[str, int]], schedule: str, zone: str, policy: str | None, limit: int
) -> None:
    spec = spec_of(schedule, timeZone=zone, catchUp=policy, catchUpLimit=limit if policy == "all" else None)
    begin = datetime(2026, 3, 27, 22, 17, 3, tzinfo=UTC)
    life = Life(spec, created=begin, now=begin)
    cron = parse_cron(schedule, parse_zone(zone))
    furthest = begin
    for move, seconds in moves:
        life.now += (-1 if move == "back" else 1) * seconds * SECOND
        furthest = max(furthest, life.now)
        if move == "finish" and life.running:
            life.finish()
        life.look()
        life.look()
        times = [scheduled for scheduled, _ in life.runs]
        assert times == sorted(set(times))
        assert all(cron.has(one) for one in times)
        # A time that had come has come, also when the clock is set back before its run begins.
        assert all(scheduled <= furthest for scheduled, _ in life.runs)
        pending = life.status.pending_runs or []
        assert len(pending) < limit
        assert life.status.next_schedule_time is not None
        cursor = parse_timestamp(life.status.next_schedule_time)
        decided = cron.count(begin, cursor - SECOND)
        assert decided == len(times) + len(pending) + life.missed
        assert life.running or cursor > life.now
        if policy in (None, "latest") and not life.running and furthest == life.now and cron.count(begin, life.now):
            newest = cron.latest(begin, life.now, 1)[0]
            assert times[-1] >= newest, "with latest, nothing stays undone"
