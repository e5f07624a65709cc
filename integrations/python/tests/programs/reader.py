"""Reads a store through `connection` until its input ends: each query must see exactly one complete release.

    reader.py STORE FOODS
"""

import sys
from until_end import work
from moult_store import Store

store, foods = Store(sys.argv[1]), int(sys.argv[2])
result = {"queries": 0, "switches": 0}
half_read = None


def read():
    global half_read
    connection = store.connection
    release = int(connection.release.split(".")[0])
    found = connection.execute("SELECT count(*), min(release), max(release) FROM food.food").fetchone()
    assert found == (foods, release, release), (found, connection.generation)
    shipped, least, most = connection.execute("SELECT count(*), min(cents), max(cents) FROM price WHERE own = 0").fetchone()
    assert shipped == foods and least == most, (shipped, least, most)
    result["queries"] += 1
    # A partly read cursor continues in its release, whatever is installed in the meantime.
    if half_read is None or half_read.connection.generation != connection.generation:
        if half_read is not None:
            rest = {row[0] for row in half_read}
            assert rest == {int(half_read.connection.release.split(".")[0])}, rest
            result["switches"] += 1
        half_read = store.connect().execute("SELECT release FROM food.food")
        half_read.fetchone()


work(read, result)
