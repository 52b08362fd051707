"""Aliases are unique in a family and move in one write."""

from __future__ import annotations


def holders(cluster):
    return {alias: one.entry for alias, one in cluster.family.aliases.items()}


def test_the_newest_to_ask_gets_the_alias_and_the_other_is_told(cluster):
    cluster.entry("v1", aliases=["champion", "stable"])
    cluster.settle()
    assert holders(cluster) == {"champion": "v1", "stable": "v1"}
    assert cluster.status("v1")["aliases"] == ["champion", "stable"]
    assert cluster.condition("v1", "AliasesHeld")[:2] == ("True", "Held")
    cluster.entry("v2", aliases=["champion"])
    cluster.settle()
    assert holders(cluster) == {"champion": "v2", "stable": "v1"}
    assert cluster.status("v1")["aliases"] == ["stable"]
    status, reason, message = cluster.condition("v1", "AliasesHeld")
    assert (status, reason) == ("False", "TakenOver")
    assert message.startswith("champion points to v2, which asked for it later")


def test_an_alias_points_to_exactly_one_entry_at_every_version_of_the_record(cluster):
    for number in range(6):
        cluster.entry(f"v{number}", aliases=["champion"])
        cluster.settle()
    first = next(number for number, one in enumerate(cluster.families) if one.aliases)
    assert all(one.aliases["champion"].entry for one in cluster.families[first:]), "it never pointed nowhere"
    assert holders(cluster) == {"champion": "v5"}


def test_another_edit_does_not_take_an_alias_back_and_asking_again_does(cluster):
    cluster.entry("v1", aliases=["champion"])
    cluster.settle()
    cluster.entry("v2", aliases=["champion"])
    cluster.settle()
    cluster.edit("v1", description="new words", aliases=["champion", "other"])
    cluster.settle()
    assert holders(cluster) == {"champion": "v2", "other": "v1"}
    cluster.edit("v1", aliases=[])
    cluster.settle()
    cluster.edit("v1", aliases=["champion"])
    cluster.settle()
    assert holders(cluster) == {"champion": "v1"}
    assert cluster.condition("v2", "AliasesHeld")[1] == "TakenOver"


def test_what_is_let_go_or_deleted_falls_to_who_still_lists_it(cluster):
    for name in ("v1", "v2", "v3"):
        cluster.entry(name, aliases=["champion"])
        cluster.settle()
    cluster.edit("v3", aliases=[])
    cluster.settle()
    assert holders(cluster)["champion"] in ("v1", "v2")
    cluster.delete("gryviamodelregistries", holders(cluster)["champion"])
    cluster.settle()
    [left] = [name for name in ("v1", "v2") if ("gryviamodelregistries", name) in cluster.objects]
    assert holders(cluster) == {"champion": left}
    assert cluster.condition(left, "AliasesHeld")[1] == "Held"


def test_an_alias_and_production_are_independent(cluster):
    cluster.entry("v1", stage="production", aliases=["champion"])
    cluster.settle()
    cluster.entry("v2", stage="production")
    cluster.settle()
    assert (cluster.production, holders(cluster)) == ("v2", {"champion": "v1"})
