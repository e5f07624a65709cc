"""Code that the test programs share."""

import json
import sqlite3
import sys
import threading
import time


def work(body, result):
    """Calls `body` until standard input ends, and prints the result. An error ends the program."""
    ended = threading.Event()

    def wait():
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    body()
    print("ready", flush=True)
    while not ended.is_set():
        body()
    print(json.dumps(result), flush=True)


def spin(connection, name, number):
    """Writes a row and returns 1; returns 0 if another connection has the lock.

    The program tries again soon. It is more likely than SQLite, which waits longer after each attempt, to get a lock that
    another process has lost.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        time.sleep(0.0001)
        return 0
    connection.execute("INSERT INTO note (writer, number) VALUES (?, ?)", (name, number))
    while True:
        try:
            connection.commit()
            return 1
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
