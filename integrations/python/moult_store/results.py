"""The results of the command. Each has the most important fields; `json` is the complete object, as in docs/json.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Tuple

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """One line of a plan."""

    mark: str
    text: str
    step: str
    database: Optional[str]
    json: Object = field(repr=False)


@dataclass(frozen=True)
class Plan:
    """The changes that an update would make."""

    #: False if the release is already installed.
    changes: bool
    #: The release that would be installed; None if the feed has nothing newer.
    version: Optional[str]
    installed: Optional[str]
    effects: Tuple[Effect, ...]
    warnings: Tuple[str, ...]
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> Plan:
        if "to" not in answer:
            # The feed has no newer release, and the command printed the state of the feed.
            return Plan(False, None, answer.get("installed"), (), (), answer)
        effects = [
            Effect(effect["mark"], effect["text"], effect["step"], effect.get("database"), effect)
            for effect in answer["effects"]
        ]
        return Plan(
            answer["changes"],
            answer["to"]["version"],
            answer["from"]["version"] if "from" in answer else None,
            tuple(effects),
            tuple(answer["warnings"]),
            answer,
        )


@dataclass(frozen=True)
class Update:
    """The result of `apply` or `rollback`."""

    #: False if there was nothing to do.
    changed: bool
    version: str
    generation: str
    #: The version that was installed before.
    previous: Optional[str]
    warnings: Tuple[str, ...]
    json: Object = field(repr=False)

    @staticmethod
    def read(events: List[Any]) -> Update:
        result = events[-1]
        return Update(
            result["changed"],
            result["version"],
            result["generation"],
            result["from"]["version"] if "from" in result else None,
            tuple(event["message"] for event in events if event.get("event") == "warning"),
            result,
        )


@dataclass(frozen=True)
class Finding:
    """What is wrong, how bad it is, why, and what to do."""

    #: A name for programs, such as `missing`, `damaged` or `denied`.
    kind: str
    #: `note`, `warning` or `critical`.
    severity: str
    path: Optional[str]
    #: The affected database, if any.
    database: Optional[str]
    what: str
    why: Optional[str]
    #: What to do; None if nothing helps.
    advice: Optional[str]

    @staticmethod
    def read(answer: Optional[Object]) -> Optional[Finding]:
        if answer is None:
            return None
        names = ("path", "database", "what", "why", "advice")
        return Finding(answer["kind"], answer["severity"], *(answer.get(name) for name in names))


@dataclass(frozen=True)
class DatabaseStatus:
    name: str
    kind: str
    path: str
    #: `sound`, `living`, `missing`, `changed`, `damaged` or `unverified`.
    state: str
    #: The fault; None if none is known.
    finding: Optional[Finding]


@dataclass(frozen=True)
class Status:
    """The state of a store."""

    product: str
    #: None if no release is installed.
    version: Optional[str]
    generation: Optional[str]
    databases: Tuple[DatabaseStatus, ...]
    #: What an operator should know, worst first.
    findings: Tuple[Finding, ...]
    #: Updates that a crash interrupted; `moult recover` finishes or undoes them, as does the next update.
    unfinished: Tuple[str, ...]
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> Status:
        databases = [
            DatabaseStatus(
                each["name"], each["kind"], each["path"], each["state"], Finding.read(each.get("finding"))
            )
            for each in answer["databases"]
        ]
        findings = [finding for each in answer["findings"] if (finding := Finding.read(each))]
        return Status(
            answer["product"],
            answer.get("installed"),
            answer.get("generation"),
            tuple(databases),
            tuple(findings),
            tuple(answer["unfinished"]),
            answer,
        )


@dataclass(frozen=True)
class Check:
    """One check of one database."""

    subject: str
    method: str
    #: None if nothing could be checked.
    sound: Optional[bool]
    finding: Optional[Finding]


@dataclass(frozen=True)
class Verification:
    sound: bool
    checks: Tuple[Check, ...]
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> Verification:
        checks = [
            Check(each["subject"], each["method"], each.get("sound"), Finding.read(each.get("finding")))
            for each in answer["checks"]
        ]
        return Verification(answer["sound"], tuple(checks), answer)


@dataclass(frozen=True)
class Replacement:
    """The result of `replace` or `undo_replace`."""

    file: str
    copies: int
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> Replacement:
        return Replacement(answer["file"], answer["copies"], answer)
