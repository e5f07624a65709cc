#!/usr/bin/env python3
"""An app in Python that writes to a database while moult works on it; companion.c explains its arguments and its output."""
import getopt, os, sqlite3, sys, time

options, (mode, path, acks, *statements) = getopt.getopt(sys.argv[1:], "n:c:t:s:p:k:")
wish = {"-n": "1", "-c": "100000", "-t": "60", "-s": "1", "-p": "5,20", "-k": "0"} | dict(options)
first, count, seconds, seed, hold = (int(wish[name]) for name in ("-n", "-c", "-t", "-s", "-k"))
low, high = map(int, wish["-p"].split(","))
out = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
kept = None


def stopped():
    return os.path.exists(acks + ".stop")


def pause(milliseconds):
    end = time.monotonic() + milliseconds / 1000
    while time.monotonic() < end and not stopped():
        time.sleep(0.001)


def tell(*words):
    os.write(out, (" ".join(map(str, words)) + "\n").encode())


def is_sealed():
    """Returns whether the database is a link into the store, to a read-only database. Root could write to it, but apps do not."""
    return os.path.islink(path) and os.readlink(path).startswith(".moult/")


def connect():
    connection = sqlite3.connect(f"file:{path}?mode={'rwc' if mode == 'creates' else 'rw'}", uri=True, timeout=5, isolation_level=None)
    try:
        # The file was opened when the path was no link yet, or is not used.
        if is_sealed():
            raise sqlite3.OperationalError("read-only")
        # As in companion.c, so that a commit that returned survives a power cut.
        connection.execute("PRAGMA synchronous = EXTRA")
        if mode == "wal":
            connection.execute("PRAGMA journal_mode = WAL")
        if mode == "rollback":
            try:
                connection.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.OperationalError:
                # SQLite refuses to leave WAL mode while other connections are open.
                pass
        return connection
    except sqlite3.Error:
        connection.close()
        raise


def insert(connection, number):
    """Executes the statements whose tables exist; returns a mask of them."""
    mask = 0
    for i, sql in enumerate(statements):
        try:
            connection.execute(sql, (number,) if "?1" in sql else ())
            mask |= 1 << i
        except sqlite3.OperationalError as error:
            if not str(error).startswith("no such table"):
                raise
    return mask


def transact(number):
    global kept
    begun, connection = time.monotonic_ns(), kept
    try:
        connection = connection or connect()
        connection.execute("BEGIN IMMEDIATE")
        mask = insert(connection, number)
        connection.execute("COMMIT")
        tell("ack", number, mask, begun, time.monotonic_ns())
        pause(hold)
    except sqlite3.Error as error:
        # A release may move the database to another path, or make it read-only.
        if os.path.exists(path) and not is_sealed():
            tell("error", number, error)
        if connection and connection.in_transaction:
            connection.rollback()
    if mode == "stays":
        kept = connection
    elif connection:
        connection.close()


end = time.monotonic() + seconds
if mode == "reads":
    kept = connect()
    kept.execute("BEGIN")
    kept.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    tell("ack", 0, 0, 0, 0)
    pause(seconds * 1000)
    kept.rollback()
    count = 0
for number in range(first, first + count):
    if time.monotonic() >= end or stopped():
        break
    transact(number)
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    pause(low + (seed >> 8) % (high - low + 1))
if kept:
    kept.close()
