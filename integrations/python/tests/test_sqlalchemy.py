"""The recipe for SQLAlchemy."""

import threading
import time

import pytest
import sqlalchemy
from conftest import FOODS, MIGRATED
from sqlalchemy import pool, text
from test_load import update

from moult_store import Store
from moult_store.sqlalchemy import create_engine

RELEASE = text("SELECT DISTINCT release FROM food.food")
INSERT = text("INSERT INTO note (writer, number) VALUES ('a', 1)")


@pytest.fixture
def engine(store):
    engine = create_engine(store, pool_size=4)
    yield engine
    engine.dispose()


def release(connection):
    return connection.execute(RELEASE).scalar_one()


def test_the_next_checkout_sees_the_new_release(engine, store, releases):
    with engine.connect() as connection:
        assert release(connection) == 1
    store.apply(releases[2])
    with engine.connect() as connection:
        assert release(connection) == 2


def test_an_open_transaction_keeps_its_release(engine, store, releases):
    with engine.begin() as connection:
        connection.execute(INSERT)
        assert release(connection) == 1
        # Another process installs a release that does not change the user's database. It only waits for `prices`.
        store.apply(releases[2])
        assert release(connection) == 1
        connection.execute(INSERT)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM note")).scalar_one() == 2
        assert release(connection) == 2


def test_every_pooled_connection_follows_the_release(engine, store, releases):
    connections = [engine.connect() for _ in range(4)]
    assert [release(connection) for connection in connections] == [1] * 4
    for connection in connections:
        connection.close()
    store.apply(releases[2])
    connections = [engine.connect() for _ in range(4)]
    assert [release(connection) for connection in connections] == [2] * 4
    for connection in connections:
        connection.close()
    assert [each["current"] for each in store.status().json["generations"] if each["holders"]] == [True]


def test_threads_during_switches_of_releases(engine, store, releases):
    """Many switches while threads check connections out: no error, and no connection with two releases."""
    ended, errors, counts = threading.Event(), [], [0] * 4

    def read(index):
        try:
            while not ended.is_set():
                with engine.connect() as connection:
                    rows = connection.execute(text("SELECT count(*), count(DISTINCT release) FROM food.food")).one()
                    assert tuple(rows) == (FOODS, 1)
                    counts[index] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=[index]) for index in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(10):
        store.apply(releases[2 - turn % 2], follow="match", retry=20)
    ended.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert min(counts) > 10


@pytest.mark.parametrize("kept", [pool.QueuePool, pool.NullPool])
def test_writers_lose_no_row_during_replacements_and_migrations(store, releases, kept, capsys):
    engine = create_engine(Store(store.path, timeout=30), poolclass=kept)
    ended, errors, written = threading.Event(), [], [0] * 3

    def write(index):
        try:
            while not ended.is_set():
                number = written[index] + 1
                with engine.begin() as connection:
                    row = {"writer": str(index), "number": number}
                    connection.execute(text("INSERT INTO note (writer, number) VALUES (:writer, :number)"), row)
                    shipped = text("SELECT count(*), count(DISTINCT cents) FROM prices.price WHERE own = 0")
                    assert tuple(connection.execute(shipped).one()) == (FOODS, 1)
                with engine.begin() as connection:
                    connection.execute(text("INSERT INTO prices.price VALUES (:item, :number, 1)"), {"item": f"{index} {number}", **row})
                written[index] = number
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[index]) for index in range(len(written))]
    for thread in threads:
        thread.start()
    for number in [2, 1] * 5 + [2, MIGRATED, 4]:
        before = list(written)
        update(lambda: store.apply(releases[number], follow="match"))
        # Each writer continues with the new release.
        while not errors and any(now == then for now, then in zip(written, before)):
            time.sleep(0.01)
    ended.set()
    for thread in threads:
        thread.join()
    assert errors == []
    with engine.connect() as connection:
        notes = connection.execute(text("SELECT writer, count(*), count(DISTINCT number) FROM note GROUP BY writer ORDER BY 1"))
        assert [tuple(row) for row in notes] == [(str(index), count, count) for index, count in enumerate(written)]
        prices = connection.execute(text("SELECT count(*) FROM prices.price WHERE own = 1")).scalar_one()
        assert prices == sum(written)
        assert connection.execute(text("PRAGMA main.user_version")).scalar_one() == 1
        assert release(connection) == 4
    engine.dispose()
    assert store.verify(deep=True).sound
    with capsys.disabled():
        print(f"\nSQLAlchemy, {kept.__name__}: 13 installs, {written} transactions, no error")


def test_tables_are_reflected(engine):
    table = sqlalchemy.Table("food", sqlalchemy.MetaData(), schema="food", autoload_with=engine)
    assert list(table.columns.keys()) == ["id", "release"]
