"""A release is announced when the content of all its databases is there."""

import os
import sqlite3
import subprocess

import pytest
from conftest import FOODS

from moult_store import MoultError, Store
from moult_store.announcements import announced


def content(connection):
    """Returns the releases of the read-only database, of the shared database, and of the user's."""
    foods = connection.execute("SELECT DISTINCT release FROM food.food").fetchall()
    prices = connection.execute("SELECT DISTINCT cents FROM price WHERE own = 0").fetchall()
    columns = [name for _, name, *_ in connection.execute("PRAGMA main.table_info(note)")]
    return [value for (value,) in foods], [value for (value,) in prices], "done" in columns


def installing(moult, store, manifest):
    words = [moult, "apply", "-q", "--store", store.path, "--follow", "match", "--retry", "20", manifest]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL)


def set_modes(store, mode):
    for name in ["notes.db", "prices.db"]:
        connection = sqlite3.connect(f"{store.path}/{name}")
        assert connection.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
        connection.close()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_redraw_reads_the_new_content_of_every_database(store, releases, moult, mode):
    """The program redraws when its connection is another one. After the last redraw, it shows the installed release."""
    set_modes(store, mode)
    shown, seen = None, []
    for number in [2, 1] * 5 + [2, 3, 4]:
        command = installing(moult, store, releases[number])
        ended = False
        while not ended:
            ended = command.poll() is not None
            connection = store.connection
            if connection is not shown:
                shown = connection
                seen = content(connection)
        assert command.returncode == 0
        assert seen == ([number], [number], number >= 3)
        assert (shown.release, store.generation) == (f"{number}.0.0", shown.generation)
        assert not shown.is_outdated


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_lease_is_outdated_when_the_new_content_is_there(store, releases, moult, mode):
    """A program that opens the files itself, and keeps its connections to writable databases."""
    set_modes(store, mode)
    kept = sqlite3.connect(f"{store.path}/prices.db")
    lease, seen = store.lease(), []
    for number in [2, 1] * 5:
        command = installing(moult, store, releases[number])
        ended = False
        while not ended:
            ended = command.poll() is not None
            if lease.is_outdated:
                lease.close()
                lease = store.lease()
                shared = [value for (value,) in kept.execute("SELECT DISTINCT cents FROM price WHERE own = 0")]
                seen = lease.version, shared
        assert command.returncode == 0
        assert seen == (f"{number}.0.0", [number])


def test_a_reset_of_the_same_release_is_announced(store, moult):
    connection = store.connection
    before = announced(store.path)
    subprocess.run([moult, "reset", "-q", "--store", store.path, "thumbs"], check=True)
    after = announced(store.path)
    assert before.generation == after.generation == store.generation
    assert before.transaction != after.transaction
    assert store.connection is not connection
    assert not store.connection.is_outdated


def test_a_rollback_is_announced(store, releases):
    store.apply(releases[2])
    connection = store.connection
    store.rollback("1.0.0")
    assert connection.is_outdated
    assert content(store.connection) == ([1], [1], False)


class Records:
    """The records of a store between the switch of an update and its end."""

    def __init__(self, store, releases):
        self.store, self.hidden = store, os.path.join(store.path, ".moult")
        store.apply(releases[2])
        self.new, self.new_line = store.generation, self.line
        store.apply(releases[1], follow="match")
        self.old, self.old_line = store.generation, self.line

    @property
    def line(self):
        with open(os.path.join(self.hidden, "announced")) as file:
            return file.read()

    def point_at(self, generation):
        link = os.path.join(self.hidden, "current.new")
        os.symlink(f"generations/{generation}", link)
        os.rename(link, os.path.join(self.hidden, "current"))

    def announce(self, line):
        path = os.path.join(self.hidden, "announced.new")
        with open(path, "w") as file:
            file.write(line)
        os.rename(path, os.path.join(self.hidden, "announced"))


@pytest.fixture
def records(store, releases):
    return Records(store, releases)


def test_the_line_names_the_generation(records):
    assert records.new_line.split()[0] == records.new
    assert records.old_line.split()[0] == records.old
    assert os.stat(os.path.join(records.hidden, "announced")).st_mode & 0o777 == 0o644


def test_a_lease_before_an_update_is_outdated_after_its_last_commit(store, records):
    lease = store.lease()
    assert not lease.is_outdated
    records.point_at(records.new)
    assert not lease.is_outdated
    records.announce(records.new_line)
    assert lease.is_outdated


def test_a_lease_during_an_update_is_outdated_after_its_last_commit(store, records):
    records.point_at(records.new)
    lease = store.lease()
    assert (lease.generation, lease.is_outdated) == (records.new, False)
    records.announce(records.new_line)
    assert lease.is_outdated
    assert not store.lease().is_outdated


def test_a_lease_during_an_update_is_outdated_when_the_update_is_undone(store, records):
    records.point_at(records.new)
    lease = store.lease()
    records.point_at(records.old)
    assert lease.is_outdated
    assert not store.lease().is_outdated


def test_a_lease_on_a_release_whose_successor_was_announced_meanwhile_is_outdated(store, records):
    records.announce(records.new_line)
    lease = store.lease()
    assert (lease.generation, lease.is_outdated) == (records.old, False)
    records.point_at(records.new)
    assert lease.is_outdated


@pytest.mark.parametrize("line", ["", "1.0.0+ab", "1.0.0+ab 20\n\n", "../x+1 20\n", "1.0.0+ab 20 more\n", "x" * 5000, "1.0.0+ab 2\xff\n"])
def test_a_line_that_cannot_be_understood_counts_as_none(store, records, line):
    path, before = os.path.join(records.hidden, "announced"), store.lease()
    with open(path, "w", encoding="latin-1") as file:
        file.write(line)
    assert announced(store.path) is None
    assert not before.is_outdated
    lease = store.lease()
    assert not lease.is_outdated
    records.announce(records.new_line)
    assert lease.is_outdated


@pytest.mark.parametrize("instead", ["nothing", "pipe", "directory", "link", "loop"])
def test_something_else_in_place_of_the_line_counts_as_none(store, records, instead):
    path = os.path.join(records.hidden, "announced")
    os.rename(path, path + ".real")
    if instead == "pipe":
        os.mkfifo(path)
    elif instead == "directory":
        os.mkdir(path)
    elif instead != "nothing":
        os.symlink("announced.real" if instead == "link" else "announced", path)
    assert announced(store.path) is None
    assert store.connection.execute("SELECT count(*) FROM food.food").fetchone() == (FOODS,)
    assert store.connection is store.connection


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_line_that_this_user_may_not_read_is_named(store):
    path = os.path.join(store.path, ".moult", "announced")
    os.chmod(path, 0)
    with pytest.raises(MoultError, match="may not read") as raised:
        Store(store.path).connection
    assert (raised.value.code, raised.value.now) == ("E401", f"Let the user read it: chmod a+r '{path}'")
