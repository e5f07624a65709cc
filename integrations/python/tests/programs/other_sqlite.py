"""Writes rows with another version of SQLite until its input ends: it opens the database, commits a row and closes it.

    other_sqlite.py DATABASE MODE
"""

import sys
import time
import apsw
from until_end import work

path, mode = sys.argv[1:]
result = {"rows": 0, "sqlite": apsw.sqlite_lib_version()}


def write():
    number = result["rows"] + 1
    database = apsw.Connection(path)
    database.set_busy_timeout(30_000)
    database.pragma("journal_mode", mode)
    database.execute("INSERT INTO price VALUES (?, ?, 1)", (f"other {number}", number))
    database.close()
    result["rows"] = number
    time.sleep(0.01)


work(write, result)
