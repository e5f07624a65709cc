"""Stores in programs with asyncio."""

import asyncio
import os
import sqlite3
import time

import pytest
from conftest import FOODS

from moult_store import MoultError, Recovery, aio
from test_command import busy, children  # noqa: F401


@pytest.fixture
def async_store(store):
    return aio.Store(store.path)


COUNT = "SELECT count(*), min(release), max(release) FROM food.food"


def count(connection):
    return connection.execute(COUNT).fetchone()


def test_install_read_and_go_back(async_store, releases):
    async def main():
        assert (await async_store.plan(releases[2])).changes
        update = await async_store.apply(releases[2])
        assert update.version == async_store.release == "2.0.0"
        assert await async_store.run(count) == (FOODS, 2, 2)
        await async_store.rollback(reason="a test")
        assert await async_store.run(count) == (FOODS, 1, 1)
        assert (await async_store.status()).holds[0].reason == "a test"
        assert (await async_store.verify(deep=True)).sound
        assert len(await async_store.history()) == 3
        with pytest.raises(MoultError):
            await async_store.apply(releases[2])
        await async_store.close()

    asyncio.run(main())


def test_the_loop_runs_while_a_command_does(async_store, releases, busy):  # noqa: F811
    async def main():
        task = asyncio.create_task(async_store.apply(releases[2], wait=60))
        turns, end = 0, time.monotonic() + 0.5
        while time.monotonic() < end:
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 10 and not task.done()
        begin = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begin < 20
        # The command has ended and undone its work.
        assert list(children(os.getpid())) == []

    asyncio.run(main())
    assert async_store.store.status().unfinished == ()


def test_wait_for_stops_the_command(async_store, releases, busy):  # noqa: F811
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(async_store.apply(releases[2], wait=60), 0.5)
        assert list(children(os.getpid())) == []

    asyncio.run(main())


def test_events(async_store, releases):
    async def main():
        events, seen = async_store.events(), []

        async def watch():
            async for event in events:
                seen.append((event.version, await async_store.run(count)))

        task = asyncio.create_task(watch())
        for number in [2, 1, 2]:
            await async_store.apply(releases[number], follow="match")
            while not seen or seen[-1][0] != f"{number}.0.0":
                await asyncio.sleep(0.01)
        events.close()
        await asyncio.wait_for(task, 10)
        assert [version for version, _ in seen] == ["2.0.0", "1.0.0", "2.0.0"]
        assert [row for _, row in seen] == [(FOODS, 2, 2), (FOODS, 1, 1), (FOODS, 2, 2)]

    asyncio.run(main())


def test_a_task_that_waits_for_events_can_be_cancelled(async_store):
    async def main():
        async def watch():
            async for _ in async_store.events():
                pass

        task = asyncio.create_task(watch())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_reads_run_at_the_same_time_and_transactions_end(async_store):
    async def main():
        def slow(connection):
            time.sleep(0.3)
            return count(connection)

        begin = time.monotonic()
        assert await asyncio.gather(*[async_store.run(slow) for _ in range(4)]) == [(FOODS, 1, 1)] * 4
        assert time.monotonic() - begin < 1.1

        def write(connection, commits):
            connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
            if commits:
                connection.commit()

        await async_store.run(lambda connection: write(connection, False))
        await async_store.run(lambda connection: write(connection, True))
        assert await async_store.run(lambda connection: connection.execute("SELECT count(*) FROM note").fetchone()) == (1,)
        with pytest.raises(sqlite3.OperationalError):
            await async_store.run(lambda connection: connection.execute("no SQL"))
        await async_store.close()

    asyncio.run(main())


def test_consumers_are_coroutines_of_the_loop(async_store, releases):
    async def main():
        loop, calls = asyncio.get_running_loop(), []

        class Consumer:
            async def release(self, change):
                assert asyncio.get_running_loop() is loop
                calls.append(("release", change.version))

            async def reload(self, change):
                calls.append(("reload", change.version))

        registration = async_store.register(Consumer())
        await async_store.apply(releases[2])
        registration.cancel()
        assert calls == [("release", "1.0.0"), ("reload", "2.0.0")]

    asyncio.run(main())


def test_functions_without_a_store(place):
    async def main():
        assert (await aio.cache(place / "thumbs.db", "CREATE TABLE thumb (id INTEGER PRIMARY KEY)")).is_fresh

    asyncio.run(main())


def test_connections_for_any_thread(async_store, releases):
    async def main():
        connection = await async_store.connect()
        assert count(connection) == (FOODS, 1, 1)
        assert await asyncio.to_thread(count, connection) == (FOODS, 1, 1)
        await async_store.apply(releases[2])
        assert connection.is_outdated
        connection.close()
        open(f"{async_store.path}/thumbs.db", "w").close()
        connection = await async_store.open("thumbs", recovering=Recovery.CACHES_ONLY)
        assert connection.execute("SELECT count(*) FROM thumb").fetchone() == (0,)
        connection.close()

    asyncio.run(main())
