"""Processes that fork while the store is open."""

import gc
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings

import pytest
from conftest import FOODS

from moult_store import MoultError, Store

INSERT = "INSERT INTO note (writer, number) VALUES (?, ?)"


def in_child(work):
    """Runs a function in a forked child, and raises its failure here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            text = ""
        except BaseException:
            text = traceback.format_exc()
        with open(writer, "w") as out:
            out.write(text)
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        text = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert text == "", text


def notes(store):
    with sqlite3.connect(f"{store.path}/notes.db") as connection:
        return sorted(connection.execute("SELECT writer, number FROM note"))


def is_locked_by_this_process(path):
    """Returns whether the kernel knows a lock of this process on a file."""
    facts = os.stat(path)
    for name in os.listdir("/proc/self/fd"):
        try:
            found = os.stat(int(name))
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (facts.st_dev, facts.st_ino):
            with open(f"/proc/self/fdinfo/{name}") as lines:
                if any(line.startswith("lock:") for line in lines):
                    return True
    return False


@pytest.fixture(params=["delete", "wal"])
def mode(request, store):
    for name in ["notes.db", "prices.db", "thumbs.db"]:
        connection = sqlite3.connect(f"{store.path}/{name}")
        assert connection.execute(f"PRAGMA journal_mode = {request.param}").fetchone() == (request.param,)
        connection.close()
    return request.param


def begin(store):
    store.connection.execute(INSERT, ["parent", 1])


def exclude(store):
    store.connection.execute("BEGIN EXCLUSIVE")
    store.connection.execute(INSERT, ["parent", 1])


def fetch_one(store):
    with store.connection as connection:
        connection.executemany(INSERT, [("many", number) for number in range(500)])
    cursor = store.connection.execute("SELECT id FROM note")
    cursor.fetchone()
    return cursor


def return_one(store):
    """A statement that writes, and has not ended, outside a transaction."""
    connection = store.connect(isolation_level=None)
    cursor = connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1), ('a', 2) RETURNING id")
    cursor.fetchone()
    return cursor


@pytest.mark.parametrize("state", [begin, exclude, fetch_one, return_one])
def test_a_child_whose_parent_uses_a_database_is_told_what_to_do(store, mode, state):
    """SQLite would report a locked database for ever, or read without a lock."""
    kept = state(store)
    mine = store.connection

    def child():
        begun = time.monotonic()
        for use in [lambda: store.connection, store.connect, lambda: Store(store.path).connection]:
            with pytest.raises(MoultError) as raised:
                use()
            assert raised.value.code == "E402"
            assert raised.value.what == f"cannot open {store.path}/notes.db in this process"
            assert f"it was forked while process {os.getppid()} used the file" in raised.value.why
            assert "subprocess" in raised.value.now
        assert time.monotonic() - begun < 5
        for use in [lambda: mine.execute("SELECT 1"), mine.cursor, mine.commit, mine.__enter__, lambda: mine.in_transaction]:
            with pytest.raises(MoultError, match="cannot use this connection in a forked process"):
                use()
        if kept is not None:
            for use in [kept.fetchone, kept.fetchall, lambda: next(kept), lambda: kept.execute("SELECT 1")]:
                with pytest.raises(MoultError, match="cannot use this connection in a forked process"):
                    use()

    in_child(child)
    del kept
    store.connection.commit()
    assert Store(store.path).verify(deep=True).sound
    assert notes(store)


def test_a_child_of_an_idle_parent_takes_real_locks(store, mode):
    """gunicorn --preload: the app has used the store before it forks its workers."""
    assert store.connection.execute("SELECT count(*) FROM note").fetchone() == (0,)
    with store.connection as connection:
        connection.execute(INSERT, ["parent", 0])
    mine, cursor = store.connection, store.connection.cursor()
    execute, commit = mine.execute, mine.commit

    def child():
        connection = store.connection
        assert connection is not mine
        connection.execute("BEGIN")
        assert connection.execute("SELECT count(*) FROM note").fetchone() == (1,)
        assert is_locked_by_this_process(f"{store.path}/notes.db")
        connection.execute(INSERT, ["child", 1])
        connection.commit()
        for use in [lambda: mine.execute("SELECT 1"), lambda: cursor.execute("SELECT 1"), mine.commit, lambda: execute("SELECT 1"), commit]:
            with pytest.raises(MoultError, match="cannot use this connection in a forked process") as raised:
                use()
            assert "store.connection" in raised.value.now

    in_child(child)
    with store.connection as connection:
        connection.execute(INSERT, ["parent", 2])
    assert notes(store) == [("child", 1), ("parent", 0), ("parent", 2)]
    assert cursor.execute("SELECT count(*) FROM note").fetchone() == (3,)


def test_a_child_outlives_its_parent(store, mode):
    """Without its own locks, another process would remove the -wal that the child uses."""
    program = f"""if True:
        import os, sys
        from moult_store import Store
        store = Store({store.path!r})
        store.connection.execute("SELECT count(*) FROM note").fetchone()
        if os.fork():
            os._exit(0)
        with store.connection as connection:
            connection.execute({INSERT!r}, ["child", 1])
        print("ready", flush=True)
        sys.stdin.read()
        with store.connection as connection:
            connection.execute({INSERT!r}, ["child", 2])
        print("done", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.wait()
    other = sqlite3.connect(f"{store.path}/notes.db")
    other.execute(INSERT, ["other", 1])
    other.commit()
    other.close()
    assert os.path.exists(f"{store.path}/notes.db-wal") == (mode == "wal")
    child.stdin.close()
    assert child.stdout.readline() == "done\n"
    # The child has ended.
    assert child.stdout.read() == ""
    child.stdout.close()
    assert notes(store) == [("child", 1), ("child", 2), ("other", 1)]


def test_a_child_whose_parent_used_the_file_with_sqlite3_is_told_what_to_do(store, mode):
    plain = sqlite3.connect(f"{store.path}/notes.db")
    plain.execute(INSERT, ["plain", 1])

    def child():
        with pytest.raises(MoultError, match="it was forked while process"):
            store.connection

    in_child(child)
    plain.commit()
    assert notes(store) == [("plain", 1)]


def test_a_child_of_a_thread_whose_siblings_are_idle_opens_its_own_connection(store):
    assert store.connection.execute("SELECT count(*) FROM note").fetchone() == (0,)
    failures = []

    def fork():
        def child():
            with store.connection as connection:
                connection.execute(INSERT, ["child", 1])

        try:
            in_child(child)
        except BaseException as error:
            failures.append(error)

    with warnings.catch_warnings():
        # Newer versions of Python warn of every fork beside threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert failures == []
    assert notes(store) == [("child", 1)]


def test_the_transaction_of_the_parent_survives_its_child(store, mode):
    store.connection.execute(INSERT, ["parent", 1])
    mine = store.connection

    def child():
        mine.rollback()
        mine.close()
        store.close()
        gc.collect()

    in_child(child)
    assert store.connection is mine
    store.connection.commit()
    assert notes(store) == [("parent", 1)]


@pytest.mark.parametrize("end", ["sys.exit()", "store.close(); sys.exit()", "raise KeyboardInterrupt", "connection.close()"])
def test_the_end_of_a_forked_process_keeps_the_transaction_of_its_parent(store, end):
    program = f"""if True:
        import os, sys
        from moult_store import Store
        with Store({store.path!r}) as store:
            connection, other = store.connection, store.connect(read_only=True)
            connection.execute("PRAGMA cache_size = 5")
            with connection:
                # More than the cache holds, so that SQLite writes to the file before the commit.
                rows = [("x" * 1000, number) for number in range(2000)]
                connection.executemany("INSERT INTO note (writer, number) VALUES (?, ?)", rows)
                child = os.fork()
                if child == 0:
                    {end}
                    os.close(2)
                    sys.exit()
                os.waitpid(child, 0)
                assert os.path.exists({store.path!r} + "/notes.db-journal")
            assert store.connection is connection
    """
    subprocess.run([sys.executable, "-c", program], check=True)
    assert len(notes(store)) == 2000
    assert store.verify(deep=True).sound


def test_a_pool_of_processes_reads_the_store(store):
    assert store.connection.execute("SELECT count(*) FROM food.food").fetchone() == (FOODS,)
    with multiprocessing.get_context("fork").Pool(2, initializer=_share, initargs=[store]) as pool:
        assert pool.map(_count, range(8)) == [FOODS] * 8


def _share(store):
    global shared
    shared = store


def _count(_):
    return shared.connection.execute("SELECT count(*) FROM food.food").fetchone()[0]


def test_a_pool_of_sqlalchemy_replaces_connections_of_the_parent(store, mode):
    from sqlalchemy import text
    from moult_store.sqlalchemy import create_engine

    engine = create_engine(store)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO note (writer, number) VALUES ('parent', 1)"))

    def child():
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO note (writer, number) VALUES ('child', 1)"))
        engine.dispose()

    in_child(child)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO note (writer, number) VALUES ('parent', 2)"))
    engine.dispose()
    assert notes(store) == [("child", 1), ("parent", 1), ("parent", 2)]
