"""Writes numbered rows to a store until its input ends, and counts those that were committed.

    writer.py STORE NAME connection|connect
"""

import contextlib
import sys
from until_end import work
from moult_store import Store

store, name, how = Store(sys.argv[1], timeout=30), sys.argv[2], sys.argv[3]
result = {"name": name, "rows": 0, "releases": 0}
seen = set()


@contextlib.contextmanager
def connection():
    """Returns the thread's connection, or a new one for each row: then the file is often closed."""
    if how == "connection":
        yield store.connection
    else:
        with contextlib.closing(store.connect()) as own:
            yield own


def write():
    number = result["rows"] + 1
    with connection() as db, db:
        db.execute("INSERT INTO note (writer, number) VALUES (?, ?)", (name, number))
        seen.add(db.generation)
    with connection() as db, db:
        db.execute("INSERT INTO price VALUES (?, ?, 1)", (f"{name} {number}", number))
    result["rows"] = number
    result["releases"] = len(seen)


work(write, result)
