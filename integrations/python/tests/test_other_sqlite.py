"""Programs with another version of SQLite than the command, which write while releases are installed."""

import sqlite3

import pytest
from conftest import Program


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_no_row_of_another_version_of_sqlite_is_lost(store, releases, mode):
    path = f"{store.path}/prices.db"
    with Program("other_sqlite", path, mode).ready() as program:
        for number in (2, 1, 2, 1, 2, 1, 2, 1):
            store.apply(releases[number], allow_downgrade=True)
        written = program.finish()
    assert written["rows"] > 10
    assert written["sqlite"] != sqlite3.sqlite_version
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM price WHERE item LIKE 'other %'").fetchone() == (written["rows"],)
        assert database.execute("PRAGMA journal_mode").fetchone() == (mode,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM moult_release").fetchone() == (1,)
