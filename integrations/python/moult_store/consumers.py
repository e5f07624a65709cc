"""The parts of a program that keep databases open, and are called before and after updates that this process runs."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterable, List, Mapping, Optional, Protocol, Set, Tuple, Type

from .command import log
from .errors import ConsumerError, InUseError, MoultError
from .lease import Contents, cache_root, installed


@dataclass(frozen=True)
class ChangedDatabase:
    """A database that changes."""

    name: str
    #: The stable path of its file.
    path: str


@dataclass(frozen=True)
class DatabaseChange:
    """A change to databases, as reported to a consumer."""

    #: The databases that change, limited to those for which the consumer is registered.
    databases: Tuple[ChangedDatabase, ...]
    #: The generation in service now, and its version; None if nothing is installed.
    generation: Optional[str]
    version: Optional[str]
    #: For `reload`: False if the update failed and the previous state was restored.
    is_installed: bool


class DatabaseConsumer(Protocol):
    """A part of a program that keeps databases open.

    Before a writable database is replaced, every consumer that uses it is asked to close it, in reverse order of registration. After
    the update, every consumer of a changed database is asked to reopen its databases, in order of registration. Both methods run in a
    thread of their own, while the caller of the update waits, so their connections need `check_same_thread=False`.
    """

    def release(self, change: DatabaseChange) -> object:
        """Closes every connection to these databases. An exception, or exceeding the time limit, prevents the update."""

    def reload(self, change: DatabaseChange) -> object:
        """Reopens the consumer's databases. For read-only databases, only this method is called."""


class ConsumerRegistration:
    """A consumer's registration with a store."""

    def __init__(
        self,
        directory: str,
        consumer: DatabaseConsumer,
        name: str,
        databases: Optional[Tuple[str, ...]],
        timeout: float,
        rolls_back: bool,
    ) -> None:
        self.name, self.directory = name, directory
        self.consumer, self.databases, self.timeout, self.rolls_back = consumer, databases, timeout, rolls_back

    def cancel(self) -> None:
        """Stops further calls to the consumer."""
        with _lock:
            if self in _registered:
                _registered.remove(self)

    def concerns(self, database: str) -> bool:
        return self.databases is None or database in self.databases

    def call(self, method: Callable[[DatabaseChange], object], change: DatabaseChange) -> Optional[str]:
        """Calls the consumer, and returns why that failed."""
        ended, faults = threading.Event(), []

        def run() -> None:
            try:
                method(change)
            except BaseException as error:
                faults.append(f"{type(error).__name__}: {error}")
            finally:
                ended.set()

        threading.Thread(target=run, name=f"moult {self.name}", daemon=True).start()
        if not ended.wait(self.timeout):
            return f"it did not return within {self.timeout:g} s"
        return faults[0] if faults else None


_lock = threading.Lock()
_registered: List[ConsumerRegistration] = []


def register(
    directory: str,
    consumer: DatabaseConsumer,
    name: Optional[str],
    databases: Optional[Iterable[str]],
    timeout: float,
    on_reload_failure: str,
) -> ConsumerRegistration:
    if on_reload_failure not in ("report", "roll-back"):
        raise ValueError('on_reload_failure is "report" or "roll-back"')
    with _lock:
        used = {each.name for each in _registered if each.directory == directory}
        wanted = found = name or type(consumer).__name__
        number = 2
        while found in used:
            found, number = f"{wanted} {number}", number + 1
        names = None if databases is None else tuple(databases)
        made = ConsumerRegistration(directory, consumer, found, names, timeout, on_reload_failure == "roll-back")
        _registered.append(made)
        return made


def consumers_of(directory: str) -> List[ConsumerRegistration]:
    """Returns the consumers of a store in this process, in order of registration."""
    with _lock:
        return [each for each in _registered if each.directory == directory]


#: The changes of a plan before which programs must close a database.
_TAKES_OUT_OF_USE = {"displace", "quarantine", "replace", "migrate", "restoreRows"}


class Calls:
    """The calls of the consumers around one change of a store: `release` on entry, and `reload` on exit.

    `plan` is the plan of the change, or the names of the databases that it replaces. The command runs in another process and cannot
    call the consumers, so they are released before it begins.
    """

    def __init__(self, directory: str, consumers: List[ConsumerRegistration], plan: Any) -> None:
        self._directory, self._consumers = directory, consumers
        self._contents = _contents(directory)
        self._changed: Set[str] = _written(plan, self._contents)
        self._released: List[ConsumerRegistration] = []
        #: Those that did not reload, with the reason.
        self.failures: List[Tuple[ConsumerRegistration, str]] = []

    def __enter__(self) -> Calls:
        for each in reversed(self._consumers):
            if not any(each.concerns(name) for name in self._changed):
                continue
            self._released.insert(0, each)
            fault = each.call(each.consumer.release, self._change(each, self._changed, False))
            if fault is None:
                log.debug("the consumer %s has released its databases", each.name)
                continue
            self._reload(self._released, self._changed, False)
            names = ", ".join(sorted(name for name in self._changed if each.concerns(name)))
            what = f"the consumer {each.name} does not release {names}"
            raise InUseError(what, fault, "Nothing was changed. Fix or stop the consumer and try again.", "E631", 75)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        before, self._contents = self._contents, _contents(self._directory)
        if error is not None and _name(before) == _name(self._contents):
            self._reload(self._released, self._changed, False)
            return
        changed = set(self._changed)
        if self._contents is not None and _name(before) != _name(self._contents):
            changed.update(self._contents.changed_since(before))
            changed.update({one.name for one in before.databases} - {one.name for one in self._contents.databases} if before else ())
        self._reload(self._consumers, changed, error is None)

    def _reload(self, consumers: Iterable[ConsumerRegistration], changed: Set[str], is_installed: bool) -> None:
        for each in consumers:
            if each not in self._released and not any(each.concerns(name) for name in changed):
                continue
            fault = each.call(each.consumer.reload, self._change(each, changed, is_installed))
            if fault is not None:
                log.warning("the consumer %s did not reload: %s", each.name, fault)
                self.failures.append((each, fault))

    def _change(self, consumer: ConsumerRegistration, changed: Set[str], is_installed: bool) -> DatabaseChange:
        contents = self._contents
        root = cache_root(self._directory) if contents is not None and changed else None
        databases = [
            ChangedDatabase(one.name, f"{root if root and one.kind == 'cache' else self._directory}/{one.file}")
            for one in (contents.databases if contents is not None else ())
            if one.name in changed and consumer.concerns(one.name)
        ]
        return DatabaseChange(
            tuple(databases),
            contents.generation if contents is not None else None,
            contents.version if contents is not None else None,
            is_installed,
        )

    def fatal(self) -> Optional[ConsumerError]:
        """Returns the error of the first consumer that did not reload and wants the release to be rolled back."""
        for each, fault in self.failures:
            if each.rolls_back:
                return ConsumerError(f"the consumer {each.name} did not reload", fault, None, "E702", 5)
        return None


def _contents(directory: str) -> Optional[Contents]:
    try:
        return Contents(directory, installed(directory))
    except MoultError:
        # Nothing is installed, or it cannot be read: the command reports that.
        return None


def _name(contents: Optional[Contents]) -> Optional[str]:
    return contents.generation if contents is not None else None


def _written(plan: Any, contents: Optional[Contents]) -> Set[str]:
    if not isinstance(plan, Mapping):
        return set(plan)
    if plan.get("origin", {}).get("then"):
        # The plan is only that of the first of several releases.
        return {one.name for one in (contents.databases if contents else ()) if one.kind != "reference"}
    return {
        each["database"]
        for each in plan.get("effects", ())
        if "database" in each and each["change"]["do"] in _TAKES_OUT_OF_USE
    }


def saved_plan(path: str) -> Any:
    """Returns a saved plan; an empty one if it cannot be read, which the command reports."""
    try:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
    except (OSError, ValueError):
        return {}
    return plan if isinstance(plan, dict) else {}
