"""The rows that change between two releases."""

import asyncio
import json
import math
import os
import threading
import time

import pytest
from conftest import FOODS, pack
from test_command import children, executable

from moult_store import ChangedTable, Events, MoultError, OperationCancelled, RowChanges, Store, aio
from moult_store.command import Cancellation


def by_name(changes):
    return {each.database: each for each in changes}


def test_the_rows_since_a_release_a_lease_and_a_connection(store, releases):
    lease, connection = store.lease(), store.connect()
    assert store.notes is None
    assert store.changes("1.0.0") == store.changes(lease) == store.changes(connection) == ()
    store.apply(releases[2])
    found = by_name(store.changes("1.0.0"))
    assert set(found) == {"food", "prices"}
    table = found["food"].table("FOOD")
    assert table.key == ("id",) and sorted(table.updated) == [(number,) for number in range(1, FOODS + 1)]
    assert (table.inserted, table.deleted, table.reload) == ((), (), None)
    assert str(found["food"]) == f"food: food +0 ~{FOODS} -0"
    assert found["food"].table("none") is None
    # The call before the update has made it record what it changes.
    assert found["prices"].reload is None and found["prices"].table("price") is not None
    for since in [lease.generation, lease, connection]:
        assert by_name(store.changes(since)) == found
    assert store.changes("2.0.0") == store.changes(store.generation) == store.changes(store.lease()) == ()
    limited = by_name(store.changes(lease, limit=10))["food"].table("food")
    assert limited.reload and limited.updated == ()


def test_without_the_earlier_release_everything_must_be_read_again(store, releases):
    store.apply(releases[2])
    found = store.changes("0.9.0")
    assert {each.database for each in found} == {"food", "notes", "prices", "thumbs"}
    assert all(each.reload == "the earlier release was removed" for each in found)
    assert found[0].table("any").reload == found[0].reload
    lease = store.lease()
    # The same release is announced again.
    store.apply(releases[1], follow="match")
    other = store.lease()
    store.apply(releases[2])
    with open(f"{store.path}/.moult/announced") as file:
        line = file.read()
    assert [each.reload for each in store.changes(lease)] == ["its changes were not recorded"] * 3
    assert by_name(store.changes(other))["food"].table("food")
    # An update that has not announced its release.
    os.unlink(f"{store.path}/.moult/announced")
    assert all(each.reload for each in store.changes("1.0.0"))
    open(f"{store.path}/.moult/announced", "w").write(line)
    with pytest.raises(MoultError, match="nothing is installed"):
        empty = Store(store.path + "-new")
        empty.set_feed(None, product="org.example.shop")
        empty.changes("1.0.0")


def test_every_kind_of_value_is_a_key(place, moult):
    table = "CREATE TABLE thing (a, b PRIMARY KEY) WITHOUT ROWID;"
    rows = "INSERT INTO thing VALUES (1, x'00ff'), (2, 'a' || char(0)), (3, 9e999), (4, -9e999), (5, 1.5), (6, 'dänisch'), (7, 7);"
    for number, text in enumerate([table, table + rows], 1):
        described = {"kind": "reference", "build": {"script": "thing.sql"}}
        draft = {
            "manifest": 1,
            "product": "org.example.things",
            "version": f"{number}.0.0",
            "sequence": number,
            "notes": f"Release {number}.",
            "databases": {"things": described},
        }
        manifest = pack(moult, place / str(number), {"thing.sql": text, "draft.json": draft}, place / "out")
        Store(place / "store").apply(manifest, create=True)
    (found,) = Store(place / "store").changes("1.0.0")
    assert Store(place / "store").notes == "Release 2."
    keys = {key for (key,) in found.table("thing").inserted}
    assert keys == {b"\0\xff", "a\0", math.inf, -math.inf, 1.5, "dänisch", 7}


def test_events_have_the_rows(store, releases):
    with store.events(rows=True) as events, store.events() as others:
        assert events.next(0) is None
        store.apply(releases[2])
        event = events.next(5)
        assert (event.version, event.databases) == ("2.0.0", ("food", "prices"))
        assert [each.database for each in event.changes] == ["food", "prices"]
        assert len(event.changes[0].table("food").updated) == FOODS and event.changes[1].reload is None
        assert others.next(5).changes is None
    with store.events(store.lease(), rows=True, limit=1) as events:
        store.apply(releases[1], follow="match")
        assert events.next(5).changes[0].tables[0].reload


def test_a_release_that_is_announced_during_the_comparison_is_reported_instead(store, releases):
    lease, asked = store.lease(), []

    def rows(seen, names):
        asked.append(seen)
        if len(asked) > 1:
            return ()
        store.apply(releases[4])
        return None

    store.apply(releases[2])
    with Events(store.path, lease, rows) as events:
        event = events.next(5)
        assert (event.version, event.previous) == ("4.0.0", lease.generation)
        assert events.next(0) is None
    assert [seen.generation for seen in asked] == [lease.generation] * 2


def test_rows_with_asyncio(store, releases):
    async_store = aio.Store(store.path)

    async def main():
        lease = async_store.lease()
        assert await async_store.changes(lease) == ()
        events = async_store.events(lease, rows=True)
        task = asyncio.create_task(events.__anext__())
        await async_store.apply(releases[2])
        event = await asyncio.wait_for(task, 30)
        assert event.changes == await async_store.changes(lease) != ()
        assert await async_store.changes("2.0.0") == ()
        events.close()

    asyncio.run(main())


def waiting(place, store):
    """A store whose command waits, as it does without another announcement."""
    return Store(store.path, executable(place / "moult", "#!/bin/sh\nexec sleep 600\n"))


def test_a_command_that_would_wait_for_another_announcement_ends(place, store, releases):
    store.changes("1.0.0")
    store.apply(releases[2])
    path = f"{store.path}/.moult/announced"
    line = open(path).read()
    found = []
    thread = threading.Thread(target=lambda: found.append(waiting(place, store).changes("1.0.0")))
    thread.start()
    while not list(children(os.getpid())):
        time.sleep(0.01)
    # The earlier release is announced again.
    os.replace(_written(place / "line", _line(store, "1.0.0", line)), path)
    thread.join(20)
    assert found == [()] and list(children(os.getpid())) == []


def test_an_update_that_is_not_complete(place, store, releases):
    lease = store.lease()
    store.apply(releases[2])
    # As after a crash in the middle of a rollback.
    os.symlink(f"generations/{lease.generation}", place / "current")
    os.replace(place / "current", f"{store.path}/.moult/current")
    found = waiting(place, store).changes(lease)
    assert [(each.database, each.reload) for each in found] == [
        ("food", "an update is not complete"),
        ("prices", "an update is not complete"),
    ]
    assert list(children(os.getpid())) == []


def _line(store, version, line):
    (name,) = [each for each in os.listdir(f"{store.path}/.moult/generations") if each.startswith(f"{version}+")]
    return f"{name} {line.split()[1]}\n"


def _written(path, text):
    path.write_text(text)
    return path


def test_a_cancellation_and_a_timeout_end_the_command(place, store, releases):
    lease = store.lease()
    store.apply(releases[2])
    with Cancellation() as cancellation:
        threading.Timer(0.3, cancellation.cancel).start()
        with pytest.raises(OperationCancelled):
            waiting(place, store).changes(lease)
    with pytest.raises(MoultError, match="longer than"):
        waiting(place, store).changes(lease, timeout=0.3)
    assert list(children(os.getpid())) == []


def test_the_output_of_the_command_is_read(place, store, releases):
    lease = store.lease()
    store.apply(releases[2])
    changes = [{"name": "food", "reload": "why"}, {"name": "prices", "tables": [{"name": "a", "reload": "virtual"}]}]
    event = {"event": "generation", "generation": store.generation, "version": "2.0.0", "changes": changes}
    (place / "answer").write_text(json.dumps(event) + "\n")
    stub = executable(place / "moult", f'#!/bin/sh\necho "$*" > {place}/words\ncat {place}/answer\n')
    found = Store(store.path, stub).changes(lease, limit=7)
    assert found == (RowChanges("food", "why"), RowChanges("prices", None, (ChangedTable("a", (), (), (), (), "virtual"),)))
    words = f"watch --rows --once --json --store {store.path} --since={lease.generation} --limit=7\n"
    assert (place / "words").read_text() == words
    assert str(found[1]) == "prices: a (read it again: virtual)"
    error = '{"error": {"code": "E800", "exit": 1, "what": "no store"}}'
    (place / "answer").write_text(error)
    with pytest.raises(MoultError, match="no store"):
        Store(store.path, stub).changes(lease)
