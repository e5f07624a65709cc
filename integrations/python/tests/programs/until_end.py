"""Code that the test programs share."""

import json
import sys
import threading


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
