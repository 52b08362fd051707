"""The graph of steps: its order, who comes before whom, and when a step may start. Pure; knows names and phases only.

A `finally` step waits for all other steps (their ends are its dependencies) and is not skipped for how they ended. A step without a
condition is skipped when a dependency did not succeed, so a failure cascades; one with a condition decides for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gryvia_common.kinds.workflow import STEP_ENDED

Readiness = Literal["wait", "skip", "ask", "go"]


@dataclass(frozen=True, slots=True)
class Node:
    """A step as the graph sees it."""

    name: str
    depends_on: tuple[str, ...] = ()
    conditional: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """`order`: dependencies first, else as written. `before`: direct dependencies; `ancestors`: all of them."""

    nodes: Mapping[str, Node]
    order: tuple[str, ...]
    before: Mapping[str, tuple[str, ...]]
    ancestors: Mapping[str, frozenset[str]]

    def readiness(self, name: str, phases: Mapping[str, str]) -> tuple[Readiness, str]:
        """Whether a step may start, and the dependency that says otherwise. `ask`: its condition decides."""
        node, found = self.nodes[name], self.before[name]
        if any(phases[one] not in STEP_ENDED for one in found):
            return "wait", ""
        if node.conditional:
            return "ask", ""
        if not node.last:
            wrong = next((one for one in found if phases[one] != "Succeeded"), "")
            if wrong:
                return "skip", wrong
        return "go", ""


def graph(nodes: Sequence[Node]) -> Graph:
    """The graph of nodes that have no problems."""
    ordinary = tuple(node.name for node in nodes if not node.last)
    before = {node.name: (*(ordinary if node.last else ()), *node.depends_on) for node in nodes}
    order: list[str] = []
    ancestors: dict[str, frozenset[str]] = {}

    def visit(name: str) -> None:
        stack = [(name, iter(before[name]))]
        while stack:
            at, rest = stack[-1]
            following = next((one for one in rest if one not in ancestors), None)
            if following is not None:
                stack.append((following, iter(before[following])))
                continue
            stack.pop()
            if at not in ancestors:
                ancestors[at] = frozenset(before[at]).union(*(ancestors[one] for one in before[at]))
                order.append(at)

    for node in nodes:
        visit(node.name)
    return Graph({node.name: node for node in nodes}, tuple(order), before, ancestors)


def problems(nodes: Sequence[Node]) -> Iterable[tuple[str, str]]:
    """(step, what is wrong with its place in the graph)."""
    known = {node.name: node for node in nodes}
    for node in nodes:
        for one in node.depends_on:
            if one == node.name:
                yield node.name, f'dependsOn: "{one}" is the step itself; remove it'
            elif one not in known:
                yield node.name, f'dependsOn: there is no step "{one}"; the steps are {", ".join(known)}'
            elif known[one].last and not node.last:
                yield (
                    node.name,
                    f'dependsOn: "{one}" is a finally step and runs at the end; make this one a finally step too',
                )
        twice = sorted({one for one in node.depends_on if node.depends_on.count(one) > 1})
        if twice:
            yield node.name, f"dependsOn: {', '.join(twice)} stands there twice; name each step once"
    found = cycle({node.name: [one for one in node.depends_on if one in known and one != node.name] for node in nodes})
    if found:
        yield (
            found[0],
            f"dependsOn: the steps wait for each other: {' -> '.join(found)}; remove one of these dependencies",
        )


def cycle(depends: Mapping[str, Sequence[str]]) -> list[str]:
    """The names along a cycle, the first one again at the end; empty when there is none."""
    done: set[str] = set()
    for start in depends:
        path: list[str] = []
        stack = [(start, iter(depends[start]))] if start not in done else []
        path += [start] if stack else []
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                path.append(following)
                stack.append((following, iter(depends[following])))
    return []
