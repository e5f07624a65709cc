"""A program of a user, which mypy checks in strict mode against the installed package. It does not run."""

import asyncio
from typing import Optional, Tuple

from moult_store import (
    Cancellation,
    DatabaseChange,
    HeldError,
    Progress,
    Recovery,
    Store,
    StoreEvent,
    Update,
    UpdateSchedule,
    Working,
    aio,
    cache,
)
from moult_store.django import databases


class Library:
    def release(self, change: DatabaseChange) -> None:
        print(change.version)

    async def reload(self, change: DatabaseChange) -> None:
        print([database.path for database in change.databases])


def show(progress: Progress) -> None:
    if isinstance(progress, Working):
        print(progress.done, progress.total)


def update(store: Store) -> Optional[str]:
    with Cancellation():
        try:
            found: Update = store.apply("release.json", create=True, progress=show)
        except HeldError as error:
            return error.outcome
    names: Tuple[str, ...] = tuple(each.name for each in store.status().databases)
    keys = [key for change in store.changes(found.generation) for table in change.tables for key in table.inserted]
    print(keys, store.notes)
    store.open(names[0], recovering=Recovery.CACHES_ONLY).close()
    return found.previous or cache("thumbs.db", "CREATE TABLE thumb (id)").why


async def follow() -> int:
    store = aio.Store("store", trusting=["RWQ"])
    store.register(Library(), databases=["prices"])
    update: Update = await store.apply("release.json", create=True)
    event: StoreEvent
    async for event in store.events(rows=True):
        print(event.databases, update.version, event.changes)
    async for result in store.follow_regularly(UpdateSchedule(jitter=60)):
        print(result.version if isinstance(result, Update) else result.what)
    count: int = await store.run(lambda connection: int(connection.execute("SELECT 1").fetchone()[0]))
    return count


DATABASES = databases("store")
asyncio.run(follow())
