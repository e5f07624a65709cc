"""The care of a store: reset, recovery, quarantine, holds, history, clean, and caches without releases."""

import os
import sqlite3
import threading
import time

import pytest

import moult_store
from moult_store import (
    Cancellation,
    Decided,
    Done,
    HeldError,
    InUseError,
    LockedError,
    MoultError,
    OperationCancelled,
    Recovery,
    RefusedError,
    StoreError,
    TooOldError,
    VersionError,
    WillNotLoadError,
    Working,
    cache,
)
from moult_store.command import Child
from test_command import busy, children  # noqa: F401


def add_note(store, text):
    with store.connection as connection:
        connection.execute("INSERT INTO note (writer, number) VALUES (?, 1)", [text])


def test_holds(store, releases):
    assert [(each.release, each.reason) for each in store.hold(">=2 <3", reason="-bad-")] == [(">=2 <3", "-bad-")]
    with pytest.raises(HeldError) as raised:
        store.apply(releases[2])
    assert (raised.value.code, raised.value.outcome) == ("E504", "refused")
    assert store.status().holds[0].reason == "-bad-"
    assert store.unhold(">=2 <3") == ()
    store.hold(reason="holidays")
    assert store.status().holds[0].release == "*"
    store.unhold()
    assert store.apply(releases[2]).changed
    with pytest.raises(ValueError):
        store.hold("--all", reason="x")


def test_history_and_kept_generations(store, releases):
    first = store.generation
    store.apply(releases[2])
    newest, oldest = store.history(), store.history(1)
    assert (newest[0].action, newest[0].previous, newest[0].generation, newest[0].is_done) == ("update", first, store.generation, True)
    assert len(newest) == 2 and len(oldest) == 1
    assert str(newest[0]).endswith(f"update {first} -> {store.generation}: done")
    assert store.status().kept == (first,)
    with store.lease():
        assert store.clean(keep=1) == ()


def test_is_current(store, releases):
    assert store.is_current(releases[1])
    assert not store.is_current(releases[2])
    assert not moult_store.Store(store.path + "-none").is_current(releases[1])
    os.unlink(f"{store.path}/food.db")
    assert not store.is_current(releases[1])


def test_paths_are_stable(store):
    assert store.path_of("food") == f"{store.path}/food.db"
    assert os.path.realpath(store.path_of("food")) == store.lease().path_of("food")
    assert store.path_of("notes") == store.lease().path_of("notes") == f"{store.path}/notes.db"
    with pytest.raises(MoultError, match='no database "foods"'):
        store.path_of("foods")


def test_a_reset_keeps_the_old_rows(store):
    add_note(store, "kept")
    store.close()
    with pytest.raises(RefusedError, match="user data"):
        store.reset("notes")
    recovered = store.reset("notes", set_user_data_aside=True, reason="a test")
    assert (recovered.why, os.path.isdir(recovered.set_aside)) == ("a test", True)
    assert store.connection.execute("SELECT count(*) FROM note").fetchone() == (0,)
    (old,) = store.quarantine()
    assert (old.database, old.reason, old.directory) == ("notes", "a test", recovered.set_aside)


def test_quarantine_is_exported_and_restored(store, place):
    add_note(store, "kept")
    store.close()
    store.reset("notes", set_user_data_aside=True)
    exported = store.export_quarantined("notes", place / "old.db")
    assert sqlite3.connect(exported).execute("SELECT writer FROM note").fetchall() == [("kept",)]
    store.restore_quarantined(store.quarantine()[0].id, table="note")
    assert store.connection.execute("SELECT writer FROM note").fetchall() == [("kept",)]
    store.close()
    store.reset("notes", set_user_data_aside=True)
    store.restore_quarantined("notes")
    assert store.connection.execute("SELECT writer FROM note").fetchall() == [("kept",)]


DAMAGE = {
    "empty": lambda path: open(path, "w").close(),
    "garbage": lambda path: open(path, "w").write("garbage" * 1000),
    "directory": lambda path: (os.unlink(path), os.mkdir(path)),
    "missing": os.unlink,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_open_recovers_as_permitted_and_only_once(store, damage):
    path = f"{store.path}/notes.db"
    DAMAGE[damage](path)
    for policy in [Recovery.NEVER, Recovery.CACHES_ONLY]:
        with pytest.raises(WillNotLoadError) as raised:
            store.open("notes", recovering=policy)
        assert path in raised.value.what and "moult reset notes" in raised.value.now
    connection = store.open("notes", recovering=Recovery.SET_USER_DATA_ASIDE)
    assert connection.execute("SELECT count(*) FROM note").fetchone() == (0,)
    assert connection.recovered.why
    connection.close()
    if damage == "missing":
        return
    assert store.quarantine()[0].database == "notes"
    DAMAGE[damage](path)
    with pytest.raises(WillNotLoadError, match="just recreated"):
        store.open("notes", recovering=Recovery.SET_USER_DATA_ASIDE)


def test_open_recovers_a_file_that_this_process_has_used(store):
    add_note(store, "lost")
    connection = store.connection
    DAMAGE["garbage"](f"{store.path}/notes.db")
    with pytest.raises(InUseError, match=f"pid {os.getpid()}") as raised:
        store.open("notes", recovering=Recovery.SET_USER_DATA_ASIDE)
    assert raised.value.now.startswith("Close the connections of this program")
    del connection
    store.close()
    assert store.open("notes", recovering=Recovery.SET_USER_DATA_ASIDE).recovered


def test_open_recovers_a_cache_and_opens_a_read_only_database(store):
    DAMAGE["garbage"](f"{store.path}/thumbs.db")
    with store.open("thumbs", recovering=Recovery.CACHES_ONLY) as connection:
        assert connection.recovered and connection.execute("SELECT count(*) FROM thumb").fetchone() == (0,)
    with store.open("food") as connection:
        assert connection.recovered is None
        assert connection.execute("SELECT DISTINCT release FROM food").fetchall() == [(1,)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM food")
    with store.open("notes") as connection:
        assert connection.recovered is None


def test_data_that_is_too_old(store, releases):
    with open(f"{store.path}/moult.json", "w") as file:
        file.write('{"moult": 1, "product": "org.example.shop", "maxAge": 1}')
    time.sleep(2.1)
    store.connect().close()
    with pytest.raises(TooOldError) as raised:
        store.connect(refusing_old_data=True)
    assert (raised.value.code, raised.value.exit_status) == ("E805", 3)
    with pytest.raises(TooOldError):
        moult_store.Store(store.path).connect(refusing_old_data=True)
    with open(f"{store.path}/moult.json", "w") as file:
        file.write('{"moult": 1, "product": "org.example.shop", "maxAge": 1000}')
    store.connect(refusing_old_data=True).close()


def test_recover_and_an_earlier_release(store, releases):
    assert store.recover() == ()
    store.apply(releases[2])
    with pytest.raises(VersionError):
        store.apply(releases[1])
    with pytest.raises(StoreError):
        moult_store.Store(store.path + "-none").status()


def test_an_interrupted_update_is_reported(store, releases):
    number = 1
    while not store.status().unfinished:
        # On a busy machine, the command may have ended before it is killed.
        number = 3 - number
        words = ["apply", "--json", "--follow=match", "--store", store.path, releases[number]]
        child = Child([store._command.find(), *words])
        child.start()
        while b'"progress"' not in (child.output.get() or b'"progress"'):
            pass
        child.kill()
        child.stop()
    (recovered,) = store.recover()
    assert (recovered.ending, recovered.version) in [(ending, f"{number}.0.0") for ending in ("cleaned", "finished")]
    assert recovered.previous == f"{3 - number}.0.0"
    assert str(recovered) == recovered.text
    assert store.status().unfinished == ()


def test_progress(store, releases):
    seen, thread = [], threading.get_ident()
    store.apply(releases[2], progress=lambda event: seen.append((event, threading.get_ident())))
    assert {number for _, number in seen} == {thread}
    events = [event for event, _ in seen]
    assert Decided() in events
    assert any(isinstance(each, Working) and each.total >= each.done for each in events)
    assert {each.effect.database for each in events if isinstance(each, Done)} >= {"food", "prices"}


def test_an_error_in_progress_stops_the_update(store, releases):
    def fail(event):
        raise RuntimeError("no screen")

    with pytest.raises(RuntimeError, match="no screen"):
        store.apply(releases[2], progress=fail)
    assert list(children(os.getpid())) == []
    assert store.status().unfinished == ()


def test_a_cancellation_ends_the_command(store, releases, busy):  # noqa: F811
    with Cancellation() as cancellation:
        threading.Timer(0.5, cancellation.cancel).start()
        begin = time.monotonic()
        with pytest.raises(OperationCancelled) as raised:
            store.apply(releases[2], wait=60)
        assert time.monotonic() - begin < 20
        assert raised.value.code == "E600" and list(children(os.getpid())) == []
        # It also prevents later commands of the block.
        with pytest.raises(OperationCancelled):
            store.status()
    assert store.status().version == "1.0.0"
    with pytest.raises(LockedError):
        store.apply(releases[2])


def test_log(store, releases, caplog):
    caplog.set_level("INFO", "moult_store")
    store.apply(releases[2])
    assert [record.getMessage() for record in caplog.records] == [f"{store.path}: apply installed 2.0.0, was 1.0.0"]


def test_a_cache_without_releases(place):
    schema = "CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB);"
    state = cache(place / "thumbs.db", schema)
    assert (state.is_fresh, state.why) == (True, "the file was missing")
    with sqlite3.connect(place / "thumbs.db") as connection:
        connection.execute("INSERT INTO thumb VALUES (1, x'00')")
    connection.close()
    assert not cache(place / "thumbs.db", schema).is_fresh
    state = cache(place / "thumbs.db", "CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB, width INTEGER);")
    assert state.is_fresh and "width" in state.why
    with pytest.raises(MoultError):
        cache(place / "thumbs.db", "no SQL")


def test_errors_have_a_class_for_each_code():
    error = MoultError("it is held", code="E504", exit_status=3)
    assert type(error) is HeldError and error.outcome == "refused"
    assert type(MoultError("x", code="E999")) is MoultError
    assert MoultError("x", exit_status=75).outcome == "busy"
