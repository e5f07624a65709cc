"""The app: it writes rows to its databases, each with a number and odd values, and creates tables and other objects.

    app.py DATABASE SEED NUMBER OUT    inserts rows, and writes each committed row to OUT
"""
import os, pickle, random, sqlite3, sys

sys.path[1:1] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
from catalogue import BESIDE, WORDS

ODD = ["'text'", "'007'", "9e999", "-9e999", "NULL", "9223372036854775807", "-9223372036854775808", "X'00FF10'", "X''", "''",
       "CAST(X'C4E4FF' AS TEXT)", "CAST(X'610062' AS TEXT)", "0.1", "1e15", "'1e3'", "' 5'", "3.0", "-0.0", "'ÄÖ'", "9007199254740993", "1", "'7'"]


def connect(path):
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.3)
    connection.text_factory = bytes
    return connection


def tables(connection):
    """Returns the tables that an app would write to, with their columns."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    virtual = [name.decode() for name, sql in rows if sql and sql.startswith(b"CREATE VIRTUAL")]
    found = {}
    for name, sql in rows:
        name = name.decode()
        if name == BESIDE.table or name.startswith(("sqlite_", "moult_")) or name in virtual or any(name.startswith(v + "_") for v in virtual):
            continue
        found[name] = [(row[1].decode(), row[2].decode(), bool(row[5])) for row in connection.execute(f"PRAGMA table_info({name})")]
    return found


class Writer:
    """Makes the statements of an app; each new or changed row gets the next number."""

    def __init__(self, connection, rng, number):
        self.connection, self.rng, self.number = connection, rng, number
        self.tables = tables(connection)

    def statement(self, only_new=False):
        rng = self.rng
        if not self.tables:
            return None
        table = rng.choice(sorted(self.tables))
        columns = self.tables[table]
        names = [name for name, _, _ in columns]
        roll = 1 if only_new else rng.random()
        there = self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if there and roll < 0.15:
            return f"DELETE FROM {table} WHERE {self.one(table, there)}"
        if there and roll < 0.4:
            changes = [f"{name} = {self.value(name, kind, table)}" for name, kind, _ in columns
                       if name in ("n", "own") or name != "k" and rng.random() < 0.5 or name == "k" and rng.random() < 0.1]
            return f"UPDATE {table} SET {', '.join(changes)} WHERE {self.one(table, there)}" if changes else None
        chosen = [(name, kind) for name, kind, _ in columns if name in ("n", "own") or rng.random() < 0.75]
        if "k" in names and table == "log":
            chosen = [c for c in chosen if c[0] != "k"]
        if not chosen:
            return None
        return (f"INSERT INTO {table}({', '.join(name for name, _ in chosen)}) "
                f"VALUES({', '.join(self.value(name, kind, table) for name, kind in chosen)})")

    def one(self, table, there):
        """Returns a condition that selects one row, and that also works in a shell script."""
        at = self.rng.randrange(there)
        try:
            rowid = self.connection.execute(f"SELECT rowid FROM {table} LIMIT 1 OFFSET {at}").fetchone()[0]
            return f"rowid = {rowid}"
        except sqlite3.OperationalError:
            key = self.connection.execute(f"SELECT quote(k) FROM {table} LIMIT 1 OFFSET {at}").fetchone()[0]
            return f"k = {key.decode()}"

    def value(self, name, kind, table):
        rng = self.rng
        if name == "n":
            self.number += 1
            return str(self.number)
        if name == "own":
            return "1" if rng.random() < 0.85 else "0"
        if name == "pin":
            return rng.choice(["0", "1"])
        if name in ("k", "item") and kind == "INTEGER":
            return str(rng.randint(1, 12))
        if name in ("k", "item"):
            return "'" + rng.choice(WORDS) + "'"
        if table == "doc" and name == "v" and rng.random() < 0.7:
            return f"'note u{self.number}'"
        return rng.choice(ODD)


def own_schema(rng, connection, name):
    """Returns SQL for a table, index, trigger, view or column that the app creates."""
    have = sorted(tables(connection))
    table = rng.choice(have) if have else None
    what = rng.choice(["table", "table", "index", "trigger", "view"])
    if what == "table" or not table:
        return f"CREATE TABLE {name}(k INTEGER PRIMARY KEY, n INTEGER, own INTEGER DEFAULT 1, v)"
    column = rng.choice([c for c, _, _ in tables(connection)[table]])
    return {
        "index": f"CREATE INDEX {name} ON {table}({column})",
        "trigger": f"CREATE TRIGGER {name} AFTER DELETE ON {table} BEGIN SELECT 1; END",
        "view": f"CREATE VIEW {name} AS SELECT {column} FROM {table}",
    }[what]


def insert(path, seed, number, out):
    """Inserts rows while a command runs. Rows that cannot be written because the command has locked the file are not
    acknowledged."""
    from content import Content
    # The app opens read-only databases read-only, because as root it could write to them.
    if not os.path.exists(path) or os.path.islink(path) and os.readlink(path).startswith(".moult/"):
        return
    connection = connect(path)
    writer = Writer(connection, random.Random(seed), number)
    done, statements = set(), 0
    for _ in range(3):
        first = writer.number + 1
        try:
            sql = writer.statement(only_new=True)
            if sql and connection.execute(sql).rowcount > 0:
                done |= set(range(first, writer.number + 1))
                statements += 1
        except sqlite3.DatabaseError:
            pass
    rows = {n: places[0] for n, places in Content.of_connection(connection).numbered.items() if n in done}
    connection.close()
    with open(out, "wb") as file:
        pickle.dump((statements, rows), file)


if __name__ == "__main__":
    insert(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
