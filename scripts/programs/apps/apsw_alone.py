"""apsw, with its own copy of SQLite: the program opens no database with sqlite3 or `store.connection`."""
import warnings

import apsw
from common import App, FOODS, PRICES, TIMEOUT
from moult_store import SecondSQLiteWarning, Store

app = App()
store = Store(app.store)
# Only apsw opens the databases.
warnings.simplefilter("ignore", SecondSQLiteWarning)
FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI


class Connection:
    """A connection of one thread, which keeps its writable databases open."""

    def __init__(self):
        self.lease, self.attachments = None, store.attachments()
        uris = {one.schema: one.uri() for one in self.attachments.lease.databases}
        self.db = apsw.Connection(uris["main"], flags=FLAGS)
        self.db.set_busy_timeout(TIMEOUT * 1000)
        self.db.execute("ATTACH ? AS prices", [uris["prices"]])
        self.db.execute("ATTACH ? AS food", [uris["food"]])

    def follow(self):
        """Replaces the read-only database, if a release was announced; returns whether it was."""
        if not self.attachments.lease.is_outdated:
            return False
        self.db.execute("DETACH food")
        self.attachments.close()
        self.attachments = store.attachments()
        self.db.execute("ATTACH ? AS food", [dict(self.attachments)["food"]])
        return True


def write():
    connection = Connection()

    def insert(statement, values):
        connection.follow()
        connection.db.execute(statement, values)

    app.write("apsw", insert)


def redraw():
    connection, is_first = Connection(), True
    for _ in app.numbers(pause=0.002):
        if connection.follow() or is_first:
            is_first = False
            app.show(*(connection.db.execute(sql).fetchone()[0] for sql in (FOODS, PRICES)))


app.run(redraw, write)
