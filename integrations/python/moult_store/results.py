"""The results of the command. Each has the most important fields; `json` is the complete object, as in docs/json.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Tuple, Union

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """One line of a plan."""

    mark: str
    text: str
    step: str
    database: Optional[str]
    json: Object = field(repr=False)

    def __str__(self) -> str:
        return f"{self.mark} {self.database}: {self.text}" if self.database else f"{self.mark} {self.text}"

    @staticmethod
    def read(answer: Object) -> Effect:
        return Effect(answer["mark"], answer["text"], answer["step"], answer.get("database"), answer)


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
        return Plan(
            answer["changes"],
            answer["to"]["version"],
            answer["from"]["version"] if "from" in answer else None,
            tuple(map(Effect.read, answer["effects"])),
            tuple(answer["warnings"]),
            answer,
        )


@dataclass(frozen=True)
class InterruptedUpdate:
    """An update that a crash had interrupted."""

    #: `finished`; `undone`; or `cleaned`: nothing had been changed, and the staged files were removed.
    ending: str
    #: The version before the update; None if there was none, or if it is unknown.
    previous: Optional[str]
    #: The version that the update was to install; None if it is unknown.
    version: Optional[str]
    #: The update and its end in a sentence.
    text: str
    json: Object = field(repr=False)

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def read(answer: Object) -> InterruptedUpdate:
        previous, version = (answer[name]["version"] if name in answer else None for name in ("from", "to"))
        return InterruptedUpdate(answer["ending"], previous, version, answer["text"], answer)


@dataclass(frozen=True)
class Update:
    """The result of `apply`, `follow` or `rollback`."""

    #: False if there was nothing to do.
    changed: bool
    version: str
    generation: str
    #: The version that was installed before.
    previous: Optional[str]
    warnings: Tuple[str, ...]
    #: Updates that a crash had interrupted, and that were finished or undone first.
    recovered: Tuple[InterruptedUpdate, ...]
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
            tuple(InterruptedUpdate.read(event) for event in events if event.get("event") == "recovered"),
            result,
        )


@dataclass(frozen=True)
class Working:
    """The progress of a long task, in bytes; `total` is 0 if it is not known."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Decided:
    """All files are staged and verified; the update can no longer be cancelled."""


@dataclass(frozen=True)
class Done:
    """An effect of the plan was applied."""

    effect: Effect


@dataclass(frozen=True)
class Warned:
    """A problem that the operator should know about; the update continues."""

    message: str


#: An event of an update, for `progress`.
Progress = Union[Working, Decided, Done, Warned]


def progress_of(event: Object) -> Optional[Progress]:
    kind = event.get("event")
    if kind == "progress":
        return Working(event["what"], event["done"], event["total"])
    if kind == "decided":
        return Decided()
    if kind == "done" and event["pass"] == "apply":
        return Done(Effect.read(event["effect"]))
    return Warned(event["message"]) if kind == "warning" else None


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
        path, database, why, advice = map(answer.get, ("path", "database", "why", "advice"))
        return Finding(answer["kind"], answer["severity"], path, database, answer["what"], why, advice)


@dataclass(frozen=True)
class DatabaseStatus:
    name: str
    kind: str
    path: str
    #: The size in bytes; None if the file is missing.
    size: Optional[int]
    #: `sound`, `living`, `missing`, `changed`, `damaged`, `blocked` or `unverified`.
    state: str
    #: The fault; None if none is known.
    finding: Optional[Finding]


@dataclass(frozen=True)
class Hold:
    """A version, a range of versions, or `*`, that must not be installed."""

    release: str
    reason: str

    @staticmethod
    def read(answer: Object) -> Hold:
        return Hold(answer["release"], answer["reason"])


@dataclass(frozen=True)
class Status:
    """The state of a store."""

    product: str
    #: None if no release is installed.
    version: Optional[str]
    generation: Optional[str]
    databases: Tuple[DatabaseStatus, ...]
    #: The generations available for a rollback.
    kept: Tuple[str, ...]
    #: The releases that must not be installed.
    holds: Tuple[Hold, ...]
    #: The faults and advice for an operator, worst first.
    findings: Tuple[Finding, ...]
    #: Why the latest update failed; None if one has succeeded since.
    failure: Optional[str]
    #: Updates that a crash interrupted; `moult recover` finishes or undoes them, as does the next update.
    unfinished: Tuple[str, ...]
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> Status:
        databases = [
            DatabaseStatus(
                each["name"],
                each["kind"],
                each["path"],
                each.get("size"),
                each["state"],
                Finding.read(each.get("finding")),
            )
            for each in answer["databases"]
        ]
        findings = [finding for each in answer["findings"] if (finding := Finding.read(each))]
        last = answer.get("last", {})
        return Status(
            answer["product"],
            answer.get("installed"),
            answer.get("generation"),
            tuple(databases),
            tuple(each["name"] for each in answer["generations"] if not each["current"]),
            tuple(map(Hold.read, answer["holds"])),
            tuple(findings),
            last.get("reason", last["outcome"]) if last.get("outcome") in ("failed", "undone", "stuck") else None,
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

    @property
    def findings(self) -> Tuple[Finding, ...]:
        """What is wrong, or could not be checked; empty if nothing is."""
        return tuple(check.finding for check in self.checks if check.finding)

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


@dataclass(frozen=True)
class HistoryEntry:
    """An operation in the history of a store."""

    #: When the operation ended, such as `2026-11-20T10:00:00Z`.
    time: str
    #: The operation, such as `update`, `rollback`, `reset notes` or `hold 2.0.0`.
    action: str
    #: The generations before and after the operation.
    previous: Optional[str]
    generation: str
    #: Whether the operation succeeded, immediately or after an interruption.
    is_done: bool
    #: The reason for the operation, or why it failed.
    reason: Optional[str]
    json: Object = field(repr=False)

    def __str__(self) -> str:
        before = f"{self.previous} -> " if self.previous else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.time} {self.action} {before}{self.generation}: {'done' if self.is_done else 'failed'}{reason}"

    @staticmethod
    def read(answer: Object) -> HistoryEntry:
        is_done = answer["outcome"] in ("done", "finished")
        return HistoryEntry(
            answer["time"], answer["action"], answer.get("from"), answer["to"], is_done, answer.get("reason"), answer
        )


@dataclass(frozen=True)
class QuarantinedDatabase:
    """Old content of a database, kept in quarantine."""

    #: The name for `restore_quarantined` and `export_quarantined`.
    id: str
    #: The name of the database, and why its content was set aside; None if the record cannot be read.
    database: Optional[str]
    reason: Optional[str]
    #: The directory with the database file and its sidecars. Copy it before you open the database.
    directory: str
    #: The size in bytes.
    size: int
    #: When the content was set aside, such as `2026-11-20T10:00:00Z`.
    time: str
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> QuarantinedDatabase:
        return QuarantinedDatabase(
            answer["id"],
            answer.get("database"),
            answer.get("why"),
            answer["directory"],
            answer["size"],
            answer["time"],
            answer,
        )


@dataclass(frozen=True)
class Recovered:
    """A database that was replaced with a new one."""

    #: The fault of the old database.
    why: str
    #: The directory with the old file and its sidecars; None if there were none.
    set_aside: Optional[str]
    #: A database with the rows that could be salvaged; None if there were none.
    salvaged: Optional[str]


@dataclass(frozen=True)
class CacheState:
    """The state of a cache after `cache`."""

    #: Whether the cache is new and empty: then fetch the data again.
    is_fresh: bool
    #: Why the old file could not be used.
    why: Optional[str]
    json: Object = field(repr=False)

    @staticmethod
    def read(answer: Object) -> CacheState:
        return CacheState(answer["state"] == "recreated", answer.get("why"), answer)
