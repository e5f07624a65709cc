"""The exact content of a database: every value with its storage class and its bytes."""
import collections, re, sqlite3

OWN_TABLES = ("moult_release", "moult_rejected", "moult_transaction")
# Companions insert rows into this table while commands run. Each acknowledged row is looked for, but their number is not predicted.
BESIDE = "beside"


class Text(bytes):
    """The bytes of a text value, which need not be UTF-8."""


def open_memory():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.text_factory = Text
    return connection


def exact(value):
    """Returns a value as text. Two texts are equal only if storage class and bytes are equal."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "f" + value.hex()
    return ("t" if isinstance(value, Text) else "b") + value.hex()


def bound(text):
    """Returns the SQL expression and the parameter for an exact value."""
    if text == "NULL":
        return "?", None
    if text[0] == "f":
        return "?", float.fromhex(text[1:])
    if text[0] == "b":
        return "?", bytes.fromhex(text[1:])
    if text[0] == "t":
        return "CAST(? AS TEXT)", bytes.fromhex(text[1:])
    return "?", int(text)


def shown(text):
    """Returns an exact value in readable form."""
    if text[0] == "f":
        return repr(float.fromhex(text[1:]))
    if text[0] == "t":
        return repr(bytes.fromhex(text[1:]).decode(errors="backslashreplace"))
    return f"x'{text[1:]}'" if text[0] == "b" else text


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Content:
    """A database in memory, which is read lazily and must not change after the first read."""

    def __init__(self, connection):
        self.db = connection
        self.cache = {}

    def row_counts(self):
        """Returns the number of rows in each ordinary table, except moult's own tables and empty tables."""
        tables = [text.decode() for schema, text, kind, *_ in self.db.execute("PRAGMA main.table_list") if (schema, kind) == (b"main", b"table")]
        counts = {table: self.db.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0]
                  for table in tables if not table.lower().startswith(("sqlite_", "moult_"))}
        return {table: count for table, count in counts.items() if count}

    @classmethod
    def of_bytes(cls, data):
        connection = open_memory()
        connection.deserialize(data)
        return cls(connection)

    @classmethod
    def of_connection(cls, connection):
        copy = open_memory()
        connection.backup(copy)
        return cls(copy)

    @classmethod
    def of_file(cls, path, immutable=False):
        from urllib.parse import quote
        source = sqlite3.connect(f"file:{quote(path)}?mode={'ro&immutable=1' if immutable else 'rw'}", uri=True, timeout=0.5)
        try:
            return cls.of_connection(source)
        finally:
            source.close()

    def copy(self):
        """Returns a copy that may be changed."""
        return Content.of_connection(self.db)

    def lazily(name):
        def decorate(method):
            def read(self, *words):
                key = (name, *words)
                if key not in self.cache:
                    self.cache[key] = method(self, *words)
                return self.cache[key]
            return read
        return decorate

    def all(self, sql, *parameters):
        return self.db.execute(sql, parameters).fetchall()

    @property
    def objects(self):
        """The schema: kind, table and SQL of each object, by name."""
        if "objects" not in self.cache:
            found = {}
            for kind, name, table, sql in self.all("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
                kind, name = kind.decode(), name.decode()
                if name.startswith("sqlite_") or name in OWN_TABLES:
                    continue
                found[name] = (kind, table.decode(), sql.decode() if sql else "")
            virtual = [name for name, (_, _, sql) in found.items() if sql.startswith("CREATE VIRTUAL")]
            shadows = {f"{name}_{end}" for name in virtual for end in ("data", "idx", "content", "docsize", "config")}
            self.cache["objects"] = {name: what for name, what in found.items() if name not in shadows}
            self.cache["virtual"] = virtual
        return self.cache["objects"]

    @property
    def virtual(self):
        return self.objects is not None and self.cache["virtual"]

    @property
    def tables(self):
        """The names of the ordinary tables."""
        return [name for name, (kind, _, sql) in self.objects.items() if kind == "table" and not sql.startswith("CREATE VIRTUAL")]

    def table_named(self, name):
        return next((t for t in self.tables if t.lower() == name.lower()), None)

    @lazily("columns")
    def columns(self, table):
        return [row[1].decode() for row in self.all(f"PRAGMA table_info({quoted(table)})")]

    @lazily("rows")
    def rows(self, table):
        """Returns the exact rows in the table's own order."""
        return [tuple(map(exact, row)) for row in self.all(f"SELECT * FROM {quoted(table)}")]

    @lazily("count")
    def counted(self, table):
        return collections.Counter(self.rows(table))

    @property
    def rejected(self):
        """The rows of moult_rejected."""
        if "rejected" not in self.cache:
            there = self.all("SELECT 1 FROM sqlite_schema WHERE name = 'moult_rejected'")
            self.cache["rejected"] = [tuple(map(exact, row)) for row in self.all("SELECT * FROM moult_rejected")] if there else []
        return self.cache["rejected"]

    @property
    def rejected_columns(self):
        return [row[1].decode() for row in self.all("PRAGMA table_info(moult_rejected)")]

    @property
    def marker(self):
        """The digest of the shipped file that the content came from."""
        if "marker" not in self.cache:
            there = self.all("SELECT 1 FROM sqlite_schema WHERE name = 'moult_release'")
            found = self.all("SELECT digest FROM moult_release") if there else []
            self.cache["marker"] = found[0][0].decode() if found else None
        return self.cache["marker"]

    @property
    def sequence(self):
        if "sequence" not in self.cache:
            there = self.all("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'")
            self.cache["sequence"] = {name.decode(): seq for name, seq in self.all("SELECT name, seq FROM sqlite_sequence")
                                      if name.decode() not in OWN_TABLES} if there else {}
        return self.cache["sequence"]

    @property
    def user_version(self):
        return self.all("PRAGMA user_version")[0][0]

    @property
    def numbered(self):
        """Every row of the app by its number: table and values by column."""
        if "numbered" not in self.cache:
            found = {}
            for table in self.tables:
                columns = self.columns(table)
                if "n" not in columns:
                    continue
                at = columns.index("n")
                for row in self.rows(table):
                    if row[at][0].isdigit() and row[at] != "0":
                        found.setdefault(int(row[at]), []).append((table, dict(zip(columns, row))))
            self.cache["numbered"] = found
        return self.cache["numbered"]

    def differences(self, other, ignore_schema=False):
        """Returns the differences from the content of another database, as pairs of a check and a text."""
        found = []
        for table in dict.fromkeys(self.tables + other.tables):
            if (table in self.tables) != (table in other.tables):
                if not ignore_schema:
                    found.append(("schema", f"table {table} is {'not ' if table in self.tables else ''}expected"))
                continue
            if self.columns(table) != other.columns(table):
                found.append(("schema", f"{table} has columns {self.columns(table)}, expected {other.columns(table)}"))
                continue
            mine, theirs = self.counted(table), other.counted(table)
            if mine != theirs and table != BESIDE:
                for row, count in (mine - theirs).items():
                    found.append(("rows", f"{table}: unexpected row {line(self.columns(table), row)}" + (f" ({count} times)" if count > 1 else "")))
                for row, count in (theirs - mine).items():
                    found.append(("rows", f"{table}: missing row {line(self.columns(table), row)}" + (f" ({count} times)" if count > 1 else "")))
        if not ignore_schema:
            mine, theirs = {(n, *w) for n, w in self.objects.items()}, {(n, *w) for n, w in other.objects.items()}
            for name in sorted({o[0] for o in mine ^ theirs}):
                if name not in self.tables and name not in other.tables:
                    found.append(("schema", f"{name} is not as expected"))
                elif name in self.tables and name in other.tables:
                    found.append(("schema", f"{name} is {self.objects[name][2]!r}, expected {other.objects[name][2]!r}"))
        if self.sequence != other.sequence:
            found.append(("sequence", f"sqlite_sequence is {self.sequence}, expected {other.sequence}"))
        if self.user_version != other.user_version:
            found.append(("rows", f"user_version is {self.user_version}, expected {other.user_version}"))
        return found

    def same(self, other):
        return not self.differences(other) and sorted(self.rejected) == sorted(other.rejected)

    def faults(self):
        """Returns damage that SQLite finds, and full-text indexes that do not match their tables."""
        found = [("integrity", row[0].decode()) for row in self.all("PRAGMA integrity_check") if row[0] != b"ok"]
        for name in self.virtual:
            try:
                self.db.execute(f"INSERT INTO {quoted(name)}({quoted(name)}, rank) VALUES('integrity-check', 1)")
            except sqlite3.DatabaseError as error:
                found.append(("search", f"{name}: {error}"))
        return found


def line(columns, row):
    return "(" + ", ".join(f"{c}={shown(v)}" for c, v in zip(columns, row)) + ")"


def uniques(content, table):
    """Returns the unique sets of columns of a table, and the key that identifies a row."""
    info = content.all(f"PRAGMA table_info({quoted(table)})")
    pk = [row[1].decode() for row in sorted(info, key=lambda r: r[5]) if row[5]]
    sets = []
    for row in content.all(f"PRAGMA index_list({quoted(table)})"):
        if row[2]:
            sets.append([c[2].decode() for c in content.all(f"PRAGMA index_info({quoted(row[1].decode())})")])
    if pk and pk not in sets:
        sets.append(pk)
    without = bool(re.search(r"WITHOUT ROWID\s*$", content.objects[table][2]))
    return sets, (pk if without else ["rowid"])
