"""Connections while another process installs releases."""

import gc
import os
import shlex
import sqlite3
import subprocess
import sys
import threading
import warnings

import pytest
from conftest import FOODS, NAMES, printed_attachments

from moult_store import MoultError, Store

RELEASE = "SELECT DISTINCT release FROM food.food"


def install(store, manifest):
    """Installs a release in another process, as an operator or a timer would."""
    subprocess.run(["moult", "apply", "-q", "--store", store.path, "--follow", "match", manifest], check=True)


def release(connection):
    return connection.execute(RELEASE).fetchall()[0][0]


def notes(store):
    return store.connect().execute("SELECT count(*) FROM note").fetchone()[0]


@pytest.fixture(autouse=True)
def command_in_path(moult, monkeypatch):
    monkeypatch.setenv("PATH", os.path.dirname(moult), prepend=os.pathsep)


def leases(store):
    """Returns the generations with readers, according to the command."""
    return {each["name"] for each in store.status().json["generations"] if each["holders"]}


def test_connection_has_all_databases(store):
    databases = store.connection.execute("SELECT name FROM pragma_database_list ORDER BY name").fetchall()
    assert [name for (name,) in databases] == ["food", "main", "prices", "small-pictures"]


def test_connection_moves_to_the_next_release(store, releases):
    assert release(store.connection) == 1
    install(store, releases[2])
    assert release(store.connection) == 2
    assert store.connection.release == "2.0.0" == store.release
    assert store.connection.generation == store.generation


def test_connection_stays_the_same_within_a_release(store):
    assert store.connection is store.connection


def test_an_open_transaction_keeps_the_connection(store, releases):
    store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    install(store, releases[2])
    assert release(store.connection) == 1
    store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 2)")
    store.connection.commit()
    assert release(store.connection) == 2
    assert notes(store) == 2


def test_a_transaction_that_a_with_statement_spans_is_committed(store, releases):
    with store.connection:
        store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
        install(store, releases[2])
        store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 2)")
    assert notes(store) == 2


def test_a_with_statement_keeps_its_connection_before_the_first_write(store, releases):
    with store.connection:
        assert release(store.connection) == 1
        install(store, releases[2])
        store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    assert notes(store) == 1
    with pytest.raises(ZeroDivisionError), store.connection, store.connection:
        assert release(store.connection) == 2
        install(store, releases[1])
        store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 2)")
        raise ZeroDivisionError
    assert not store.connection.in_transaction
    assert (notes(store), release(store.connection)) == (1, 1)


def test_a_with_statement_on_an_old_connection_commits_its_block(store, releases):
    old = store.connection
    install(store, releases[2])
    assert release(store.connection) == 2
    with old:
        store.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    assert (notes(store), release(store.connection)) == (1, 2)


def test_commit_reaches_the_newest_of_several_transactions(store, releases):
    cursor = store.connection.cursor()
    install(store, releases[2])
    store.connection.execute("INSERT INTO note (writer, number) VALUES ('new', 1)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        cursor.connection.execute("PRAGMA busy_timeout = 0")
        cursor.execute("INSERT INTO note (writer, number) VALUES ('old', 1)")
    store.connection.commit()
    assert notes(store) == 1
    # The failed statement has begun a transaction, too.
    store.connection.rollback()
    assert release(store.connection) == 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no autocommit")
def test_a_connection_that_always_has_a_transaction_switches_after_its_end(store, releases):
    with Store(store.path, configure=lambda connection: setattr(connection, "autocommit", False)) as own:
        assert release(own.connection) == 1
        install(store, releases[2])
        assert release(own.connection) == 1
        own.connection.commit()
        assert release(own.connection) == 2
        own.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
        install(store, releases[1])
        own.connection.execute("INSERT INTO note (writer, number) VALUES ('a', 2)")
        own.connection.rollback()
        assert release(own.connection) == 1
        cursor = own.connection.cursor()
        own.connection.commit()
        cursor.execute("INSERT INTO note (writer, number) VALUES ('a', 3)")
        install(store, releases[2])
        with own.connection:
            assert release(own.connection) == 1
        assert release(own.connection) == 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del cursor
            own.connection.rollback()
            own.connection
    assert notes(store) == 1


def test_a_cursor_with_rows_left_keeps_the_connection(store, releases):
    numbers = [(number,) for number in range(100)]
    with store.connection as connection:
        connection.executemany("INSERT INTO note (writer, number) VALUES ('a', ?)", numbers)
    install(store, releases[2])
    # With two connections, the open read would prevent this write from committing.
    for index, (row,) in enumerate(store.connection.execute("SELECT id FROM note WHERE writer = 'a'")):
        if index == 50:
            install(store, releases[1])
        with store.connection as connection:
            connection.execute("INSERT INTO note (writer, number) VALUES ('b', ?)", (row,))
        # After the last row, the cursor has no rows left.
        assert release(connection) == 2 or index == 99
    assert notes(store) == 200
    assert release(store.connection) == 1


def test_an_old_cursor_continues_in_its_release(store, releases):
    cursor = store.connection.cursor()
    install(store, releases[2])
    assert release(store.connection) == 2
    assert cursor.execute(RELEASE).fetchall() == [(1,)]
    assert release(store.connection) == 2
    assert len(leases(store)) == 2
    del cursor
    # The next use of the store closes the earlier connection, without waiting for the garbage collector.
    assert release(store.connection) == 2
    assert leases(store) == {store.generation}


def test_an_old_connection_that_nothing_uses_is_closed_at_once(store, releases):
    assert release(store.connection) == 1
    gc.disable()
    try:
        install(store, releases[2])
        assert release(store.connection) == 2
        assert leases(store) == {store.generation}
    finally:
        gc.enable()


def test_a_variable_keeps_an_old_connection_open(store, releases):
    connection = store.connection
    others = [connection]
    install(store, releases[2])
    assert (release(store.connection), release(connection)) == (2, 1)
    del connection
    assert (release(store.connection), release(others[0])) == (2, 1)


def test_commit_reaches_a_transaction_of_an_old_cursor(store, releases):
    cursor = store.connection.cursor()
    install(store, releases[2])
    assert release(store.connection) == 2
    cursor.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    store.connection.commit()
    assert notes(store) == 1
    assert release(store.connection) == 2


def test_lost_changes_are_reported(store):
    connection = store.connect()
    connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    with pytest.warns(ResourceWarning, match="rolled back"):
        del connection
        gc.collect()


def test_a_separate_connection_keeps_its_release(store, releases):
    own = store.connect()
    before = store.generation
    install(store, releases[2])
    assert release(own) == 1
    assert leases(store) == {before}
    own.close()
    own.close()
    assert leases(store) == set()


def test_a_lease_ends_with_its_last_reference(store):
    pairs = store.attachments()
    assert leases(store) == {store.generation}
    del pairs
    assert leases(store) == set()


def test_a_closed_connection_is_opened_again(store):
    store.connection.close()
    assert release(store.connection) == 1
    store.close()
    assert release(store.connection) == 1


def test_each_thread_has_a_connection(store, releases):
    seen, errors = set(), []
    barrier = threading.Barrier(5)

    def read():
        try:
            for _ in range(20):
                barrier.wait()
                connection = store.connection
                seen.add(id(connection))
                assert release(connection) == int(connection.release[0])
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        if turn % 5 == 4:
            install(store, releases[2 if turn % 10 == 4 else 1])
        barrier.wait()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(seen) >= 4
    gc.collect()
    assert leases(store) == set()


def test_releases_are_read_only(store):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store.connection.execute("DELETE FROM food.food")


def test_a_read_only_connection_writes_nothing(store):
    connection = store.connect(read_only=True)
    for table in ["note", "prices.price", "food.food"]:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute(f"DELETE FROM {table}")


def test_each_connection_is_configured(place, store, releases):
    rows = Store(store.path, configure=lambda connection: setattr(connection, "row_factory", sqlite3.Row))
    assert rows.connection.execute("SELECT count(*) AS n FROM food.food").fetchone()["n"] == FOODS
    install(store, releases[2])
    assert rows.connection.execute("SELECT count(*) AS n FROM food.food").fetchone()["n"] == FOODS


@pytest.mark.parametrize("name", NAMES)
def test_directories_with_special_characters(place, releases, name):
    store = Store(place / name)
    store.apply(releases[1], create=True)
    assert release(store.connection) == 1
    with store.connection as connection:
        connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    attached = sqlite3.connect(":memory:", uri=True)
    with store.attachments() as pairs:
        for number, (schema, uri) in enumerate(pairs):
            attached.execute(f"ATTACH ? AS s{number}", [uri])
    assert [schema for schema, _ in pairs] == ["food", "main", "prices", "small-pictures"]
    assert attached.execute("SELECT count(*) FROM s1.note").fetchone() == (1,)
    assert sorted(os.listdir(store.path)) == sorted([".moult", "food.db", "moult.json", "notes.db", "prices.db", "thumbs.db"])


def test_attachments_are_those_of_the_command(store):
    assert list(store.attachments()) == printed_attachments(store)


def test_a_missing_database_is_named(store):
    path = os.path.join(store.path, "prices.db")
    os.rename(path, path + ".gone")
    with pytest.raises(MoultError) as raised:
        store.connection
    assert raised.value.code == "E521"
    assert path in raised.value.what
    assert "moult verify --store" in raised.value.now
    os.rename(path + ".gone", path)
    assert release(store.connection) == 1


@pytest.mark.parametrize("name", ["notes.db", "prices.db"])
def test_an_empty_file_is_not_a_database(store, name):
    os.truncate(os.path.join(store.path, name), 0)
    with pytest.raises(MoultError, match=f"{name}: the file is empty") as raised:
        store.connection
    assert raised.value.code == "E521"


def test_a_cache_may_be_empty(store):
    os.truncate(os.path.join(store.path, "thumbs.db"), 0)
    assert release(store.connection) == 1


def test_a_directory_in_place_of_a_database_is_named(store):
    os.remove(os.path.join(store.path, "prices.db"))
    os.mkdir(os.path.join(store.path, "prices.db"))
    with pytest.raises(MoultError, match="prices.db: it is not a regular file"):
        store.connection


@pytest.mark.parametrize("instead", ["missing", "link", "pipe", "directory", "no directory"])
def test_a_store_without_a_lease_file_is_read(store, instead):
    leases = os.path.join(store.path, ".moult", "leases")
    path = os.path.join(leases, store.generation)
    os.remove(path)
    if instead == "link":
        os.symlink("/etc/passwd", path)
    elif instead == "pipe":
        os.mkfifo(path)
    elif instead == "directory":
        os.mkdir(path)
    elif instead == "no directory":
        os.rename(leases, leases + ".old")
        open(leases, "w").close()
    assert release(store.connection) == 1


@pytest.mark.parametrize("instead", ["file", "directory", "elsewhere", "parent"])
def test_a_damaged_link_to_the_release_is_named(store, instead):
    current = os.path.join(store.path, ".moult", "current")
    generation = store.generation
    os.remove(current)
    if instead == "file":
        open(current, "w").close()
    elif instead == "directory":
        os.mkdir(current)
    else:
        os.symlink(f"../../elsewhere/{generation}" if instead == "elsewhere" else "generations/..", current)
    with pytest.raises(MoultError, match="current cannot be used") as raised:
        store.connection
    assert raised.value.code == "E800"
    assert raised.value.now == f"Restore it with: moult recover --store {shlex.quote(store.path)}"


@pytest.mark.parametrize("instead", ["missing", "damaged"])
def test_a_damaged_generation_is_named(store, instead):
    generation = os.path.join(store.path, ".moult", "generations", store.generation)
    os.chmod(generation, 0o755)
    os.remove(os.path.join(generation, "manifest.json"))
    if instead == "damaged":
        with open(os.path.join(generation, "manifest.json"), "w") as file:
            file.write("{")
    with pytest.raises(MoultError, match="cannot be read") as raised:
        store.connection
    assert raised.value.code == "E803"


def test_a_damaged_database_is_named(store):
    with open(os.path.join(store.path, "notes.db"), "r+b") as file:
        file.write(b"this is not a database")
    with pytest.raises(MoultError) as raised:
        store.connection
    assert raised.value.code == "E403"
    assert "notes.db" in raised.value.what


def test_a_store_without_a_release(place, moult):
    store = Store(place / "none")
    with pytest.raises(MoultError) as raised:
        store.connection
    assert (raised.value.code, raised.value.exit_status) == ("E800", None)
    assert "--create" in raised.value.now
    os.mkdir(store.path)
    with pytest.raises(MoultError, match="is not a store: it has no moult.json"):
        store.connection
    subprocess.run([moult, "init", "-q", store.path, "--product", "org.example.shop"], check=True)
    with pytest.raises(MoultError, match="no release has been installed yet"):
        store.generation
