"""A datasette plugin that serves the databases of a store, each request from one release.

datasette opens a file once in each of its threads and keeps it open. With the stable paths of a store, some threads
would continue to read the previous release, and a page would show one release or the other at random. This plugin selects
the release when a request begins. Its metadata names the store: {"plugins": {"moult_store": {"store": "/srv/store"}}}. With
"timeout", it also says how many seconds a request waits for a database that an update or another program has locked.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import weakref
from contextvars import ContextVar
from typing import Any, Awaitable, Callable, MutableMapping, Optional

from datasette import hookimpl  # type: ignore[import-untyped]
from datasette.database import Database  # type: ignore[import-untyped]

from .errors import MoultError
from .lease import Database as InstalledDatabase
from .parking import SafeConnection
from .store import Store

#: The default of `timeout`. After that, datasette answers with an error. An update locks a shared database while it commits.
_TIMEOUT = 30.0


class Release:
    """A release that requests read. The lease ends with the last of these requests."""

    def __init__(self, store: Store) -> None:
        self.attachments = store.attachments()
        self.generation = self.attachments.lease.generation
        self.databases = {database.name: database for database in self.attachments.lease.databases}


#: The release that this request reads.
_requested: ContextVar[Optional[Release]] = ContextVar("moult_store_release", default=None)


class _Connections(threading.local):
    """The connections of a thread by release. A connection is closed when the last request of its release has ended."""

    def __init__(self) -> None:
        self.by_release: MutableMapping[Release, sqlite3.Connection] = weakref.WeakKeyDictionary()


class StoreDatabase(Database):  # type: ignore[misc]
    """A database of the release that the request reads."""

    def __init__(self, follower: Follower, name: str) -> None:
        self._follower, self._database, self._threads = follower, name, _Connections()
        # Opened as a mutable database, because datasette caches the sizes and counts of immutable databases forever.
        super().__init__(follower.datasette, is_mutable=True)

    @property
    def path(self) -> str:
        return self._found().path

    @path.setter
    def path(self, value: Any) -> None:
        """Does nothing: the base class sets this property."""

    def _release(self) -> Release:
        # Without a request, for instance when datasette starts, use the newest release.
        return _requested.get() or self._follower.newest

    def _found(self, release: Optional[Release] = None) -> InstalledDatabase:
        release = release or self._release()
        try:
            return release.databases[self._database]
        except KeyError:
            raise MoultError(f"release {release.generation} has no database {self._database}") from None

    def connect(self, write: bool = False, release: Optional[Release] = None) -> sqlite3.Connection:
        database = self._found(release)
        uri = database.existing_uri(read_only=not write)
        timeout = self._follower.timeout
        connection = sqlite3.connect(uri, uri=True, timeout=timeout, check_same_thread=False, factory=SafeConnection)
        if database.kind != "reference":
            connection.park(uri, database.path)
        return connection

    async def execute_fn(self, fn: Callable[[sqlite3.Connection], Any]) -> Any:
        release = self._release()

        def run() -> Any:
            connection = self._threads.by_release.get(release)
            if connection is None:
                connection = self.connect(release=release)
                self.ds._prepare_connection(connection, self.name)
                self._threads.by_release[release] = connection
            return fn(connection)

        if self.ds.executor is None:
            return run()
        return await asyncio.get_running_loop().run_in_executor(self.ds.executor, run)


class Follower:
    """Makes datasette serve the newest release of a store."""

    def __init__(self, datasette: Any, store: Store, timeout: float) -> None:
        self.datasette, self.store, self.timeout = datasette, store, timeout
        self.newest = Release(store)
        self._add_databases()

    def follow(self) -> Release:
        if self.newest.attachments.lease.is_outdated:
            self.newest = Release(self.store)
            self._add_databases()
        return self.newest

    def _add_databases(self) -> None:
        for name in self.newest.databases:
            if name not in self.datasette.databases:
                self.datasette.add_database(StoreDatabase(self, name), name=name)
        for name, database in list(self.datasette.databases.items()):
            if isinstance(database, StoreDatabase) and name not in self.newest.databases:
                self.datasette.remove_database(name)


_followers: MutableMapping[Any, Follower] = weakref.WeakKeyDictionary()


@hookimpl  # type: ignore[untyped-decorator]
def startup(datasette: Any) -> None:
    settings = datasette.plugin_config("moult_store") or {}
    if "store" in settings:
        _followers[datasette] = Follower(datasette, Store(settings["store"]), float(settings.get("timeout", _TIMEOUT)))


@hookimpl  # type: ignore[untyped-decorator]
def asgi_wrapper(datasette: Any) -> Callable[..., Any]:
    def wrap(app: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def follow(scope: Any, receive: Any, send: Any) -> None:
            follower = _followers.get(datasette)
            if follower is None or scope["type"] != "http":
                return await app(scope, receive, send)
            requested = _requested.set(follower.follow())
            try:
                await app(scope, receive, send)
            finally:
                _requested.reset(requested)

        return follow

    return wrap
