"""How a store runs the command: results, errors, timeouts, and how the command is found."""

import contextlib
import fcntl
import os
import pathlib
import pickle
import signal
import sqlite3
import stat
import subprocess
import sys
import time

import pytest

import moult_store
from moult_store import CommandNotFound, MoultError, MoultTimeout, Store, replace, undo_replace


def test_plan_apply_and_rollback(store, releases):
    plan = store.plan(releases[2])
    assert (plan.changes, plan.installed, plan.version) == (True, "1.0.0", "2.0.0")
    assert {effect.database for effect in plan.effects} >= {"food", "prices"}
    assert store.release == "1.0.0"

    update = store.apply(releases[2])
    assert (update.changed, update.previous, update.version) == (True, "1.0.0", "2.0.0")
    assert update.generation == store.generation
    assert not store.apply(releases[2]).changed
    assert not store.plan(releases[2]).changes

    back = store.rollback(reason="too many prices")
    assert (back.previous, back.version) == ("2.0.0", "1.0.0")
    assert store.status().json["holds"][0]["reason"] == "too many prices"
    with pytest.raises(MoultError) as raised:
        store.apply(releases[2])
    assert (raised.value.code, raised.value.exit_status) == ("E504", 3)


def test_a_zero_and_a_leading_dash_are_values(store, releases):
    with open(f"{store.path}/moult.json", "w") as file:
        file.write('{"moult": 1, "product": "org.example.shop", "waitForReaders": 30}')
    with store.connect():
        begin = time.monotonic()
        store.apply(releases[2], wait_for_readers=0)
        assert time.monotonic() - begin < 25
        store.rollback(reason="-1 rows", wait_for_readers=0)
    assert store.status().json["holds"][0]["reason"] == "-1 rows"


def test_a_saved_plan_is_applied_once(store, releases, place):
    store.plan(releases[2], save=place / "approved.plan")
    assert store.apply(plan=place / "approved.plan").version == "2.0.0"
    with pytest.raises(MoultError) as raised:
        store.apply(plan=place / "approved.plan")
    assert (raised.value.code, raised.value.exit_status) == ("E502", 4)


def test_status_and_verify(store):
    status = store.status()
    assert (status.version, status.product, status.unfinished) == ("1.0.0", "org.example.shop", ())
    assert {each.name: each.kind for each in status.databases}["prices"] == "shared"
    assert store.verify(deep=True).sound
    os.rename(f"{store.path}/prices.db", f"{store.path}/gone")
    fault = next(check for check in store.verify().checks if check.sound is False)
    assert fault.subject == "prices" and fault.finding
    assert [check.subject for check in store.verify("food").checks][0] == "food"


def test_a_missing_release(store, place):
    with pytest.raises(MoultError) as raised:
        store.apply(place / "none.json")
    error = raised.value
    assert (error.code, error.exit_status) == ("E272", 1)
    assert str(place / "none.json") in error.what and error.why and error.now
    assert str(error) == f"{error.what}: {error.why}\n{error.now}"
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.now, str(again)) == (error.code, error.now, str(error))


@pytest.fixture
def busy(store):
    """Takes and keeps the store's lock, as an update does."""
    with open(f"{store.path}/.moult/lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def test_a_busy_store(store, releases, busy):
    with pytest.raises(MoultError) as raised:
        store.apply(releases[2])
    assert (raised.value.code, raised.value.exit_status) == ("E802", 75)
    fcntl.flock(busy, fcntl.LOCK_UN)
    assert store.apply(releases[2]).version == "2.0.0"


def test_replace_and_undo(place):
    for name in ["old", "new"]:
        with sqlite3.connect(place / f"{name}.db") as database:
            database.execute("CREATE TABLE t (x)")
            database.execute("INSERT INTO t VALUES (?)", (name,))
        database.close()

    def content():
        return sqlite3.connect(place / "old.db").execute("SELECT x FROM t").fetchone()[0]

    with pytest.raises(MoultError) as raised:
        replace(place / "old.db", place / "new.db", checks=["SELECT count(*) FROM t>=2"])
    assert raised.value.exit_status == 3
    assert replace(place / "old.db", place / "new.db", checks="SELECT count(*) FROM t>=1").copies == 1
    assert content() == "new"
    undo_replace(place / "old.db")
    assert content() == "old"


def children(process):
    """Returns the commands that the threads of a process have started."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child), pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")


def test_a_timeout_stops_the_command(store, releases, busy):
    with pytest.raises(MoultTimeout) as raised:
        store.apply(releases[2], wait=60, timeout=1)
    assert "took longer than 1 s" in raised.value.what
    assert list(children(os.getpid())) == []
    fcntl.flock(busy, fcntl.LOCK_UN)
    assert store.release == "1.0.0"
    assert store.apply(releases[2], timeout=60).version == "2.0.0"


@pytest.mark.parametrize("attempt", range(5))
def test_an_interruption_stops_the_command(store, releases, busy, attempt):
    """An interruption ends the command even at the moment when it starts."""
    program = f"from moult_store import Store; Store({store.path!r}).apply({releases[2]!r}, wait=60)"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs, and thus these tests, with this signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    started = []
    while not started:
        assert process.poll() is None, process.communicate()[1]
        started = [child for child, words in children(process.pid) if b"apply" in words]
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGINT
    # Its parent has waited for it, so it is gone and not even a zombie.
    assert not os.path.exists(f"/proc/{started[0]}")


def test_no_directory_for_temporary_files_is_needed(store, monkeypatch, place):
    monkeypatch.setattr("tempfile.tempdir", str(place / "none"))
    monkeypatch.setenv("TMPDIR", str(place / "none"))
    assert store.status().version == "1.0.0"


def test_a_killed_command(place):
    stub = place / "moult"
    stub.write_text("#!/bin/sh\nkill -KILL $$\n")
    stub.chmod(0o755)
    with pytest.raises(MoultError, match="signal 9") as raised:
        Store(place, command=stub).status()
    assert raised.value.exit_status == -9


def test_another_program_named_moult(place):
    with pytest.raises(MoultError, match="printed no JSON"):
        Store(place, command="/bin/echo").status()


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_where_the_command_is_found(store, place, moult, monkeypatch):
    # In this order: explicit, MOULT, bundled, PATH.
    answer = '#!/bin/sh\necho \'{"error": {"code": "E1", "exit": 1, "what": "%s"}}\'\n'
    explicit, named = executable(place / "explicit", answer % "explicit"), executable(place / "named", answer % "named")
    (place / "bin").mkdir()
    executable(place / "bin" / "moult", answer % "path")
    bundled = executable(place / "bundled", answer % "bundled")

    def used(command=None):
        with pytest.raises(MoultError) as raised:
            Store(store.path, command=command).status()
        return raised.value.what

    monkeypatch.setenv("MOULT", str(named))
    monkeypatch.setenv("PATH", str(place / "bin"), prepend=os.pathsep)
    monkeypatch.setattr(moult_store.command, "BUNDLED", str(bundled))
    assert used(explicit) == "explicit"
    assert used() == "named"
    monkeypatch.delenv("MOULT")
    assert used() == "bundled"
    bundled.unlink()
    assert used() == "path"
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(CommandNotFound, match="not in PATH") as raised:
        Store(store.path).status()
    assert "MOULT=" in raised.value.now
    with pytest.raises(CommandNotFound, match="No such file"):
        Store(store.path, command=place / "none").status()
