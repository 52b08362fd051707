"""What is the matter for ten minutes is one line of the log."""

from __future__ import annotations

from gryvia_common.errors import Gone, KnownOutage, Terminal, Transient
from gryvia_common.trouble import Trouble


def test_an_outage_is_news_once_whatever_words_it_has() -> None:
    trouble = Trouble()
    errors = [
        ConnectionRefusedError("refused"),
        Transient("no answer in 5 s"),
        TimeoutError(),
        ConnectionResetError("reset"),
    ]
    assert [trouble.is_news(error) for error in errors * 20] == [True] + [False] * 79
    assert trouble.last == "reset"


def test_another_kind_is_news_and_the_next_outage_too() -> None:
    trouble = Trouble()
    told = [trouble.is_news(error) for error in (Transient("a"), Gone("b"), Transient("c"), Terminal("d"), Gone("e"))]
    assert told == [True, True, False, True, False]
    trouble.over()
    assert trouble.last == ""
    assert trouble.is_news(Transient("a"))


def test_what_was_said_where_it_was_found_is_no_news() -> None:
    trouble = Trouble()
    assert not trouble.is_news(KnownOutage("not connected to NATS"))
    assert trouble.last == "not connected to NATS"
    assert trouble.is_news(Transient("no answer"))
