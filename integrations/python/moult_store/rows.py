"""The rows that change between two releases, as the command compares them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any, ClassVar, Optional, Tuple, Union

from .announcements import announced
from .command import Command
from .errors import MoultError
from .lease import Contents, Lease, Seen, installed, news

SQLValue = Union[None, int, float, str, bytes]
#: The values of the columns of a key, in order, for `connection.execute`.
Key = Tuple[SQLValue, ...]


@dataclass(frozen=True)
class ChangedTable:
    """The changed rows of a table."""

    name: str
    #: The names of the columns of a key: `INTEGER PRIMARY KEY`, otherwise `rowid`, or the primary key of a table WITHOUT ROWID.
    key: Tuple[str, ...]
    #: The keys of the new rows.
    inserted: Tuple[Key, ...]
    #: The keys of the rows with other values.
    updated: Tuple[Key, ...]
    #: The keys of the rows that are gone.
    deleted: Tuple[Key, ...]
    #: Why the whole table must be read again; None if the keys are complete.
    reload: Optional[str] = None

    def __str__(self) -> str:
        if self.reload is not None:
            return f"{self.name} (read it again: {self.reload})"
        return f"{self.name} +{len(self.inserted)} ~{len(self.updated)} -{len(self.deleted)}"


@dataclass(frozen=True)
class RowChanges:
    """The rows of a database that changed between two releases."""

    #: From this number of changed rows on, the whole table must be read again, unless another limit is given.
    STANDARD_LIMIT: ClassVar[int] = 10_000

    #: The name of the database in the manifest.
    database: str
    #: Why the whole database must be read again; None if `tables` has every change.
    reload: Optional[str]
    #: The tables that changed.
    tables: Tuple[ChangedTable, ...] = ()

    def table(self, name: str) -> Optional[ChangedTable]:
        """Returns the changes of a table; None if it did not change. If the whole database must be read again, so must each table."""
        if self.reload is not None:
            return ChangedTable(name, (), (), (), (), self.reload)
        return next((table for table in self.tables if _folded(table.name) == _folded(name)), None)

    def __str__(self) -> str:
        again = f"read it again: {self.reload}" if self.reload is not None else ", ".join(map(str, self.tables))
        return f"{self.database}: {again}"

    @staticmethod
    def read(answer: Any) -> RowChanges:
        tables = tuple(
            ChangedTable(
                each["name"],
                tuple(each.get("key", ())),
                _keys(each.get("inserted", ())),
                _keys(each.get("updated", ())),
                _keys(each.get("deleted", ())),
                each.get("reload"),
            )
            for each in answer.get("tables", ())
        )
        return RowChanges(answer["name"], answer.get("reload"), tables)


def _folded(name: str) -> bytes:
    # SQLite ignores case only in ASCII.
    return name.encode("utf-8", "surrogatepass").lower()


def _keys(rows: Any) -> Tuple[Key, ...]:
    return tuple(tuple(map(_value, row)) for row in rows)


def _value(json: Any) -> SQLValue:
    """Returns a value of a row; the command prints those that JSON does not have as an object with one member."""
    if not isinstance(json, dict):
        value: SQLValue = json
        return value
    ((kind, text),) = json.items()
    if kind == "real":
        return float(text)
    data = bytes.fromhex(text)
    return data if kind == "blob" else data.decode("utf-8", "replace")


def changes_since(
    since: Union[str, Lease], command: Command, path: str, limit: int, timeout: Optional[float]
) -> Tuple[RowChanges, ...]:
    """Returns what differs in the announced release from an earlier one, given by version, generation or lease."""
    want(path)
    while True:
        now, last = installed(path), announced(path)
        earlier: Optional[Contents] = None
        if isinstance(since, Lease):
            earlier = since.contents
            if news(path, since.seen) is None:
                return ()
        else:
            before = _kept(path, since)
            if before is not None and (before == now or last is not None and before == last.generation):
                return ()
            if before is not None:
                # It may have been removed in the meantime.
                with contextlib.suppress(MoultError):
                    earlier = Contents(path, before)
        names = Contents(path, now if last is None else last.generation).changed_since(earlier)
        found = changes(Seen(earlier.generation if earlier else None, last), names, command, path, limit, timeout)
        if found is not None:
            return found


def _kept(path: str, release: str) -> Optional[str]:
    """Returns the newest kept generation with this name or version."""
    names = sorted(os.listdir(f"{path}/.moult/generations"), reverse=True)
    return next((name for name in names if release in (name, name.partition("+")[0])), None)


def changes(
    seen: Seen, names: Tuple[str, ...], command: Command, path: str, limit: int, timeout: Optional[float] = None
) -> Optional[Tuple[RowChanges, ...]]:
    """Returns the changed rows of these databases since the generation in `seen`, in the release that it says was announced.

    Returns None if another release was announced in the meantime.
    """
    before, last = seen
    if before is None or not os.path.isdir(f"{path}/.moult/generations/{before}"):
        return _again(names, "the earlier release was removed")
    if last is None or before == last.generation:
        return _again(names, "its changes were not recorded")
    words = ["watch", "--rows", "--once", "--json", "--store", path, f"--since={before}", f"--limit={limit}"]

    def is_pointless() -> bool:
        # The command would wait for the next announcement.
        return announced(path) != last or installed(path) == before

    answers = command.run(words, timeout, is_pointless=is_pointless)
    if answers and answers[-1]["generation"] == last.generation:
        return tuple(map(RowChanges.read, answers[-1]["changes"]))
    return None if announced(path) != last else _again(names, "an update is not complete")


def _again(names: Tuple[str, ...], why: str) -> Tuple[RowChanges, ...]:
    return tuple(RowChanges(name, why) for name in names)


def want(path: str) -> None:
    """Makes later updates record what they change in shared databases. Other users than the owner leave no files in the store."""
    # A store on a full or read-only file system has no records, and its apps read everything again.
    with contextlib.suppress(OSError):
        if os.lstat(f"{path}/.moult").st_uid == os.geteuid():
            os.mkdir(f"{path}/.moult/changes", 0o755)
