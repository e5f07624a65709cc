"""The app's own database may be damaged. Then it is set aside with its sidecars, and the app starts with an empty one, once."""
import os
import sqlite3
import sys
import time

SCHEMA = "CREATE TABLE note (text TEXT)"
SIDECARS = ("", "-wal", "-shm", "-journal")


def fault(path):
    if not os.path.isfile(path):
        return "it is missing" if not os.path.lexists(path) else "it is not a file"
    if os.path.getsize(path) == 0:
        return "it is empty"
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True)
    try:
        result = connection.execute("PRAGMA quick_check").fetchone()[0]
        return None if result == "ok" else result
    except sqlite3.OperationalError:
        # It is locked, or the disk has failed, and not damaged.
        raise
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        connection.close()


def set_aside(path):
    kept = f"kept/{time.strftime('%Y%m%dT%H%M%S')}"
    if os.path.isdir("kept") and any(time.time() - each.stat().st_mtime < 60 for each in os.scandir("kept")):
        raise RuntimeError("the database is damaged again")
    os.makedirs(kept)
    for suffix in reversed(SIDECARS):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, f"{kept}/{os.path.basename(path)}{suffix}")


def opened(path):
    why = fault(path)
    if why is not None:
        if os.path.lexists(path):
            set_aside(path)
        template = sqlite3.connect(path + ".new")
        template.execute(SCHEMA)
        template.commit()
        template.close()
        os.rename(path + ".new", path)
    return sqlite3.connect(path), why


if sys.argv[1] == "2":
    with open("notes.db", "w") as file:
        file.write("garbage")
connection, why = opened("notes.db")
print("started over" if why and sys.argv[1] == "2" else "opened", connection.execute("SELECT count(*) FROM note").fetchone())
with connection:
    connection.execute("INSERT INTO note VALUES ('mine')")
