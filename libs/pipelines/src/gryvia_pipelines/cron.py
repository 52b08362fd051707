"""A five-field cron expression in a time zone: which instants it names.

Grammar: minute (0-59), hour (0-23), day of month (1-31), month (1-12 or JAN-DEC), day of week (0-7 or SUN-SAT; 0 and 7 are
Sunday), each `*`, values, ranges and lists of them, with a step (`*/15`, `8-18/2`, and but for the day of week `5/20` for 5-59/20).
When both day fields are restricted either is enough; when one begins with `*` both must hold (Debian's cron).

Daylight saving, as Debian's cron has it. With a fixed minute and hour: a time in the hour that is left out comes once, at the first
minute after it, and a time in the hour that comes twice comes once, the first time. With minute or hour beginning with `*`:
whenever the wall clock shows it, so not in the hour that is left out and in both of the hour that comes twice.

cronsim parses and matches days. Its own iteration was rejected: it leaves out minutes where the shift is half an hour
(Australia/Lord_Howe), and it goes tick by tick, while a count over years of downtime must not.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from gryvia_common.errors import Terminal

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
HORIZON = timedelta(days=5 * 366)
"""How far ahead the next time is looked for: five years, as the contract says."""

LONGEST = 512
WEEKDAY = 4
_START = datetime(2000, 1, 1, tzinfo=UTC)
_VALUE = r"(\d{1,3}|[A-Za-z]{3})"
_FIELD = re.compile(rf"(\*|{_VALUE}(-{_VALUE})?)(/\d{{1,3}})?(,(\*|{_VALUE}(-{_VALUE})?)(/\d{{1,3}})?)*", re.ASCII)
_FIELDS = (
    ("minute", 60, "hour", "0 to 59"),
    ("hour", 24, "day", "0 to 23"),
    ("day of month", 999, "month", "1 to 31"),
    ("month", 12, "year", "1 to 12 or JAN to DEC"),
    ("day of week", 7, "week", "0 to 7 (0 and 7 are Sunday) or SUN to SAT"),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """`clocks`: the wall-clock times of a matching day, in order, as minutes. `wild`: minute or hour begins with `*`."""

    zone: ZoneInfo
    clocks: tuple[int, ...]
    months: frozenset[int]
    wild: bool
    days: CronSim

    def after(self, moment: datetime) -> datetime | None:
        """The first time after `moment`, None when there is none within the horizon."""
        moment = moment.astimezone(UTC)
        start, end = moment + timedelta(microseconds=1), moment + HORIZON
        day, last = _local_day(moment, self.zone) - DAY, _local_day(end, self.zone)
        while day <= last:
            if day.month not in self.months:
                day = _next_month(day)
            elif found := self._of(day, start, end, first=True):
                # Where the clock is set across midnight two days overlap.
                return min([*found, *self._of(day + DAY, start, end, first=True)])
            else:
                day += DAY
        return None

    def latest(self, start: datetime, end: datetime, most: int) -> tuple[datetime, ...]:
        """The newest `most` times of start..end, both ends included, in order."""
        found: list[datetime] = []
        day, first = _local_day(end, self.zone) + DAY, _local_day(start, self.zone) - DAY
        while day >= first:
            enough = len(found) >= most
            found += self._of(day, start, end)
            if enough:  # One day more than needed, for the same reason.
                break
            day -= DAY
        return tuple(sorted(found)[-most:]) if most else ()

    def count(self, start: datetime, end: datetime) -> int:
        """How many times start..end has, both ends included. Days between cost a look each, whatever happens in them."""
        if end < start:
            return 0
        first, last = _local_day(start, self.zone), _local_day(end, self.zone)
        edges = {day for edge in (first, last) for day in (edge - DAY, edge, edge + DAY)}
        total = sum(len(self._of(day, start, end)) for day in edges)
        day = first + 2 * DAY
        while day < last - DAY:
            if self._matches(day):
                total += len(self.clocks) if self._regular(day) else len(self._of(day, start, end))
            day += DAY
        return total

    def has(self, moment: datetime) -> bool:
        return self.count(moment, moment) > 0

    def _matches(self, day: date) -> bool:
        return day.month in self.months and self.days.match_day(day)

    def _regular(self, day: date) -> bool:
        """The clock is not set on this day, nor across one of its midnights."""
        edges = (datetime.combine(one, time(), self.zone) for one in (day, day + DAY))
        return len({edge.replace(fold=fold).utcoffset() for edge in edges for fold in (0, 1)}) == 1

    def _of(self, day: date, start: datetime, end: datetime, *, first: bool = False) -> list[datetime]:
        """The times of one local day within start..end, in UTC and in order; or only the first."""
        if not self._matches(day):
            return []
        if self._regular(day):
            midnight = datetime.combine(day, time(), self.zone).astimezone(UTC)
            begin = bisect_left(self.clocks, (start - midnight) / MINUTE)
            stop = bisect_right(self.clocks, (end - midnight) / MINUTE)
            return [midnight + clock * MINUTE for clock in self.clocks[begin : min(stop, begin + 1) if first else stop]]
        found = _changed_day(self, day)
        return list(found[bisect_left(found, start) : bisect_right(found, end)])

    def changed(self, day: date) -> tuple[datetime, ...]:
        """The times of a day on which the clock is set."""
        found: set[datetime] = set()
        for clock in self.clocks:
            wall = datetime.combine(day, time()) + clock * MINUTE
            both = {wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
            shown = {one for one in both if one.astimezone(self.zone).replace(tzinfo=None) == wall}
            if self.wild:
                found |= shown
            elif shown:
                found.add(min(shown))
            else:
                found |= self._moved(wall)
        return tuple(sorted(found))

    def _moved(self, wall: datetime) -> set[datetime]:
        """A time that the clock does not show: the first minute after the hole. Empty when the next day has that one anyway."""
        hole = wall.date()
        while (moment := wall.replace(tzinfo=self.zone)) != moment.astimezone(UTC).astimezone(self.zone):
            wall += MINUTE
        if wall.date() != hole and self._matches(wall.date()) and wall.hour * 60 + wall.minute in self.clocks:
            return set()
        return {moment.astimezone(UTC)}


@lru_cache(maxsize=256)
def parse_cron(expression: str, zone: ZoneInfo) -> Cron:
    """Raises Terminal with what is wrong and what to write instead. A day that no month has is no error: it never comes."""
    parts = expression.split()
    shown = f"spec.schedule {expression[:80]!r}"
    if expression.lstrip().startswith("@"):
        raise Terminal(f"{shown}: write the five fields instead, for example '0 0 * * *' for @daily")
    if "TZ=" in expression:
        raise Terminal(f"{shown}: the time zone goes into spec.timeZone")
    if len(parts) != 5 or len(expression) > LONGEST:
        raise Terminal(
            f"{shown} has {len(parts)} fields in {len(expression)} characters, it needs five in at most {LONGEST}: minute,"
            " hour, day of month, month, day of week, for example '0 3 * * 1-5'; there is no field for seconds"
        )
    for number, text in enumerate(parts):
        _check_words(shown, number, text)
    try:
        parsed = CronSim(" ".join([*parts[:3], "*", parts[4]]), _START)
        months = CronSim(f"* * * {parts[3]} *", _START).months
    except CronSimError as error:
        raise Terminal(_out_of_range(shown, parts)) from error
    clocks = tuple(hour * 60 + minute for hour in sorted(parsed.hours) for minute in sorted(parsed.minutes))
    wild = parts[0].startswith("*") or parts[1].startswith("*")
    return Cron(zone, clocks, frozenset(months), wild, parsed)


def parse_zone(name: str) -> ZoneInfo:
    """An IANA time zone. Raises Terminal with the names that are nearest."""
    known = _zone_names()
    if name in known:
        return ZoneInfo(name)
    by_folded = {folded.casefold(): zone for zone in sorted(known) for folded in (zone, zone.rsplit("/")[-1])}
    wanted = name.strip().replace(" ", "_").casefold()
    near = [by_folded[one] for one in get_close_matches(wanted, by_folded, n=3, cutoff=0.7)]
    advice = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "use an IANA name such as Europe/Berlin"
    raise Terminal(f"spec.timeZone {name[:80]!r} is no time zone; {advice}")


def _check_words(shown: str, number: int, text: str) -> None:
    name, size, span, _ = _FIELDS[number]
    if _FIELD.fullmatch(text) is None:
        raise Terminal(f"{shown}: {name} {text!r} is not understood; {_allowed(number)}")
    for step in re.findall(r"/(\d+)", text):
        if not 0 < int(step) <= size:
            raise Terminal(
                f"{shown}: {name} {text!r} steps by {step}; steps begin anew with every {span}, use 1 to {size}"
            )
    if number == WEEKDAY and re.search(r"(^|,)\w+/", text):
        raise Terminal(f"{shown}: {name} {text!r}: crons differ in whether this reaches Sunday; write a range a-b/n")


def _out_of_range(shown: str, parts: list[str]) -> str:
    """Which field it is: each alone, the others `*`."""
    for number, text in enumerate(parts):
        try:
            CronSim(" ".join([*["*"] * number, text, *["*"] * (4 - number)]), _START)
        except CronSimError:
            return f"{shown}: {_FIELDS[number][0]} {text!r} is out of range or runs backwards; {_allowed(number)}"
    return f"{shown} is not understood"


def _allowed(number: int) -> str:
    return f"use {_FIELDS[number][3]}, *, ranges a-b, lists a,b and steps /n"


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    """The names of the package tzdata, so that the same names are known on every machine."""
    return frozenset((resources.files("tzdata") / "zones").read_text().split())


@lru_cache(maxsize=64)
def _changed_day(cron: Cron, day: date) -> tuple[datetime, ...]:
    """Remembered: such a day is looked at minute by minute, in every pass of it."""
    return cron.changed(day)


def _local_day(moment: datetime, zone: ZoneInfo) -> date:
    return moment.astimezone(zone).date()


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
