"""A moult store: its databases, and the command that updates them."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Iterable, List, Optional, Tuple, Type, Union

from .command import Command, Words, option, repeated
from .connection import Connection, close_if_unused, open_release
from .copies import warn_of_second
from .errors import MoultError
from .lease import Lease, installed
from .results import Plan, Status, Update, Verification

Path = Union[str, "os.PathLike[str]"]


class Attachments(Tuple[Tuple[str, str], ...]):
    """Pairs of schema name and URI. The files stay in place until `close()`, or until nothing references this object."""

    lease: Lease

    def close(self) -> None:
        self.lease.close()

    def __enter__(self) -> Attachments:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class _Connections(threading.local):
    """The connections of one thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.newest: Optional[Connection] = None
        #: Connections to earlier releases. Only cursors and variables of the program keep them open.
        self.earlier: List[weakref.ref[Connection]] = []

    def in_transaction(self) -> Optional[Connection]:
        """Returns the connection that commit() must reach: an earlier one may have an open `with` block or transaction.

        The newest of several is returned first, and the others after its transaction has ended.
        """
        all_ = [self.newest, *(reference() for reference in reversed(self.earlier))]
        open_ = [connection for connection in all_ if connection is not None and not connection.closed]
        entered = [connection for connection in open_ if connection.entered]
        return next(iter(entered or [connection for connection in open_ if connection.has_transaction]), None)


class Store:
    """The store at `path`. One object serves all threads; nothing is read or started before it is needed.

    `command` is the path of `moult`. Without this argument, the path comes from the environment variable MOULT; if that is
    not set, the command in this package is used, or else the one in PATH. Only the methods that run the command need it.

    `timeout` is how many seconds connections wait for a lock. `configure` is called with each new connection, for
    instance to set its `row_factory`.
    """

    def __init__(
        self,
        path: Path,
        command: Optional[Path] = None,
        *,
        timeout: float = 5.0,
        configure: Optional[Callable[[Connection], object]] = None,
    ) -> None:
        self.path = os.path.realpath(path)
        self._timeout, self._configure = timeout, configure
        self._command = Command(command)
        self._connections = _Connections()

    def __repr__(self) -> str:
        return f"Store({self.path!r})"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection of this thread. The next use of `connection` opens another one."""
        mine = self._of_this_process()
        newest, mine.newest = mine.newest, None
        if newest is not None:
            newest.close()

    @property
    def generation(self) -> str:
        """The name of the installed generation. It changes before `shared` and `user` databases have their new content.

        Use `connection.is_outdated` to notice a new release.
        """
        return installed(self.path)

    @property
    def release(self) -> str:
        """The version of the installed release."""
        with self.lease() as lease:
            return lease.version

    def lease(self) -> Lease:
        """Takes a lease on the installed release, for programs that open its files themselves."""
        return Lease(self.path)

    def attachments(self, read_only: bool = False, group: Optional[str] = None) -> Attachments:
        """Returns the schema names and URIs of the databases that share a connection, with a lease. The user database is `main`.

        Open writable databases without SQLITE_OPEN_CREATE, and only with one copy of SQLite: if another library in the process has
        its own copy, such as apsw, do not use `connection` or `sqlite3` for them. Two copies drop each other's locks, and rows are
        lost.

        A release with more databases than SQLite can attach divides them into groups, each for a separate connection.
        """
        lease = self.lease()
        try:
            databases = lease.group(group)
        except MoultError:
            lease.close()
            raise
        pairs = Attachments((database.schema, database.uri(read_only)) for database in databases)
        pairs.lease = lease
        if any(database.kind != "reference" for database in databases):
            warn_of_second(level=2)
        return pairs

    def connect(
        self,
        *,
        group: Optional[str] = None,
        read_only: bool = False,
        timeout: Optional[float] = None,
        isolation_level: Optional[str] = "",
        detect_types: int = 0,
        check_same_thread: bool = True,
        cached_statements: int = 128,
    ) -> Connection:
        """Opens all databases of the installed release on one connection, which keeps this release until it is closed.

        With `group`, it opens the databases of that group instead of those without one. The default of `timeout` is that of the
        store; the other arguments are those of `sqlite3.connect`.
        """
        connection = open_release(
            self.lease(),
            group=group,
            read_only=read_only,
            timeout=self._timeout if timeout is None else timeout,
            isolation_level=isolation_level,
            detect_types=detect_types,
            check_same_thread=check_same_thread,
            cached_statements=cached_statements,
        )
        if self._configure is not None:
            self._configure(connection)
        return connection

    @property
    def connection(self) -> Connection:
        """This thread's connection to the newest release.

        An update announces a release when the content of all its databases is there. From then on, this is another connection, so
        a program redraws its views when it is not the one before. It stays the same while the program is in a `with` block on it, a transaction is open or a cursor has rows left to
        fetch. The previous connection stays open for its cursors, which continue
        to read their release; it is closed when neither they nor the program reference it.
        """
        mine = self._of_this_process()
        connection = mine.in_transaction()
        if connection is None:
            newest = mine.newest
            if newest is None or newest.closed:
                mine.newest = self.connect()
            elif newest.is_outdated and not newest.in_use:
                mine.earlier.append(weakref.ref(newest))
                mine.newest = self.connect()
            connection, newest = mine.newest, None
            mine.earlier = [reference for reference in mine.earlier if not close_if_unused(reference)]
        assert connection is not None
        connection.is_between_transactions = False
        return connection

    def _of_this_process(self) -> _Connections:
        mine = self._connections
        if mine.process != os.getpid():
            # The connections of the parent stay open, see connection.py.
            mine.process, mine.newest, mine.earlier = os.getpid(), None, []
        return mine

    def plan(
        self,
        manifest: Optional[Path] = None,
        *,
        follow: Optional[str] = None,
        allow_downgrade: bool = False,
        accept_unpreserved: bool = False,
        take_over: Iterable[str] = (),
        app: Optional[str] = None,
        save: Optional[Path] = None,
        timeout: Optional[float] = None,
    ) -> Plan:
        """Returns the changes that `apply` would make. `save` writes the plan to a file, for `apply(plan=...)`."""
        words = _release(manifest, follow, allow_downgrade, accept_unpreserved, take_over, app)
        return Plan.read(self._run("plan", [*option("--out", _absolute(save)), *words], timeout)[-1])

    def apply(
        self,
        manifest: Optional[Path] = None,
        *,
        create: bool = False,
        keys: Iterable[str] = (),
        follow: Optional[str] = None,
        allow_downgrade: bool = False,
        accept_unpreserved: bool = False,
        take_over: Iterable[str] = (),
        app: Optional[str] = None,
        plan: Optional[Path] = None,
        wait: int = 0,
        retry: int = 0,
        wait_for_readers: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Update:
        """Installs a release: that of the manifest, that of a saved plan, or the newest one of the store's feed.

        `wait`, `retry` and `wait_for_readers` are seconds, as for the command. After `timeout` seconds, the command is
        asked to stop. It then undoes its work, or finishes if it cannot undo it.
        """
        words = [
            *option("--create", create),
            *repeated("--key", keys),
            *option("--plan", _absolute(plan)),
            *option("--wait", wait),
            *option("--retry", retry),
            *option("--wait-for-readers", wait_for_readers),
            *_release(manifest, follow, allow_downgrade, accept_unpreserved, take_over, app),
        ]
        return Update.read(self._run("apply", words, timeout))

    def rollback(
        self,
        to: Optional[str] = None,
        *,
        reason: Optional[str] = None,
        force: bool = False,
        take_over: Iterable[str] = (),
        wait: int = 0,
        wait_for_readers: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Update:
        """Rolls back to an earlier release, and puts the current one on hold."""
        words = [
            *option("--to", to),
            *option("--reason", reason),
            *option("--force", force),
            *repeated("--take-over", take_over),
            *option("--wait", wait),
            *option("--wait-for-readers", wait_for_readers),
        ]
        return Update.read(self._run("rollback", words, timeout))

    def status(self, *, timeout: Optional[float] = None) -> Status:
        """Returns the installed release and the state of each database."""
        return Status.read(self._run("status", [], timeout)[-1])

    def verify(self, *names: str, deep: bool = False, timeout: Optional[float] = None) -> Verification:
        """Checks these databases, or all of them. A fault is a result, not an exception: see `sound`."""
        return Verification.read(self._run("verify", [*option("--deep", deep), *names], timeout)[-1])

    def _run(self, verb: str, words: Words, timeout: Optional[float]) -> List[Any]:
        return self._command.run([verb, "--json", "--store", self.path, *words], timeout)


def _absolute(path: Optional[Path]) -> Optional[str]:
    # An absolute path cannot be mistaken for an option.
    return None if path is None else os.path.abspath(path)


def _release(
    manifest: Optional[Path],
    follow: Optional[str],
    allow_downgrade: bool,
    accept_unpreserved: bool,
    take_over: Iterable[str],
    app: Optional[str],
) -> Words:
    """Returns the arguments that `plan` and `apply` share."""
    named = _absolute(manifest)
    return [
        *option("--follow", follow),
        *option("--allow-downgrade", allow_downgrade),
        *option("--accept-unpreserved", accept_unpreserved),
        *repeated("--take-over", take_over),
        *option("--app", app),
        *([named] if named else []),
    ]
