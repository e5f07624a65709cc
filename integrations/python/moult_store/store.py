"""A moult store: its databases, and the command that updates them."""

from __future__ import annotations

import enum
import os
import random
import re
import shlex
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple, Type, Union

from .command import Command, Words, log, option, pause, repeated
from .connection import Connection, close_if_unused, open_release
from .consumers import Calls, ConsumerRegistration, DatabaseConsumer, consumers_of, register, saved_plan
from .copies import warn_of_second
from .errors import DistrustedError, InUseError, MoultError, OperationCancelled, WillNotLoadError
from .events import Events
from .lease import Database, Lease, installed, require_recent
from .parking import parked
from .results import (
    HistoryEntry,
    Hold,
    InterruptedUpdate,
    Plan,
    Progress,
    QuarantinedDatabase,
    Recovered,
    Status,
    Update,
    Verification,
    progress_of,
)
from .rows import RowChanges, changes, changes_since, want
from .schedule import UpdateSchedule, since_last_attempt
from .settings import write_feed

Path = Union[str, "os.PathLike[str]"]


class Recovery(enum.Enum):
    """How `Store.open` handles a database that cannot be loaded."""

    #: Change nothing; the error names the file.
    NEVER = "never"
    #: Replace a cache with an empty one; leave user data unchanged.
    CACHES_ONLY = "caches only"
    #: Also set user data aside, without deleting it, and replace it with a new database.
    SET_USER_DATA_ASIDE = "set user data aside"


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

    `trusting` are lines of public keys, as in a `.pub` file. A store that is created through this object accepts only releases signed
    with them, and an existing store must trust exactly these keys.

    `timeout` is how many seconds connections wait for a lock. `configure` is called with each new connection, for
    instance to set its `row_factory`.
    """

    def __init__(
        self,
        path: Path,
        command: Optional[Path] = None,
        *,
        trusting: Iterable[str] = (),
        timeout: float = 5.0,
        configure: Optional[Callable[[Connection], object]] = None,
    ) -> None:
        self.path = os.path.realpath(path)
        self._trusted = [trusting] if isinstance(trusting, str) else list(trusting)
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

    @property
    def notes(self) -> Optional[str]:
        """What the publisher says about the installed release; None if it has no notes."""
        with self.lease() as lease:
            return lease.contents.notes

    def lease(self) -> Lease:
        """Takes a lease on the installed release, for programs that open its files themselves."""
        return Lease(self.path)

    def path_of(self, name: str) -> str:
        """Returns the stable path of a database, which stays the same across releases.

        A program that opens several read-only databases should use a `lease()` and its paths: an update between two opens would mix
        two releases.
        """
        with self.lease() as lease:
            database = lease.database(name)
            return f"{self.path}/{os.path.basename(database.path)}" if database.kind == "reference" else database.path

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
        refusing_old_data: bool = False,
    ) -> Connection:
        """Opens all databases of the installed release on one connection, which keeps this release until it is closed.

        With `group`, it opens the databases of that group instead of those without one. With `refusing_old_data`, it raises
        TooOldError if the data is older than `maxAge` in the settings. The default of `timeout` is that of the store; the other
        arguments are those of `sqlite3.connect`.
        """
        lease = self.lease()
        if refusing_old_data:
            try:
                require_recent(lease)
            except BaseException:
                lease.close()
                raise
        return self._opened(
            lease,
            group=group,
            read_only=read_only,
            timeout=timeout,
            isolation_level=isolation_level,
            detect_types=detect_types,
            check_same_thread=check_same_thread,
            cached_statements=cached_statements,
        )

    def _opened(
        self,
        lease: Lease,
        *,
        group: Optional[str] = None,
        only: Optional[str] = None,
        read_only: bool = False,
        timeout: Optional[float] = None,
        isolation_level: Optional[str] = "",
        detect_types: int = 0,
        check_same_thread: bool = True,
        cached_statements: int = 128,
    ) -> Connection:
        connection = open_release(
            lease,
            group=group,
            only=only,
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
        deep: bool = False,
        timeout: Optional[float] = None,
    ) -> Plan:
        """Returns the changes that `apply` would make. `save` writes the plan to a file, for `apply(plan=...)`.

        `deep` also tries each row and each migration with copies of the databases.
        """
        words = _release(manifest, follow, allow_downgrade, accept_unpreserved, take_over, app)
        words = [*option("--output", _absolute(save)), *option("--deep", deep), *words]
        self._require_same_keys(timeout)
        return Plan.read(self._run("plan", words, timeout)[-1])

    def is_current(self, manifest: Path) -> bool:
        """Returns whether this release is installed and complete, with no operation pending. Changes nothing."""
        try:
            with self.lease() as lease, open(manifest, "rb") as file:
                if not lease.contents.is_of(file.read()):
                    return False
        except (OSError, MoultError):
            return False
        plan = self.plan(manifest, follow="match")
        return not plan.changes and not plan.json.get("unfinished")

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
        progress: Optional[Callable[[Progress], object]] = None,
        timeout: Optional[float] = None,
    ) -> Update:
        """Installs a release: that of the manifest, that of a saved plan, or the newest one of the store's feed.

        `wait`, `retry` and `wait_for_readers` are seconds, as for the command. `progress` is called in this thread while the command
        runs. After `timeout` seconds, the command is asked to stop. It then undoes its work, or finishes if it cannot undo it.
        """
        same = _release(manifest, follow, allow_downgrade, accept_unpreserved, take_over, app)
        self._require_same_keys(timeout)
        words = [
            *option("--create", create),
            *repeated("--key", keys or self._trusted if create else keys),
            *option("--plan", _absolute(plan)),
            *option("--wait", wait),
            *option("--retry", retry),
            *option("--wait-for-readers", wait_for_readers),
            *same,
        ]

        def planned() -> Any:
            if plan is not None:
                return saved_plan(os.path.abspath(plan))
            exists = os.path.lexists(f"{self.path}/moult.json")
            return self._run("plan", same, timeout)[-1] if exists else {}

        return Update.read(self._change("apply", words, timeout, progress, planned))

    def newest(
        self,
        *,
        app: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Optional[str]:
        """Returns the version of the newest release that the feed offers this store; None if it is installed.

        Raises an error if the feed cannot be reached or verified; None never means a failure.
        """
        self._require_same_keys(timeout)
        available: Optional[str] = self._run("check", option("--app", app), timeout)[-1].get("available")
        return available

    def follow(
        self,
        *,
        app: Optional[str] = None,
        wait: int = 10,
        progress: Optional[Callable[[Progress], object]] = None,
        timeout: Optional[float] = None,
    ) -> Update:
        """Installs the newest release that the store's feed offers, if any. Outside the `window` in the settings, only downloads it."""
        return self.apply(app=app, wait=wait, progress=progress, timeout=timeout)

    def follow_regularly(
        self, schedule: UpdateSchedule = UpdateSchedule(), *, app: Optional[str] = None, timeout: Optional[float] = None
    ) -> Iterator[Union[Update, MoultError]]:
        """Calls `follow` by a schedule, and returns the result of each attempt. A failure does not end the iteration.

        The first attempt is due when the interval has passed since the last one, also of an earlier run of the app. A `Cancellation`
        ends the wait and raises `OperationCancelled`.
        """
        last = since_last_attempt(self.status(timeout=timeout))
        while True:
            pause(schedule.pause(last, random.random()))
            try:
                result: Union[Update, MoultError] = self.follow(app=app, timeout=timeout)
            except OperationCancelled:
                raise
            except MoultError as error:
                result = error
            yield result
            last = 0

    def set_feed(
        self,
        url: Optional[Path],
        *,
        channel: Optional[str] = None,
        product: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> None:
        """Makes the store follow a feed: writes it in `moult.json`. Creates the store if it is missing and `product` is given.

        `url` is a URL or a path; None removes the setting. A file with comments is not changed, because they would be lost.
        """
        if product is not None and not os.path.lexists(f"{self.path}/moult.json"):
            words = [f"--product={product}", "--follow=match", *repeated("--key", self._trusted)]
            self._run("init", words, timeout)
        self._require_same_keys(timeout)
        place = str(url) if url is not None and (not str(url) or _URL.match(str(url))) else _absolute(url)
        write_feed(self.path, place, channel)

    def rollback(
        self,
        to: Optional[str] = None,
        *,
        reason: Optional[str] = None,
        force: bool = False,
        take_over: Iterable[str] = (),
        wait: int = 0,
        wait_for_readers: Optional[int] = None,
        progress: Optional[Callable[[Progress], object]] = None,
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
        return Update.read(
            self._change(
                "rollback", words, timeout, progress, lambda: self._run("rollback", ["--dry-run", *words], timeout)[-1]
            )
        )

    def status(self, *, timeout: Optional[float] = None) -> Status:
        """Returns the installed release and the state of each database."""
        return Status.read(self._run("status", [], timeout)[-1])

    def verify(self, *names: str, deep: bool = False, timeout: Optional[float] = None) -> Verification:
        """Checks these databases, or all of them. A fault is a result, not an exception: see `sound`."""
        return Verification.read(self._run("verify", [*option("--deep", deep), *names], timeout)[-1])

    def hold(self, *releases: str, reason: str, timeout: Optional[float] = None) -> Tuple[Hold, ...]:
        """Blocks versions, or ranges such as `>=2.1 <3`; without one, every release. Returns all holds."""
        words = [*option("--reason", reason), *map(_plain, releases)]
        return tuple(map(Hold.read, self._run("hold", words, timeout)[-1]["holds"]))

    def unhold(self, *releases: str, timeout: Optional[float] = None) -> Tuple[Hold, ...]:
        """Removes holds, each written exactly as in the hold; without one, the only hold. Returns those that remain."""
        return tuple(map(Hold.read, self._run("unhold", [*map(_plain, releases)], timeout)[-1]["holds"]))

    def history(self, limit: int = 100, *, timeout: Optional[float] = None) -> Tuple[HistoryEntry, ...]:
        """Returns the store's history, newest first."""
        entries = self._run("history", option("--number", limit), timeout)[-1]["entries"]
        return tuple(map(HistoryEntry.read, entries))

    def clean(self, keep: Optional[int] = None, *, wait: int = 0, timeout: Optional[float] = None) -> Tuple[str, ...]:
        """Removes the oldest generations beyond those kept for rollbacks, and returns their names. Those with a lease stay."""
        words = [*option("--keep", keep), *option("--wait", wait)]
        return tuple(self._run("clean", words, timeout)[-1]["removed"])

    def recover(
        self, *, undo: bool = False, wait: int = 10, timeout: Optional[float] = None
    ) -> Tuple[InterruptedUpdate, ...]:
        """Finishes or undoes work that a crash interrupted, and repairs the store's own records.

        With `undo`, restores the previously installed release if an update cannot be finished. Every function that changes the store
        recovers it first; `connect` does not, because it runs no command.
        """
        words = [*option("--undo", undo), *option("--wait", wait)]
        return tuple(map(InterruptedUpdate.read, self._run("recover", words, timeout)[-1]["recovered"]))

    def quarantine(self, *, timeout: Optional[float] = None) -> Tuple[QuarantinedDatabase, ...]:
        """Returns the old database content that updates, rollbacks or resets have set aside, oldest first."""
        return tuple(map(QuarantinedDatabase.read, self._run("quarantine", [], timeout)[-1]["quarantine"]))

    def export_quarantined(self, name: str, file: Path, *, timeout: Optional[float] = None) -> str:
        """Copies a set of the quarantine, or the newest one of a database, into a new database file. Returns its path."""
        exported: str = self._run("quarantine", [*option("--export", _absolute(file)), _plain(name)], timeout)[-1]["file"]
        return exported

    def restore_quarantined(
        self, name: str, *, table: Optional[str] = None, wait: int = 10, timeout: Optional[float] = None
    ) -> Tuple[QuarantinedDatabase, ...]:
        """Restores a set of the quarantine, or the newest one of a database: the whole database, or the missing rows of a table.

        Returns what is in quarantine for it now.
        """
        words = ["--restore", *option("--table", table), *option("--wait", wait), _plain(name)]
        names = {each.database for each in self.quarantine(timeout=timeout) if name in (each.id, each.database)}
        answer = self._change("quarantine", words, timeout, None, lambda: {each for each in names if each})[-1]
        kept = answer.get("kept", ())
        return tuple(map(QuarantinedDatabase.read, kept)) if isinstance(kept, list) else ()

    def reset(
        self,
        name: str,
        *,
        set_user_data_aside: bool = False,
        reason: str = "requested by the app",
        wait: int = 10,
        timeout: Optional[float] = None,
    ) -> Recovered:
        """Sets a writable database and its sidecars aside, and creates a new database at its path.

        User data is set aside only with `set_user_data_aside`, and is not deleted.
        """
        words = [
            *option("--set-user-data-aside", set_user_data_aside),
            *option("--reason", reason),
            *option("--wait", wait),
            _plain(name),
        ]
        try:
            answer = self._change("reset", words, timeout, None, lambda: {name})[-1]
        except InUseError as error:
            # A file that SQLite cannot open is moved, and then no process may have it open. This package keeps a connection to it.
            if not parked.release(self.path_of(name)):
                if f"pid {os.getpid()} " not in str(error):
                    raise
                now = "Close the connections of this program to it, also those in variables, and try again."
                raise InUseError(error.what, error.why, now, error.code, error.exit_status) from error
            answer = self._change("reset", words, timeout, None, lambda: {name})[-1]
        return Recovered(reason, answer.get("setAside"), answer.get("salvaged"))

    def open(
        self,
        name: str,
        *,
        recovering: Recovery = Recovery.NEVER,
        check_same_thread: bool = True,
        timeout: Optional[float] = None,
    ) -> Connection:
        """Opens one database of the installed release as `main`. If it cannot be loaded, `recovering` permits to replace it once.

        This covers a file that is empty, damaged or missing, a sidecar that belongs to another file, and a directory in place of the
        file. The connection's `recovered` describes the recovery. If another process holds a lock, this raises an error and changes
        nothing. So does a second failure within a minute, even in another process, so recovery cannot loop.
        """
        lease = self.lease()
        try:
            database, recovered = lease.database(name), None
            if database.kind != "reference":
                recovered = self._recover_database(database, recovering, timeout)
            connection = self._opened(lease, only=name, check_same_thread=check_same_thread)
        except BaseException:
            lease.close()
            raise
        connection.recovered = recovered
        return connection

    def _recover_database(
        self, database: Database, recovering: Recovery, timeout: Optional[float]
    ) -> Optional[Recovered]:
        why = self._fault(database.name, timeout)
        if why is None:
            return None
        is_allowed = recovering is Recovery.SET_USER_DATA_ASIDE
        shell = f"moult reset {database.name} --set-user-data-aside --store {shlex.quote(self.path)}"
        if not is_allowed and not (recovering is Recovery.CACHES_ONLY and database.kind == "cache"):
            what = f"the database {database.path} will not load"
            raise WillNotLoadError(what, why, f"Set it aside, and start with a new one: {shell}", "E820")
        again = f"the database {database.path} does not load, although it was just recreated"
        look = "It was not recreated again. Check which program damages the file, and whether the disk is failing."
        minute_ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        if any(each.database == database.name and each.time > minute_ago for each in self.quarantine(timeout=timeout)):
            raise WillNotLoadError(again, why, look, "E820")
        recovered = self.reset(database.name, set_user_data_aside=is_allowed, reason=why, timeout=timeout)
        log.warning("%s was replaced with a new database: %s", database.path, why)
        still = self._fault(database.name, timeout)
        if still is not None:
            raise WillNotLoadError(again, still, look, "E820")
        return recovered

    def _fault(self, name: str, timeout: Optional[float]) -> Optional[str]:
        """Returns why a database cannot be loaded."""
        for each in self.status(timeout=timeout).databases:
            is_bad = each.state in ("missing", "damaged", "changed")
            if each.name == name and is_bad and each.finding and each.finding.kind != "unmigrated":
                return each.finding.what
        return None

    def changes(
        self,
        since: Union[str, Lease, Connection],
        *,
        limit: int = RowChanges.STANDARD_LIMIT,
        timeout: Optional[float] = None,
    ) -> Tuple[RowChanges, ...]:
        """Returns the rows that differ between an earlier release and the announced one; none if it is the same.

        The earlier release is given by its version or generation, or by a lease or connection. It must still be kept, or all its
        databases must be read again, and so must a table with more than `limit` changed rows. What an update changed in a shared
        database is known for the last update only, and from the first call on.
        """
        before = since.lease if isinstance(since, Connection) else since
        return changes_since(before, self._command, self.path, limit, timeout)

    def events(
        self,
        since: Union[None, Lease, Connection] = None,
        *,
        rows: bool = False,
        limit: int = RowChanges.STANDARD_LIMIT,
    ) -> Events:
        """Returns the releases that are put into service from now on, or since a lease was taken or a connection opened.

        The kernel reports changes of the store, so nothing is polled. Iteration waits for the next release; `next(seconds)` waits
        for a limited time, and `close()` ends the iteration in any thread. With `rows`, each event has the changed rows, as `changes`
        returns them; they are compared when the event is read.
        """
        lease = since.lease if isinstance(since, Connection) else since
        if not rows:
            return Events(self.path, lease)
        want(self.path)
        return Events(self.path, lease, lambda seen, names: changes(seen, names, self._command, self.path, limit))

    def register(
        self,
        consumer: DatabaseConsumer,
        *,
        name: Optional[str] = None,
        databases: Optional[Iterable[str]] = None,
        timeout: float = 10,
        on_reload_failure: str = "report",
    ) -> ConsumerRegistration:
        """Registers a consumer for this store in this process. Every update in this process calls it, whichever `Store` runs the update.

        With `on_reload_failure="roll-back"`, a release that this consumer fails to reload is rolled back and put on hold. For updates
        by other processes, use `events`.
        """
        return register(self.path, consumer, name, databases, timeout, on_reload_failure)

    def _require_same_keys(self, timeout: Optional[float]) -> None:
        if not self._trusted or not os.path.lexists(f"{self.path}/moult.json"):
            return
        found = self.status(timeout=timeout).json.get("trustedKeys", [])
        if found != self._trusted:
            settings = f"{self.path}/moult.json"
            what = f"the store {self.path} does not trust the keys that the app specifies"
            why = f"{settings} has different keys" if found else f"{settings} has no keys"
            now = f'Add the app\'s keys to "keys" in {settings}, or use another directory.'
            raise DistrustedError(what, why, now, "E261", 3)

    def _change(
        self,
        verb: str,
        words: Words,
        timeout: Optional[float],
        progress: Optional[Callable[[Progress], object]],
        plan: Callable[[], Any],
    ) -> List[Any]:
        """Runs a command that changes databases, between the calls of this process's consumers."""
        consumers = consumers_of(self.path)
        if not consumers:
            return self._run(verb, words, timeout, progress)
        with Calls(self.path, consumers, plan()) as calls:
            answers = self._run(verb, words, timeout, progress)
        fatal = calls.fatal()
        if fatal is not None and verb == "apply":
            self.rollback(reason=f"{fatal.what}: {fatal.why}", timeout=timeout)
            raise fatal
        return answers

    def _run(
        self,
        verb: str,
        words: Words,
        timeout: Optional[float],
        progress: Optional[Callable[[Progress], object]] = None,
    ) -> List[Any]:
        def each(event: Any) -> None:
            _log(verb, self.path, event)
            found = progress_of(event) if progress is not None else None
            if found is not None and progress is not None:
                progress(found)

        return self._command.run([verb, "--json", "--store", self.path, *words], timeout, each)


def _log(verb: str, path: str, event: Any) -> None:
    kind = event.get("event")
    if kind == "warning":
        log.warning("%s: %s", path, event["message"])
    elif kind == "recovered":
        log.warning("%s: %s", path, event["text"])
    elif kind == "result" and event["changed"]:
        log.info("%s: %s installed %s, was %s", path, verb, event["version"], event.get("from", {}).get("version"))


def _plain(word: str) -> str:
    """Returns an argument, which the command must not mistake for an option."""
    if word.startswith("-"):
        raise ValueError(f"{word!r} begins with a dash")
    return word


_URL = re.compile(r"[a-z][a-z0-9+]*://")


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
    # A release may also be on a web server or in a registry.
    named = str(manifest) if manifest is not None and _URL.match(str(manifest)) else _absolute(manifest)
    return [
        *option("--follow", follow),
        *option("--allow-downgrade", allow_downgrade),
        *option("--accept-unpreserved", accept_unpreserved),
        *repeated("--take-over", take_over),
        *option("--app", app),
        *([named] if named else []),
    ]
