"""A new release arrives while threads read the database: `store.connection` is then a connection to the new release."""
import threading
import time

from moult_store import Store


def read():
    while not ended.is_set():
        name = store.connection.execute("SELECT name FROM data.food WHERE id = 1").fetchone()[0]
        if name not in seen:
            seen.append(name)


store, seen, ended = Store("store"), [], threading.Event()
store.apply("releases/app-1.0.0.json", create=True)
thread = threading.Thread(target=read)
thread.start()
time.sleep(0.2)
store.apply("releases/app-2.0.0.json")
time.sleep(0.2)
ended.set()
thread.join()
print(seen)
