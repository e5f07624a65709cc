"""A SQLAlchemy engine for a store: each checkout from its pool returns a connection to the newest release."""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy import event, exc, pool

from .connection import Connection
from .store import Store


def create_engine(store: Store, **options: Any) -> sqlalchemy.Engine:
    """Creates an engine whose pool replaces connections to an earlier release when they are checked out.

    A connection, and its transaction, keep their release until the connection is returned.
    """
    options.setdefault("poolclass", pool.QueuePool)
    # The pool passes a connection from thread to thread, but only one thread uses it at a time.
    engine = sqlalchemy.create_engine("sqlite://", creator=lambda: store.connect(check_same_thread=False), **options)

    @event.listens_for(engine, "connect")
    def opened(connection: Connection, record: pool.ConnectionPoolEntry) -> None:
        record.info["moult_new"] = True

    @event.listens_for(engine, "checkout")
    def follow(connection: Connection, record: pool.ConnectionPoolEntry, proxy: pool.PoolProxiedConnection) -> None:
        # The pool makes only two attempts, so a connection opened by this checkout is not replaced again.
        if not record.info.pop("moult_new", False) and connection.is_outdated:
            raise exc.DisconnectionError("another release was announced, or this process was forked")

    return engine
