"""The comparison of stream and list, as a property: publishing what is due and the tombstones makes the stream what the list says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gryvia_bridge.checkpoint import Comparison, Entry, checkpoint, is_due, same
from gryvia_bridge.envelope import Envelope
from gryvia_common.bus.objects import StoredObject
from gryvia_common.bus.subjects import object_subject
from gryvia_common.kube.objects import Key

names = st.sampled_from([f"n{number}" for number in range(8)])
stored_states = st.dictionaries(
    names,
    st.tuples(st.integers(1, 50), st.sampled_from(["u1", "u2"]), st.booleans(), st.integers(0, 3)),
)
listed_states = st.dictionaries(names, st.tuples(st.integers(1, 100), st.sampled_from(["u1", "u2"]), st.integers(0, 3)))
LIST_VERSION = 100


def stored(name: str, state: tuple[int, str, bool, int], sequence: int) -> StoredObject:
    version, uid, deleted, partition = state
    subject = object_subject("jobs", partition, "ns", name)
    return StoredObject(subject, sequence, uid, version, "deleted" if deleted else "applied")


def listed(name: str, version: int, uid: str, partition: int) -> Envelope:
    return Envelope("jobs", Key("ns", name), partition, uid, version, "applied", b"{}", 0.0)


@given(stored_states, listed_states)
def test_the_difference_makes_the_stream_what_the_list_says(before, now):
    # A list is of one moment not older than the stream: what it shows is at least as new as what is stored of it. And a version is
    # of one object only.
    now = {
        name: state
        for name, state in now.items()
        if name not in before
        or (state[0], False) > (before[name][0], before[name][2])
        or (*state[:2], False) == before[name][:3]
    }
    known = checkpoint(stored(name, state, number) for number, (name, state) in enumerate(before.items(), 1))
    comparison = Comparison("jobs", known, LIST_VERSION)
    envelopes = [listed(name, *state) for name, state in now.items()]
    stream = {(name, state[3]): (state[1], state[0], state[2]) for name, state in before.items()}
    published = []
    published += [change for change in envelopes if comparison.wants(change)]
    published += comparison.vanished(0.0)
    for change in published:
        stream[(change.key.name, change.partition)] = (change.uid, change.version, change.op == "deleted")
        if change.op == "applied" and change.key.name in before:
            old = before[change.key.name]
            if old[3] != change.partition:  # what the publisher does with the subject that was left
                stream[(change.key.name, old[3])] = (old[1], old[0], True)
    alive = {name: (uid, version, place) for (name, place), (uid, version, deleted) in stream.items() if not deleted}
    assert alive == {name: (uid, version, place) for name, (version, uid, place) in now.items()}


@given(stored_states)
def test_nothing_changed_is_nothing_published(before):
    known = checkpoint(stored(name, state, number) for number, (name, state) in enumerate(before.items(), 1))
    comparison = Comparison("jobs", known, LIST_VERSION)
    unchanged = [listed(name, s[0], s[1], s[3]) for name, s in before.items() if not s[2]]
    assert not any(comparison.wants(change) for change in unchanged)
    assert list(comparison.vanished(0.0)) == []


def test_of_two_subjects_of_one_key_the_older_is_removed():
    """A bridge was killed between the two publishes of a move to another partition."""
    known = checkpoint([stored("n", (7, "u", False, 1), 1), stored("n", (9, "u", False, 2), 2)])
    comparison = Comparison("jobs", known, LIST_VERSION)
    assert not comparison.wants(listed("n", 9, "u", 2))
    [tombstone] = comparison.vanished(0.0)
    assert (tombstone.partition, tombstone.version, tombstone.op, tombstone.replaces) == (1, 7, "deleted", 1)


@given(st.permutations([(1, False), (2, False), (2, True), (3, False), (3, True)]))
def test_in_any_order_the_newest_wins(order):
    entry = None
    for version, deleted in order:
        op = "deleted" if deleted else "applied"
        change = Envelope("jobs", Key("ns", "n"), 0, "u", version, op, b"", 0.0)
        if is_due(change, entry):
            entry = Entry(0, "u", version, deleted, 1)
    assert entry == Entry(0, "u", 3, True, 1)


def test_a_lost_message_differs_and_an_expired_tombstone_does_not():
    alive, dead = Entry(0, "u", 5, False, 1), Entry(0, "u", 6, True, 2)
    believed = {Key("ns", "a"): alive, Key("ns", "d"): dead}
    assert same({Key("ns", "a"): alive}, believed, believed)
    assert not same({Key("ns", "d"): dead}, believed, believed)
    assert not same({**believed, Key("ns", "x"): alive}, believed, believed)
