"""A till that has the prices open all day. It closes them on SIGUSR1 and opens them again on SIGHUP.

    till.py DATABASE PIDFILE [--stubborn]
"""
import os, signal, sqlite3, sys

database, pid_file = sys.argv[1:3]
prices = None


def open_prices(*_):
    global prices
    prices = sqlite3.connect(database, timeout=5)
    (apple,) = prices.execute("SELECT cents FROM price WHERE item = 'apple'").fetchone()
    print(f"an apple is {apple} cents", flush=True)


def let_go(*_):
    if "--stubborn" in sys.argv:
        return
    prices.close()
    print("let go", flush=True)


signal.signal(signal.SIGUSR1, let_go)
signal.signal(signal.SIGHUP, open_prices)
open_prices()
# Written only when the till is ready for signals, because a process that reads the number may send one.
with open(pid_file + ".new", "w") as file:
    file.write(f"{os.getpid()}\n")
os.rename(pid_file + ".new", pid_file)
while True:
    signal.pause()
