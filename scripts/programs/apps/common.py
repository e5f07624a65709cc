"""What the programs share: each writes numbered rows, acknowledges those that were committed, and shows what it reads.

    PROGRAM.py STORE DIRECTORY

The file NAME.acks gets a line for each committed row: its table, its writer and its number. The file NAME.view has the releases that
the program has read when it last drew its view: one for each database, as SQLite joins them. The program ends when DIRECTORY has a
file `stop`.
"""
import os, sys, threading, time, traceback

NOTE = "INSERT INTO note (writer, number) VALUES (?, ?)"
PRICE = "INSERT INTO price (item, cents, own) VALUES (?, ?, 1)"
FOODS = "SELECT group_concat(DISTINCT release) FROM food"
PRICES = "SELECT group_concat(DISTINCT cents) FROM price WHERE own = 0"
# An update holds a database for a moment, and eight programs write to it.
TIMEOUT = 60


class App:
    def __init__(self):
        self.store, self.directory = sys.argv[1:3]
        self.name = os.path.basename(sys.argv[0])[:-3]
        self._acks = os.open(self.path("acks"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._lock = threading.Lock()

    def path(self, suffix):
        return os.path.join(self.directory, f"{self.name}.{suffix}")

    @property
    def stopped(self):
        return os.path.exists(os.path.join(self.directory, "stop"))

    def acknowledge(self, table, writer, number):
        os.write(self._acks, f"{table} {writer} {number}\n".encode())

    def show(self, *releases):
        with self._lock:
            with open(self.path("new"), "w") as out:
                out.write(" ".join(map(str, releases)))
            os.rename(self.path("new"), self.path("view"))

    def numbers(self, pause=0.03):
        """Yields the numbers of rows until the program ends."""
        number = 0
        while not self.stopped:
            number += 1
            yield number
            time.sleep(pause)

    def write(self, writer, insert, pause=0.03):
        """Writes rows: `insert(statement, values)` commits one."""
        for number in self.numbers(pause):
            insert(NOTE, (writer, number))
            self.acknowledge("note", writer, number)
            insert(PRICE, (f"{writer} {number}", number))
            self.acknowledge("price", writer, number)

    def run(self, *works):
        """Runs functions in threads. The first error ends the program."""
        def work(function):
            try:
                function()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)

        threads = [threading.Thread(target=work, args=[function]) for function in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
