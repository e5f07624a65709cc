"""The database is a cache: if its schema is not the one that this version of the app expects, the app starts with an empty one."""
import os
import sqlite3
import sys

SCHEMA = f"CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB{', width INTEGER' * (sys.argv[1] == '2')})"


def columns(connection):
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in tables}


def expected():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return columns(connection)


def is_ready(path):
    if not os.path.exists(path):
        return False
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA quick_check").fetchone() == ("ok",) and columns(connection) == expected()
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


def prepare(path):
    if is_ready(path):
        return False
    for suffix in ("-wal", "-shm", "-journal", ""):
        try:
            os.unlink(path + suffix)
        except FileNotFoundError:
            pass
    connection = sqlite3.connect(path + ".new")
    connection.executescript(SCHEMA)
    connection.close()
    os.rename(path + ".new", path)
    return True


print("fetch again" if prepare("thumbs.db") else "ready")
