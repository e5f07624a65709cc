"""Connections after fork().

A forked child copies the connections of its parent, and SQLite's record of their locks. The kernel leaves the locks with the parent. A statement on such a connection would read and write without a lock, a new connection would count the locks
of the parent as its own, and closing one would roll back the parent's transaction on disk. So in a child:

- connections without an open transaction or statement are closed at once, which changes nothing on disk and makes SQLite forget
  their locks; all other connections stay open until the process ends;
- every use of a connection or cursor of the parent raises MoultError;
- before the package opens a writable file for the first time, it tests whether SQLite really takes a lock on it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
import time
import weakref
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Set, Tuple

from .errors import MoultError

try:
    import ctypes
except ImportError:
    ctypes = None  # type: ignore[assignment]

File = Tuple[int, int]

#: How long a child waits until another process lets it read, in seconds.
_PATIENCE = 30.0

_ADVICE = (
    "Fork while no transaction is open and no cursor has rows left to fetch. Otherwise, start a program instead: with subprocess, "
    'or with multiprocessing.set_start_method("spawn").'
)


class Tracked:
    """The connections of this process, and in a forked child those of its parent."""

    def __init__(self) -> None:
        self.open: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        #: Connections that a child must not close.
        self.kept: List[sqlite3.Connection] = []
        self.is_child = False
        self.process, self.parent = os.getpid(), 0
        #: The files that the parent used in a transaction or a statement when it forked this child.
        self._in_use: Set[File] = set()
        #: The files on which SQLite was seen to take locks in this child.
        self._sound: Set[File] = set()

    def leave_to_parent(self) -> None:
        """Is called in a new child, before it runs any other code of the program."""
        inherited, self.open = list(self.open), weakref.WeakSet()
        self.is_child, self.parent, self.process = True, self.process, os.getpid()
        self._sound.clear()
        for connection in inherited:
            state = _close_idle(connection)
            if state == "in use":
                self._in_use.update(getattr(connection, "files", ()))
            _take_away(connection)
            if state != "closed":
                self._keep(connection)

    def _keep(self, connection: sqlite3.Connection) -> None:
        self.kept.append(connection)
        # When CPython ends, it also destroys objects that a module references, so this reference is never released.
        if ctypes is not None and hasattr(ctypes, "pythonapi"):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def check(self, file: File, path: str, connection: sqlite3.Connection) -> None:
        """Raises MoultError in a forked child in which SQLite counts the locks of the parent as its own."""
        if not self.is_child or file in self._sound:
            return
        if file in self._in_use or not self._takes_locks(file, connection):
            what = f"cannot open {path} in this process"
            why = f"it was forked while process {self.parent} used the file, so SQLite would read and write without locks"
            raise MoultError(what, why, _ADVICE, code="E402")
        self._sound.add(file)

    def _takes_locks(self, file: File, connection: sqlite3.Connection) -> bool:
        if not os.path.isdir("/proc/self/fdinfo"):
            # Nothing can be tested.
            return not self.kept
        end = time.monotonic() + _PATIENCE
        while (takes := _takes_locks(file, connection, time.monotonic() > end)) is None:
            pass
        return takes


tracked = Tracked()


def refuse(*_: Any, **__: Any) -> NoReturn:
    """Stands for each method of a connection or cursor of the parent."""
    raise MoultError(
        "cannot use this connection in a forked process",
        f"process {tracked.parent} opened it before the fork, and its locks are not inherited",
        "Get another one in this process, from store.connection or store.connect().",
        code="E402",
    )


def _nothing(*_: Any) -> bool:
    return False


def _end(one: Any, *_: Any) -> None:
    one.closed = True
    if hasattr(one, "lease"):
        one.lease.close()


#: What a child may use. Transactions belong to the parent, so nothing happens to them.
_HARMLESS = {
    **{name: _nothing for name in ("rollback", "interrupt", "__exit__")},
    **{name: _end for name in ("close", "__del__")},
    "is_of_parent": True,
    # The store and the pool of SQLAlchemy replace such a connection.
    "is_outdated": True,
    "in_use": False,
    "has_transaction": False,
}
_REFUSED = ("__enter__", "__call__", "__next__", "__iter__", "in_transaction", "total_changes")


def _of_parent(kind: type) -> Dict[str, Any]:
    """Returns the members of a class whose objects cannot be used."""
    found: Dict[str, Any] = {}
    for name in dir(kind):
        member = getattr(kind, name)
        if name in _REFUSED or not (name.startswith("_") or isinstance(member, type)):
            found[name] = refuse if callable(member) else property(refuse)
    for name in ("isolation_level", "row_factory", "text_factory"):
        found.pop(name, None)
    return {**found, **_HARMLESS}


def _take_away(connection: sqlite3.Connection) -> None:
    # With another class, neither the program nor sqlite3 can reach the statements; use in the parent costs no time.
    for one in [*getattr(connection, "_cursors", ()), connection]:
        kind = type(one)
        base = sqlite3.Connection if isinstance(one, sqlite3.Connection) else sqlite3.Cursor
        try:
            one.__class__ = type(kind.__name__, (kind,), _of_parent(base))
        except TypeError:
            # A cursor of a class that the program has chosen, and that cannot be replaced: its connection may be closed.
            pass


def _close_idle(connection: sqlite3.Connection) -> str:
    """Closes a connection without transactions and statements; returns `closed`, `in use` or `unknown`."""
    try:
        if connection.in_transaction:
            return "in use"
        # SQLite refuses to redefine a function while a statement is running. This is the only way to detect that.
        connection.create_function("moult_in_use", 0, int)
        # A cursor may keep its statement, and a statement the connection.
        for cursor in getattr(connection, "_cursors", ()):
            sqlite3.Cursor.close(cursor)
        sqlite3.Connection.close(connection)
    except sqlite3.ProgrammingError as error:
        # It belongs to another thread of the parent, or is closed already.
        return "closed" if "closed" in str(error) else "unknown"
    except sqlite3.Error:
        return "in use"
    return "closed"


def _takes_locks(file: File, connection: sqlite3.Connection, is_late: bool) -> Optional[bool]:
    """Returns whether a reader in this process gets a lock from the kernel, as it does unless SQLite believes that it has one.

    None means that another process keeps readers out, which is raised as an error if it is too late to try again.
    """
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        return _has_lock(file)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            # Use of the database shows the cause.
            return True
        if not _is_locked(file):
            # The parent had the lock.
            return False
        if is_late:
            raise
        return None
    except sqlite3.DatabaseError:
        # The file is damaged, which use of the database shows.
        return True
    finally:
        if connection.in_transaction:
            connection.rollback()


def _descriptors(file: File) -> Iterator[int]:
    for name in os.listdir("/proc/self/fd"):
        try:
            facts = os.stat(int(name))
        except OSError:
            # The descriptor of this list, or one that another thread has closed.
            continue
        if (facts.st_dev, facts.st_ino) == file:
            yield int(name)


def _has_lock(file: File) -> bool:
    """Returns whether this process has a lock on a file, as the kernel sees it."""
    for descriptor in _descriptors(file):
        with open(f"/proc/self/fdinfo/{descriptor}") as facts:
            if any(line.startswith("lock:") and " POSIX " in line for line in facts):
                return True
    return False


def _is_locked(file: File) -> bool:
    """Returns whether another process has a lock that keeps SQLite from reading."""
    descriptor = next(_descriptors(file), None)
    if descriptor is None:
        return True
    # SQLite's bytes: the pending lock, and the range of shared locks.
    for start, length in ((0x40000000, 1), (0x40000002, 510)):
        question = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, start, length, 0)
        if struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_GETLK, question))[0] != fcntl.F_UNLCK:
            return True
    return False
