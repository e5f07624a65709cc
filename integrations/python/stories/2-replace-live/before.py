"""A new file arrives while threads read the database. All of them must let go before it is replaced, and then open it again."""
import contextlib
import os
import shutil
import sqlite3
import threading
import time


class Live:
    """All code that reads the database must use this class."""

    def __init__(self, path):
        self.path, self.generation = path, 0
        self.changed, self.readers, self.is_replacing = threading.Condition(), 0, False
        self.mine = threading.local()

    @contextlib.contextmanager
    def connection(self):
        with self.changed:
            while self.is_replacing:
                self.changed.wait()
            self.readers += 1
            generation = self.generation
        try:
            if getattr(self.mine, "generation", None) != generation:
                if hasattr(self.mine, "connection"):
                    self.mine.connection.close()
                self.mine.connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
                self.mine.generation = generation
            yield self.mine.connection
        finally:
            with self.changed:
                self.readers -= 1
                self.changed.notify_all()

    def replace(self, new):
        shutil.copyfile(new, f"{self.path}.new")
        check = sqlite3.connect(f"{self.path}.new")
        try:
            if check.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise RuntimeError(f"{new} is damaged")
        finally:
            check.close()
        descriptor = os.open(f"{self.path}.new", os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        with self.changed:
            self.is_replacing = True
            try:
                if not self.changed.wait_for(lambda: self.readers == 0, timeout=10):
                    raise RuntimeError("a reader does not let go")
                for suffix in ("-wal", "-shm", "-journal"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self.path + suffix)
                os.rename(f"{self.path}.new", self.path)
                self.generation += 1
            finally:
                self.is_replacing = False
                self.changed.notify_all()


def read():
    while not ended.is_set():
        with live.connection() as connection:
            name = connection.execute("SELECT name FROM food WHERE id = 1").fetchone()[0]
        if name not in seen:
            seen.append(name)


shutil.copyfile("1/data.db", "data.db")
live, seen, ended = Live("data.db"), [], threading.Event()
thread = threading.Thread(target=read)
thread.start()
time.sleep(0.2)
live.replace("2/data.db")
time.sleep(0.2)
ended.set()
thread.join()
print(seen)
