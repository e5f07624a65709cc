"""Installs releases in turn, while threads of the same process write to and read from the store. Prints the rows of each writer.

    threads.py STORE UPDATES MANIFEST...
"""

import contextlib
import json
import sqlite3
import sys
import threading
from until_end import spin
from moult_store import MoultError, Store

store, updates, manifests = Store(sys.argv[1], timeout=30), int(sys.argv[2]), sys.argv[3:]
done = threading.Event()
results, failures = {}, []


def thread(name, work):
    def run():
        try:
            while not done.is_set():
                results[name] = results.get(name, 0) + work(name, results.get(name, 0) + 1)
            store.close()
        except BaseException as error:
            failures.append(f"{name}: {error!r}")

    started = threading.Thread(target=run)
    started.start()
    return started


def write(name, number):
    """Writes on the thread's connection, which switches to each release."""
    try:
        connection = store.connection
    except sqlite3.OperationalError:
        return 0
    connection.execute("PRAGMA busy_timeout = 0")
    return spin(connection, name, number)


def read(name, number):
    store.connection.execute("SELECT max(number) FROM note").fetchone()
    return 1


def visit(name, number):
    """Opens and closes all databases for one read."""
    with contextlib.closing(store.connect()) as connection:
        connection.execute("SELECT max(number) FROM note").fetchone()
    return 1


threads = [thread(name, write) for name in ["first", "second"]] + [thread("reader", read)]
threads += [thread(f"visitor {number}", visit) for number in range(3)]
print("ready", flush=True)
for turn in range(updates):
    while True:
        try:
            store.apply(manifests[turn % len(manifests)], follow="match", retry=20)
            break
        except MoultError as error:
            if error.exit_status != 75:
                raise
done.set()
for each in threads:
    each.join()
print(json.dumps({"rows": {name: results[name] for name in ["first", "second"]}, "results": results, "failures": failures}))
