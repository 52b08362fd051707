"""The two policies of a Job: what a pod's failure means, and when part of the indexes is enough.

KEP-3329 (pod failure policy) and KEP-3998 (success policy). Both are first-match over their rules. The texts of the
messages are the real controller's, because people and programs match on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gryvia_devcluster.controllers.job.indexes import parse_indexes
from gryvia_devcluster.types import Json

Verdict = Literal["Count", "Ignore", "FailJob", "FailIndex"]


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    message: str = ""


def judge_failure(job: Json, pod: Json) -> Judgement:
    """What the failure of `pod` means for `job`; Count where no rule matches or there is no policy."""
    for number, rule in enumerate(job["spec"].get("podFailurePolicy", {}).get("rules", ())):
        why = _exit_codes_match(rule, pod) if rule.get("onExitCodes") else _conditions_match(rule, pod)
        if why:
            return Judgement(rule["action"], f"{why} matching {rule['action']} rule at index {number}")
    return Judgement("Count")


def _exit_codes_match(rule: Json, pod: Json) -> str:
    wanted = rule["onExitCodes"]
    status = pod.get("status", {})
    for state in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        terminated = state.get("state", {}).get("terminated")
        if terminated is None or wanted.get("containerName", state["name"]) != state["name"]:
            continue
        code = terminated["exitCode"]
        if code != 0 and (code in wanted["values"]) == (wanted["operator"] == "In"):
            return f"Container {state['name']} for pod {_name(pod)} failed with exit code {code}"
    return ""


def _conditions_match(rule: Json, pod: Json) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    for pattern in rule.get("onPodConditions", ()):
        for condition in conditions:
            if condition["type"] == pattern["type"] and condition["status"] == pattern.get("status", "True"):
                return f"Pod {_name(pod)} has condition {condition['type']}"
    return ""


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def success_rule_met(job: Json, succeeded: set[int]) -> str:
    """The message of the first success rule that holds, empty when none does."""
    completions = job["spec"].get("completions")
    for number, rule in enumerate(job["spec"].get("successPolicy", {}).get("rules", ())):
        wanted = parse_indexes(rule["succeededIndexes"], completions) if rule.get("succeededIndexes") else None
        have = succeeded if wanted is None else succeeded & wanted
        count = rule.get("succeededCount")
        if len(have) >= count if count is not None else have == wanted:
            return f"Matched rules at index {number}"
    return ""
