"""The recipe for SQLAlchemy."""

import threading

import pytest
import sqlalchemy
from conftest import FOODS
from sqlalchemy import text

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
        # Another process installs a release that leaves the user's database alone. It waits for `prices` only.
        store.apply(releases[2])
        assert release(connection) == 1
        connection.execute(INSERT)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM note")).scalar_one() == 2
        assert release(connection) == 2


def test_every_pooled_connection_moves(engine, store, releases):
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


def test_threads_under_flips(engine, store, releases):
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


def test_tables_are_reflected(engine):
    table = sqlalchemy.Table("food", sqlalchemy.MetaData(), schema="food", autoload_with=engine)
    assert list(table.columns.keys()) == ["id", "release"]
