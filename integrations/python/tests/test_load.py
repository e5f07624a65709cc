"""Readers and writers in other processes, while releases are installed."""

import os

from conftest import FOODS, MIGRATED

from moult_store import MoultError


# The updates that exited with 75 because a database was in use.
busy = []


def update(action):
    """Tries again if a database is in use, as an operator or a timer would."""
    for _ in range(100):
        try:
            return action()
        except MoultError as error:
            if error.exit_status != 75:
                raise
            busy.append(error)
    raise busy[-1]


def check_rows(store, writers):
    """Checks that each row that a writer committed exists exactly once."""
    connection = store.connect()
    for writer in writers:
        name, written = writer["name"], writer["rows"]
        found = connection.execute("SELECT count(*), count(DISTINCT number) FROM note WHERE writer = ?", [name]).fetchone()
        assert found == (written, written), (name, found)
        found = connection.execute("SELECT count(*), max(cents) FROM price WHERE own = 1 AND item LIKE ?", [f"{name} %"])
        assert found.fetchone() == (written, written), name


def test_no_row_is_lost_and_no_release_is_mixed(store, releases, program, capsys):
    readers = [program("reader", store.path, FOODS).ready() for _ in range(2)]
    if os.geteuid() == 0:
        # A user with read permission only.
        readers.append(program("reader", store.path, FOODS, user=65534).ready())
    writers = [program("writer", store.path, name, name.split()[0]).ready() for name in ["connection", "connect"]]
    flips, rollbacks = 0, 0
    for turn in range(20):
        flips += 1
        result = update(lambda: store.apply(releases[2 - turn % 2], follow="match", retry=20))
        assert result.version == f"{2 - turn % 2}.0.0"
    # Each rollback leaves a hold on the release, which an operator removes.
    for _ in range(5):
        update(lambda: store.apply(releases[2], follow="match", retry=20))
        update(lambda: store.rollback("1.0.0", wait=20))
        store._command.run(["unhold", "--json", "--store", store.path, "2.0.0"])
        flips, rollbacks = flips + 2, rollbacks + 1
    # Both releases change the schema of the user's database, the first by a migration.
    for number in [MIGRATED, 4]:
        assert update(lambda: store.apply(releases[number], retry=20)).version == f"{number}.0.0"
        flips += 1
    assert store.connection.execute("PRAGMA main.user_version").fetchone() == (1,)
    written, read = [each.finish() for each in writers], [each.finish() for each in readers]
    check_rows(store, written)
    assert store.verify(deep=True).sound
    assert all(each["rows"] > 50 and each["releases"] >= 2 for each in written), written
    assert all(each["queries"] > 50 and each["switches"] >= 2 for each in read), read
    with capsys.disabled():
        print(f"\n{flips} installs ({rollbacks} rollbacks, {len(busy)} busy)\nwriters: {written}\nreaders: {read}")


def test_a_writer_that_opens_the_store_for_each_row_loses_none(store, releases, program, capsys):
    writer = program("writer", store.path, "connect", "connect").ready()
    before = len(busy)
    for turn in range(10):
        update(lambda: store.apply(releases[2 - turn % 2], follow="match"))
    written = writer.finish()
    check_rows(store, [written])
    with capsys.disabled():
        print(f"\n10 installs ({len(busy) - before} busy)\nwriter: {written}")
    assert written["rows"] > 0, written
