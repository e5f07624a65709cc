"""One SQLite connection with all databases of the installed release."""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import sys
import warnings
import weakref
from types import TracebackType
from typing import Literal, Optional, Type

from .copies import warn_of_second
from .errors import MoultError
from .forks import refuse
from .lease import Database, Lease
from .results import Recovered
from .parking import SafeConnection, parked


class Connection(SafeConnection):
    """A connection to one release. It holds a lease on the release until it is closed."""

    lease: Lease
    #: How `Store.open` replaced the database because it could not be loaded; None if that was not needed.
    recovered: Optional[Recovered] = None
    #: How many `with` blocks on this connection the program is in.
    entered = 0
    #: With `autocommit = False`: whether commit() or rollback() was called since the store last returned this connection.
    is_between_transactions = False
    _changes_before = 0
    _own_references = 0

    @property
    def generation(self) -> str:
        """The generation of its read-only databases."""
        return self.lease.generation

    @property
    def release(self) -> str:
        """The version of the leased release."""
        return self.lease.version

    @property
    def is_outdated(self) -> bool:
        """Whether a release was announced since this connection was opened: the content of all its databases is there."""
        return self.lease.is_outdated

    @property
    def in_use(self) -> bool:
        """Whether a `with` block on this connection is entered, a transaction is open, or a cursor has rows left to fetch.

        With `autocommit = False`, sqlite3 begins the next transaction at once. A transaction then counts as open from the
        moment when `store.connection` returns the connection until `commit()` or `rollback()`.
        """
        if self.entered or self.has_transaction:
            return True
        try:
            self._define()
        except sqlite3.OperationalError:
            return True
        return False

    @property
    def has_transaction(self) -> bool:
        """Whether the program has begun a transaction, as defined for `in_use`."""
        return self.in_transaction and (not self.is_between_transactions or self._has_changed_rows)

    @property
    def _begins_at_once(self) -> bool:
        return getattr(self, "autocommit", None) is False

    @property
    def _has_changed_rows(self) -> bool:
        return self.total_changes != self._changes_before

    def commit(self) -> None:
        if self.is_of_parent:
            refuse()
        super().commit()
        self._note_end()

    def rollback(self) -> None:
        if not self.is_of_parent:
            super().rollback()
            self._note_end()

    def _note_end(self) -> None:
        self.is_between_transactions, self._changes_before = self._begins_at_once, self.total_changes

    # The store returns this connection until the block ends, because only this connection is then committed or rolled back.
    def __enter__(self) -> Connection:
        super().__enter__()
        self.entered += 1
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> Literal[False]:
        self.entered -= 1
        if not self.is_of_parent:
            super().__exit__(kind, error, trace)
            self._note_end()
        return False

    def _define(self) -> None:
        # SQLite refuses to redefine a function while a statement is running. This is the only way to detect that.
        self.create_function("moult_in_use", 0, int)

    def close(self) -> None:
        if not self.is_of_parent:
            super().close()
        if hasattr(self, "lease"):
            self.lease.close()

    def __del__(self) -> None:
        # Cursors reference their connection, so no cursor can still use this one.
        with contextlib.suppress(sqlite3.Error):
            self._abandon()

    def _abandon(self) -> None:
        unsaved = not self.closed and self.in_transaction and (not self._begins_at_once or self._has_changed_rows)
        if unsaved:
            warnings.warn(f"uncommitted changes of {self!r} were rolled back", ResourceWarning, source=self)
        self.close()


def close_if_unused(reference: weakref.ref[Connection]) -> bool:
    """Closes a connection that neither a cursor nor the program references; returns whether it is closed or gone.

    A connection references itself in its cache of statements, so it would otherwise stay open until the garbage
    collector runs, as it does in PyPy, which has no reference counts.
    """
    count = _count(reference)
    connection = reference()
    if connection is not None and 0 < count <= connection._own_references:
        connection._abandon()
    return connection is None or connection.closed


def _count(reference: weakref.ref[Connection]) -> int:
    """Returns the number of references to a connection, including its own; 0 if Python does not count references."""
    # The connection must not be in a variable here, because a variable is a reference.
    return sys.getrefcount(reference()) if hasattr(sys, "getrefcount") else 0


def open_release(
    lease: Lease,
    *,
    group: Optional[str],
    read_only: bool,
    timeout: float,
    isolation_level: Optional[str],
    detect_types: int,
    check_same_thread: bool,
    cached_statements: int,
    only: Optional[str] = None,
) -> Connection:
    """Opens the databases of a leased release, or only one of them. Then the connection owns the lease."""
    try:
        databases = lease.group(group) if only is None else (lease.database(only)._replace(schema="main"),)
    except MoultError:
        lease.close()
        raise
    main = next((database for database in databases if database.schema == "main"), None)
    if any(database.kind != "reference" for database in databases):
        # The caller of Store.connect().
        warn_of_second(level=3)

    connection: Optional[Connection] = None
    opening = main
    try:
        # First, because a forked child may not open a file that its parent uses.
        for opening in databases:
            if opening.kind != "reference":
                with contextlib.suppress(FileNotFoundError):
                    parked.open(opening.existing_uri(read_only), opening.path)
        opening = main
        connection = sqlite3.connect(
            main.existing_uri(read_only) if main else ":memory:",
            uri=True,
            factory=Connection,
            timeout=timeout,
            isolation_level=isolation_level,  # type: ignore[arg-type]
            detect_types=detect_types,
            check_same_thread=check_same_thread,
            cached_statements=cached_statements,
        )
        connection.lease = lease
        connection._define()
        if main is None and databases:
            opening = databases[0]
            # All databases of a connection must have the same text encoding.
            connection.execute(f"PRAGMA encoding = '{_encoding(opening, read_only)}'")
        # SQLite reads a file only when the file is first used.
        connection.execute("PRAGMA schema_version").fetchone()
        for opening in databases:
            _check_content(opening, lease)
            if opening.kind != "reference":
                connection.park(opening.existing_uri(read_only), opening.path)
            if opening is not main:
                schema = opening.schema.replace('"', '""')
                connection.execute(f'ATTACH ? AS "{schema}"', [opening.existing_uri(read_only)])
        # One reference is the local variable.
        connection._own_references = _count(weakref.ref(connection)) - 1
    except BaseException as error:
        if connection is not None:
            connection.close()
        lease.close()
        explained = _explain(error, opening, lease) if opening and isinstance(error, sqlite3.Error) else None
        if explained:
            raise explained from error
        raise
    return connection


def _encoding(database: Database, read_only: bool) -> str:
    # Read through SQLite, because closing a file that this process also has open elsewhere would drop SQLite's locks.
    uri = database.existing_uri(read_only)
    if database.kind != "reference":
        return _pragma_encoding(parked.open(uri, database.path))
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        return _pragma_encoding(connection)


def _pragma_encoding(connection: sqlite3.Connection) -> str:
    encoding: str = connection.execute("PRAGMA encoding").fetchone()[0]
    return encoding


def _check_content(database: Database, lease: Lease) -> None:
    # SQLite opens an empty file as a database without tables. Releases contain no such file; an app may empty a cache.
    if database.kind != "cache" and os.path.exists(database.path) and os.path.getsize(database.path) == 0:
        what = f"cannot open database {database.name} at {database.path}"
        verify = f"Check the store: moult verify --store {shlex.quote(lease.directory)}"
        raise MoultError(what, "the file is empty", verify, code="E521")


def _explain(error: sqlite3.Error, database: Database, lease: Lease) -> Optional[MoultError]:
    """Returns the cause, if the file shows it. Other errors, such as a locked file, remain errors of sqlite3."""
    what = f"cannot open database {database.name} at {database.path}"
    verify = f"Check the store: moult verify --store {shlex.quote(lease.directory)}"
    if not os.path.exists(database.path):
        return MoultError(what, "the file is missing", verify, code="E521")
    if not os.path.isfile(database.path):
        return MoultError(what, "it is not a regular file", verify, code="E401")
    if not os.access(database.path, os.R_OK):
        now = f"Run the program as a user who may read it, or change its mode: ls -l {shlex.quote(database.path)}"
        return MoultError(what, "this user may not read the file", now, code="E401")
    # sqlite3 raises exactly this class for a damaged file, and subclasses for everything else.
    if type(error) is sqlite3.DatabaseError:
        return MoultError(what, str(error), verify, code="E403")
    return None
