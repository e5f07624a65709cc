"""Connections to writable databases that stay open, so that other connections can be closed safely.

SQLite's locks belong to the process: when any descriptor of a file is closed, the kernel drops all of them. SQLite defers such a
close while it has a lock, but between its check and the close, another thread can take one. Here, a parked connection holds a
read lock while another connection is closed, and SQLite closes the descriptor when that lock ends, in one step.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from typing import Any, Callable, Dict, List, Tuple, TypeVar

from .forks import File, tracked


class Cursor(sqlite3.Cursor):
    """A cursor that a forked child cannot use."""


AnyCursor = TypeVar("AnyCursor", bound=sqlite3.Cursor)


class SafeConnection(sqlite3.Connection):
    """A connection that drops no lock of another thread when it is closed, and that a forked child cannot use."""

    closed = False
    #: In a forked child. Its class refuses every use, but a method that was bound before the fork is still that of this class.
    is_of_parent = False
    _parked: Tuple[sqlite3.Connection, ...] = ()
    #: The writable files of this connection.
    files: Tuple[File, ...] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()
        tracked.open.add(self)

    def cursor(self, factory: Callable[[sqlite3.Connection], AnyCursor] = Cursor) -> AnyCursor:  # type: ignore
        cursor = super().cursor(factory)
        self._cursors.add(cursor)
        return cursor

    # Some versions of sqlite3 would make a cursor without calling cursor().
    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().executemany(*arguments)

    def executescript(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().executescript(*arguments)

    def park(self, uri: str, path: str) -> None:
        """Must be called for each writable file of this connection. A missing file is reported when it is used."""
        with contextlib.suppress(FileNotFoundError):
            self._parked = (*self._parked, parked.open(uri, path))
            self.files = (*self.files, file_at(path))

    def close(self) -> None:
        if not self.closed:
            # Raises sqlite3.ProgrammingError in another thread than that of the connection.
            super().rollback()
            self.closed = True
            parked.close(self)

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.close()


def file_at(path: str) -> File:
    facts = os.stat(path)
    return facts.st_dev, facts.st_ino


def _is_over(connection: sqlite3.Connection) -> bool:
    return getattr(connection, "closed", False) and connection not in parked._late


class _ParkedConnection(sqlite3.Connection):
    """Can be tracked, unlike objects of its base class."""


class Parked:
    """The parked connections of this process: one for each file, without a lock except while another connection is closed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._by_file: Dict[File, sqlite3.Connection] = {}
        #: Connections that could not be closed, because another process had locked a file.
        self._late: List[SafeConnection] = []

    def open(self, uri: str, path: str) -> sqlite3.Connection:
        """Returns the parked connection to a file. A file that was replaced gets another one, and the old one stays."""
        key = file_at(path)
        with self._lock:
            if key not in self._by_file:
                made = sqlite3.connect(
                    uri, uri=True, timeout=1, isolation_level=None, check_same_thread=False, factory=_ParkedConnection
                )
                try:
                    tracked.check(key, path, made)
                except BaseException:
                    made.close()
                    raise
                tracked.open.add(made)
                self._by_file[key] = made
            return self._by_file[key]

    def close(self, connection: SafeConnection) -> None:
        with self._lock:
            late, self._late = self._late, []
            self._late = [one for one in [*late, connection] if not self._is_closed(one)]

    def _is_closed(self, connection: SafeConnection) -> bool:
        begun: List[sqlite3.Connection] = []
        try:
            for one in connection._parked:
                begun.append(one)
                one.execute("BEGIN")
                one.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.OperationalError:
            return False
        except sqlite3.DatabaseError:
            # The file is damaged, so no thread has a transaction on it.
            pass
        else:
            try:
                sqlite3.Connection.close(connection)
            except sqlite3.ProgrammingError:
                # It belongs to another thread, which may close it later, or has ended.
                return False
            return True
        finally:
            for one in begun:
                if one.in_transaction:
                    one.rollback()
        sqlite3.Connection.close(connection)
        return True

    def release(self, path: str) -> bool:
        """Closes the parked connection to a file that no other connection of this package uses. Returns whether it did."""
        with self._lock, contextlib.suppress(FileNotFoundError):
            key = file_at(path)
            users = (each for each in [*tracked.open, *self._late] if not isinstance(each, _ParkedConnection))
            if key in self._by_file and not any(key in getattr(each, "files", ()) for each in users if not _is_over(each)):
                self._by_file.pop(key).close()
                return True
        return False

    def before_fork(self) -> None:
        """Waits until no thread closes a connection, so that no parked one has a transaction."""
        self._lock.acquire()

    def after_fork(self) -> None:
        self._lock.release()

    def in_child(self) -> None:
        tracked.leave_to_parent()
        self.__init__()  # type: ignore[misc]


parked = Parked()
os.register_at_fork(before=parked.before_fork, after_in_parent=parked.after_fork, after_in_child=parked.in_child)
