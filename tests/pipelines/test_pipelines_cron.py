"""Cron expressions against three other opinions: a scanner that looks at every minute, croniter, and cronsim's own iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_common.errors import Terminal
from gryvia_pipelines.cron import Cron, parse_cron, parse_zone

MINUTE = timedelta(minutes=1)
UTC_ZONE = ZoneInfo("UTC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
CHANGES = (
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("America/New_York", date(2027, 3, 14)),
    ("America/New_York", date(2027, 11, 7)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("Africa/Cairo", date(2026, 4, 24)),
    ("America/Scoresbysund", date(2026, 10, 24)),
    ("America/St_Johns", date(2010, 11, 7)),
    ("America/St_Johns", date(2010, 3, 14)),
    ("Pacific/Apia", date(2011, 12, 30)),
    ("Asia/Kolkata", date(2026, 3, 29)),
    ("UTC", date(2026, 2, 28)),
)


@dataclass(frozen=True)
class Field:
    """A field of an expression and, found without parsing it, what it means."""

    text: str
    values: frozenset[int] = field(repr=False)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = (), first: int = 0) -> Field:
    def said(value: int) -> str:
        named = value - first < len(names) and draw(st.booleans())
        return draw(st.sampled_from((str.upper, str.lower)))(names[value - first]) if named else str(value)

    texts: list[str] = []
    values: set[int] = set()
    for _ in range(draw(st.integers(1, 3))):
        shapes = ("*", "*/", "a", "a-b", "a-b/") if names == DAYS else ("*", "*/", "a", "a-b", "a-b/", "a/")
        shape = draw(st.sampled_from(shapes))
        begin = draw(st.integers(low, high))
        end = draw(st.integers(begin, high))
        step = draw(st.integers(1, 7))
        if shape in ("*", "*/"):
            begin, end = low, high
        if shape == "a":
            end = begin
        if shape == "a/":
            end = high
        # croniter takes `5-5` for `*`, and cronsim `5-5/2` for `5/2`.
        if shape in ("a-b", "a-b/") and begin == end:
            shape = "a"
        text = {"*": "*", "*/": "*", "a": said(begin), "a/": said(begin)}.get(shape) or f"{said(begin)}-{said(end)}"
        stepped = shape.endswith("/")
        texts.append(f"{text}/{step}" if stepped else text)
        values |= set(range(begin, end + 1, step if stepped else 1))
    return Field(",".join(texts), frozenset(values))


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Field, Field, Field, Field, Field]:
    whole = {
        name: Field("*", frozenset(range(low, high + 1)))
        for name, low, high in (("d", 1, 31), ("m", 1, 12), ("w", 0, 7))
    }
    return (
        draw(fields(0, 59)),
        draw(fields(0, 23)),
        draw(st.just(whole["d"]) | fields(1, 31)),
        draw(st.just(whole["m"]) | fields(1, 12, MONTHS, 1)),
        draw(st.just(whole["w"]) | fields(0, 7, DAYS)),
    )


def text_of(expression: tuple[Field, ...]) -> str:
    return " ".join(one.text for one in expression)


def shows(expression: tuple[Field, ...], wall: datetime) -> bool:
    minute, hour, day, month, weekday = expression
    by_day = wall.day in day.values
    by_weekday = bool({wall.isoweekday(), wall.isoweekday() % 7} & weekday.values)
    both = day.text.startswith("*") or weekday.text.startswith("*")
    on_day = (by_day and by_weekday) if both else (by_day or by_weekday)
    return on_day and wall.month in month.values and wall.hour in hour.values and wall.minute in minute.values


def scanned(expression: tuple[Field, ...], zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Every minute, looked at."""
    wild = expression[0].text.startswith("*") or expression[1].text.startswith("*")
    found = []
    moment = start
    while moment <= end:
        local = moment.astimezone(zone)
        wall = local.replace(tzinfo=None, fold=0)
        before = (moment - MINUTE).astimezone(zone).replace(tzinfo=None, fold=0)
        skipped = int((wall - before) / MINUTE) - 1
        if wild:
            hit = shows(expression, wall)
        else:
            hit = (shows(expression, wall) and not local.fold) or any(
                shows(expression, before + MINUTE * (1 + n)) for n in range(max(0, skipped))
            )
        if hit:
            found.append(moment)
        moment += MINUTE
    return found


def walked(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    found = []
    moment = cron.after(start - timedelta(seconds=1))
    while moment is not None and moment <= end:
        found.append(moment)
        moment = cron.after(moment)
    return found


@settings(max_examples=150, deadline=None)
@given(expressions(), st.sampled_from(CHANGES), st.integers(0, 1439))
def test_every_time_around_a_change_of_the_clock_is_the_one_a_scanner_finds(
    expression: tuple[Field, ...], change: tuple[str, date], offset: int
) -> None:
    zone = parse_zone(change[0])
    start = datetime(change[1].year, change[1].month, change[1].day, tzinfo=UTC) - timedelta(days=1) + offset * MINUTE
    end = start + timedelta(days=1)
    cron = parse_cron(text_of(expression), zone)
    expected = scanned(expression, zone, start, end)
    assert list(cron.latest(start, end, 10**6)) == expected
    assert cron.count(start, end) == len(expected)
    assert cron.latest(start, end, 3) == tuple(expected[-3:])
    assert all(cron.has(one) for one in expected[:5])
    middle = start + timedelta(hours=14)
    assert walked(cron, middle, middle + timedelta(hours=4)) == [
        one for one in expected if middle <= one <= middle + timedelta(hours=4)
    ]


@settings(max_examples=100, deadline=None)
@given(expressions(), st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)))
def test_croniter_and_cronsim_agree_in_utc(expression: tuple[Field, ...], base: datetime) -> None:
    """Where croniter means the same: it takes `*/2` of a day field for a restriction, so only with one of them plain."""
    text, base = text_of(expression), base.replace(microsecond=0, tzinfo=UTC)
    ours = list(islice(walked_without_end(parse_cron(text, UTC_ZONE), base), 20))
    if not ours:
        return
    try:
        theirs = CronSim(text, base)
    except CronSimError:
        return
    assert ours == list(islice(theirs, len(ours)))
    if "*" in (expression[2].text, expression[4].text):
        other = croniter(text, base)
        assert ours == [other.get_next(datetime) for _ in ours]


@settings(max_examples=100, deadline=None)
@given(expressions(), st.sampled_from(("Europe/Berlin", "America/New_York", "Asia/Kolkata")), st.integers(0, 3000))
def test_cronsim_agrees_where_the_shift_is_a_whole_hour(expression: tuple[Field, ...], name: str, hours: int) -> None:
    zone = parse_zone(name)
    base = datetime(2026, 3, 25, tzinfo=UTC) + timedelta(hours=2 * hours)
    text = text_of(expression)
    ours = list(islice(walked_without_end(parse_cron(text, zone), base), 30))
    try:
        raw = (one.astimezone(UTC) for one in CronSim(text, base.astimezone(zone)))
        theirs = list(islice(dict.fromkeys(one for one in islice(raw, 60) if one > base), len(ours)))
    except CronSimError:  # It refuses days that no month has; here they never come.
        return
    assert ours[: len(theirs)] == theirs


def walked_without_end(cron: Cron, moment: datetime) -> Iterator[datetime]:
    found = cron.after(moment)
    while found is not None:
        yield found
        found = cron.after(found)


@pytest.mark.parametrize(
    ("expression", "base", "expected"),
    [
        ("*/1 * * * *", "2010-01-23T12:18", ["2010-01-23T12:19", "2010-01-23T12:20"]),
        (
            "0 */3 * * *",
            "2010-01-24T12:02",
            ["2010-01-24T15:00", "2010-01-24T18:00", "2010-01-24T21:00", "2010-01-25T00:00"],
        ),
        ("0 0 */3 * *", "2010-02-24T12:09", ["2010-02-25T00:00", "2010-02-28T00:00", "2010-03-01T00:00"]),
        ("0 0 * * *", "1996-02-27T00:00", ["1996-02-28T00:00", "1996-02-29T00:00", "1996-03-01T00:00"]),
        ("0 0 * * *", "2100-02-27T00:00", ["2100-02-28T00:00", "2100-03-01T00:00"]),
        ("0 0 * * sat", "2010-02-25T00:00", ["2010-02-27T00:00", "2010-03-06T00:00"]),
        ("0 0 1 * wed", "2010-01-25T00:00", ["2010-01-27T00:00", "2010-02-01T00:00", "2010-02-03T00:00"]),
        ("0 0 * * 7", "2010-02-25T00:00", ["2010-02-28T00:00", "2010-03-07T00:00"]),
        ("30 22 * * sun-thu", "2010-08-25T15:56", ["2010-08-25T22:30", "2010-08-26T22:30", "2010-08-29T22:30"]),
        ("0 * * 3 *", "2012-01-01T00:00", ["2012-03-01T00:00", "2012-03-01T01:00"]),
        ("00 03 16,30 * *", "2013-02-17T12:17", ["2013-03-16T03:00", "2013-03-30T03:00", "2013-04-16T03:00"]),
        (
            "0 4/6 * * *",
            "2012-02-24T00:00",
            ["2012-02-24T04:00", "2012-02-24T10:00", "2012-02-24T16:00", "2012-02-24T22:00"],
        ),
        ("0 0 1 3,6,9,12 *", "2016-12-03T10:00", ["2017-03-01T00:00", "2017-06-01T00:00"]),
        ("1-9/2 0 1 * *", "2013-03-04T00:00", ["2013-04-01T00:01", "2013-04-01T00:03", "2013-04-01T00:05"]),
        ("1 1 1-7 * */7", "2020-01-01T00:00", ["2020-01-05T01:01", "2020-02-02T01:01", "2020-03-01T01:01"]),
        ("1 1 */100,1-7 * MON", "2020-01-01T00:00", ["2020-01-06T01:01", "2020-02-03T01:01", "2020-03-02T01:01"]),
        ("59 23 31 12 *", "2025-12-31T23:59", ["2026-12-31T23:59"]),
        ("0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 30 2 5", "2026-02-01T00:00", ["2026-02-06T00:00", "2026-02-13T00:00"]),
        ("  5   4 * jan-mar/2 *  ", "2026-01-31T05:00", ["2026-03-01T04:05"]),
    ],
)
def test_what_the_public_suites_of_cron_libraries_ask(expression: str, base: str, expected: list[str]) -> None:
    found = islice(
        walked_without_end(parse_cron(expression, UTC_ZONE), datetime.fromisoformat(base).replace(tzinfo=UTC)),
        len(expected),
    )
    assert [one.strftime("%Y-%m-%dT%H:%M") for one in found] == expected


@pytest.mark.parametrize(
    ("zone", "expression", "base", "expected"),
    [
        # Europe/Berlin, 29 March 2026: 02:00 becomes 03:00.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        ("Europe/Berlin", "0,15,30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        ("Europe/Berlin", "0 * * * *", "2026-03-29T01:30", ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-03-28T12:00", ["2026-03-30T02:00+02:00"]),
        # 25 October 2026: 03:00 becomes 02:00.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("Europe/Berlin", "0 * * * *", "2026-10-25T01:30", [
            "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"]),
        # America/New_York, 8 March and 1 November 2026.
        ("America/New_York", "15 2 * * *", "2026-03-07T12:00", ["2026-03-08T03:00-04:00", "2026-03-09T02:15-04:00"]),
        ("America/New_York", "15 1 * * *", "2026-10-31T12:00", ["2026-11-01T01:15-04:00", "2026-11-02T01:15-05:00"]),
        ("America/New_York", "*/30 1 * * *", "2026-10-31T12:00", [
            "2026-11-01T01:00-04:00", "2026-11-01T01:30-04:00", "2026-11-01T01:00-05:00", "2026-11-01T01:30-05:00"]),
        # Australia/Lord_Howe moves by half an hour: 02:00 becomes 02:30 on 4 October, 01:30 on 5 April 2026.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
        ("Australia/Lord_Howe", "*/15 2 * * *", "2026-10-03T12:00", [
            "2026-10-04T02:30+11:00", "2026-10-04T02:45+11:00", "2026-10-05T02:00+11:00"]),
        ("Australia/Lord_Howe", "*/15 3 * * *", "2026-10-04T01:45", ["2026-10-04T03:00+11:00", "2026-10-04T03:15+11:00"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00", ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
        ("Australia/Lord_Howe", "*/15 1 * * *", "2026-04-05T01:20", [
            "2026-04-05T01:30+11:00", "2026-04-05T01:45+11:00", "2026-04-05T01:30+10:30", "2026-04-05T01:45+10:30"]),
        ("Asia/Kolkata", "0 9 * * *", "2026-03-29T00:00", ["2026-03-29T09:00+05:30", "2026-03-30T09:00+05:30"]),
    ],
)  # fmt: skip
def test_daylight_saving_policy(zone: str, expression: str, base: str, expected: list[str]) -> None:
    there = parse_zone(zone)
    found = islice(
        walked_without_end(parse_cron(expression, there), datetime.fromisoformat(base).replace(tzinfo=there)),
        len(expected),
    )
    assert [one.astimezone(there).isoformat(timespec="minutes") for one in found] == expected


def test_in_the_second_of_two_equal_hours_a_fixed_time_does_not_come_again() -> None:
    berlin = parse_zone("Europe/Berlin")
    second = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=berlin)
    assert parse_cron("30 2 * * *", berlin).after(second) == datetime(2026, 10, 26, 2, 30, tzinfo=berlin)


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * 31 FEB *"])
def test_a_day_that_no_month_has_never_comes(expression: str) -> None:
    cron = parse_cron(expression, UTC_ZONE)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert cron.after(now) is None
    assert cron.count(now, now + timedelta(days=4000)) == 0


def test_29_february_may_be_more_than_five_years_away() -> None:
    assert parse_cron("0 0 29 2 *", UTC_ZONE).after(datetime(2097, 1, 1, tzinfo=UTC)) is None


def test_three_years_are_counted_without_looking_at_each_minute() -> None:
    end = datetime(2026, 11, 5, 12, 0, 30, tzinfo=UTC)
    start = end - timedelta(days=3 * 365)
    for zone in ("UTC", "Europe/Berlin", "Australia/Lord_Howe"):
        cron = parse_cron("*/5 * * * *", parse_zone(zone))
        assert cron.count(start, end) == 3 * 365 * 288
        assert cron.latest(start, end, 2) == (
            datetime(2026, 11, 5, 11, 55, tzinfo=UTC),
            datetime(2026, 11, 5, 12, tzinfo=UTC),
        )


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("* * * *", "4 fields"), ("* * * * * *", "no field for seconds"), ("", "0 fields"), ("@reboot", "five fields"),
        ("@daily", "0 0 * * *"), ("CRON_TZ=Asia/Tokyo 0 0 * * *", "spec.timeZone"), ("60 * * * *", "minute '60'"),
        ("* 24 * * *", "hour '24'"), ("* * 0 * *", "day of month '0'"), ("* * 32 * *", "day of month '32'"),
        ("* * * 13 *", "month '13'"), ("* * * * 8", "day of week '8'"), ("* * 5-1 * *", "runs backwards"),
        ("* * * * FRI-MON", "runs backwards"), ("*/0 * * * *", "steps by 0"), ("*/90 * * * *", "begin anew with every hour"),
        ("0 */48 * * *", "begin anew with every day"), ("0 0 L * *", "day of month 'L'"), ("0 0 * * 5L", "day of week '5L'"),
        ("0 0 * * 1#2", "day of week '1#2'"), ("0 0 15W * *", "15W"), ("? * * * *", "minute '?'"), ("0 0 * * 1/2", "reaches Sunday"),
        ("0 0 * * 2,MON/2", "write a range"), ("a * * * *", "minute 'a'"),
        ("* * * janu-jun *", "month 'janu-jun'"), ("1-1_0 * * * *", "1-1_0"), ("0-10/ * * * *", "0-10/"), ("1,,2 * * * *", "1,,2"),
        ("-90 * * * *", "-90"), ("1//2 * * * *", "1//2"), ("0-1& * * * *", "0-1&"), ("¹ * * * *", "¹"), ("٣ * * * *", "٣"),
        ("* * * ſep *", "ſep"), ("R * * * *", "minute 'R'"), ("0,1" * 300 + " * * * *", "at most 512"),
    ],
)  # fmt: skip
def test_what_is_not_accepted_is_named_with_its_fix(expression: str, names: str) -> None:
    with pytest.raises(Terminal) as refused:
        parse_cron(expression, UTC_ZONE)
    assert names in str(refused.value)
    assert str(refused.value).startswith("spec.schedule ")
    assert len(str(refused.value)) < 400 + len(expression)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_with_a_sentence(text: str) -> None:
    try:
        clocks: tuple[int, ...] = parse_cron(text, UTC_ZONE).clocks
    except Terminal as error:
        clocks = (0,) if "spec.schedule" in str(error) else ()
    assert clocks


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("europe/berlin", "Europe/Berlin"), ("Berlin", "Europe/Berlin"), ("New York", "America/New_York"),
        ("Australia/Lord_Hove", "Australia/Lord_Howe"), ("UTC+2", "UTC"), ("../../etc/passwd", "such as"), ("", "such as"),
        ("localtime", "such as"), ("right/UTC", "such as"), ("America", "America/"), ("+02:00", "such as"),
    ],
)  # fmt: skip
def test_an_unknown_time_zone_is_answered_with_near_names(name: str, advice: str) -> None:
    with pytest.raises(Terminal) as refused:
        parse_zone(name)
    assert advice in str(refused.value)


def test_times_come_in_order_and_only_once() -> None:
    cron = parse_cron("59,0 23,0,1,2,3 * * *", parse_zone("America/St_Johns"))
    times = walked(cron, datetime(2010, 3, 10, tzinfo=UTC), datetime(2010, 11, 10, tzinfo=UTC))
    assert all(one < other for one, other in pairwise(times))
