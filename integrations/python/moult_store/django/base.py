"""The database backend: Django imports this module for the engine `moult_store.django`."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from django.core.exceptions import ImproperlyConfigured  # type: ignore[import-untyped]
from django.db import connections  # type: ignore[import-untyped]
from django.db.backends.sqlite3 import base  # type: ignore[import-untyped]
from django.db.backends.sqlite3.creation import DatabaseCreation as SQLiteCreation  # type: ignore[import-untyped]

from ..copies import warn_of_second
from ..lease import Database, Lease
from ..parking import SafeConnection
from ..store import Store


class DatabaseCreation(SQLiteCreation):  # type: ignore[misc]
    """In tests, read-only databases are those of the store. A database that the app writes to needs another engine."""

    def create_test_db(
        self, verbosity: int = 1, autoclobber: bool = False, serialize: bool = True, keepdb: bool = False
    ) -> str:
        found = self.connection.installed()
        if found.kind != "reference":
            raise ImproperlyConfigured(
                f"tests would write to {found.path} of the store {self.connection.store.path}. In the settings of the tests, use "
                f"the engine django.db.backends.sqlite3 for {self.connection.alias}, or a store in a scratch directory."
            )
        name: str = self.connection.settings_dict["NAME"]
        return name

    def destroy_test_db(self, *_: Any, **__: Any) -> None:
        self.connection.close()


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]
    """A connection to one database of a store. All such connections of a thread read the same release."""

    creation_class = DatabaseCreation

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        given = self.settings_dict["OPTIONS"]
        if "store" not in given:
            raise ImproperlyConfigured(f'DATABASES["{self.alias}"]["OPTIONS"] has no "store", the directory of the store.')
        self.store = Store(given["store"])
        #: The release of the open connection.
        self.lease: Optional[Lease] = None

    def installed(self) -> Database:
        """Returns this database in the installed release."""
        with self.store.lease() as lease:
            return lease.database(self.settings_dict["NAME"])

    @property
    def release(self) -> Optional[str]:
        """The version of the release that the open connection reads; None without one."""
        return self.lease.version if self.lease is not None else None

    def get_connection_params(self) -> Dict[str, Any]:
        parameters: Dict[str, Any] = super().get_connection_params()
        parameters.pop("store")
        lease = self._shared_lease() or self.store.lease()
        found = lease.database(self.settings_dict["NAME"])
        self.lease, self._database = lease, found
        parameters.update(database=found.existing_uri(read_only=False), uri=True, factory=SafeConnection)
        return parameters

    def get_new_connection(self, conn_params: Dict[str, Any]) -> Any:
        database: Database = self._database
        if database.kind != "reference":
            warn_of_second(level=2)
        connection = super().get_new_connection(conn_params)
        if database.kind != "reference":
            connection.park(conn_params["database"], database.path)
        return connection

    def _siblings(self) -> Iterator[DatabaseWrapper]:
        for each in connections.all(initialized_only=True):
            if isinstance(each, DatabaseWrapper) and each is not self and each.store.path == self.store.path:
                yield each

    def _shared_lease(self) -> Optional[Lease]:
        """Returns the lease of another connection of this thread, so that all read one release."""
        return next((each.lease for each in self._siblings() if each.connection is not None and each.lease), None)

    def close_if_unusable_or_obsolete(self) -> None:
        """Django calls this at the start and the end of each request, for all connections of the thread."""
        if self.connection is not None and self.lease is not None and not self.in_atomic_block:
            # A forked process cannot use a connection of its parent.
            if self.connection.is_of_parent or self.lease.is_outdated:
                self.close()
        super().close_if_unusable_or_obsolete()

    def _close(self) -> None:
        super()._close()
        # The lease ends with the last connection of the release, because nothing else references it.
        self.lease = None

    def is_in_memory_db(self) -> bool:
        return False
