"""Schemas, generated rows, and the exact content of a database. Nothing here uses moult.

A schema is a file of SQL in `schemas`. Its first line is a comment with the program and the version. Comments that begin with
`-- @` say what the generator and the reader have to know:

    -- @collation NAME          the program defines this collation; here it ignores case
    -- @function NAME COUNT [N]  the program defines this function; here it returns its first argument as text, or the number N
    -- @module CREATE VIRTUAL TABLE NAME USING ...   a table of a module that only the program has
    -- @tokenizer NAME OTHER    the program defines this tokenizer; the files name it, and OTHER builds and reads the index
    -- @encoding UTF-16le
    -- @rows TABLE N            the number of generated rows (default: equal in all tables, at least 1,000 in all)
    -- @skip TABLE              rows of this table come from triggers, or the program has filled it
    -- @fill TABLE.COLUMN SQL   the value of this column; :n is the number of the row, :v the version of the content (1 or 2)
    -- @preserve TABLE...       the app writes rows to these tables, and releases preserve them
    -- @migrate TABLE           the migration changes this table
"""
import random, re, sqlite3

APP = 900000  # Rows that the app writes are numbered from here.
MOULT_TABLES = ("moult_release", "moult_rejected")
WORDS = "alder birch cedar Ærø ebony fir grün hazel 樹 juniper kauri O'Hara maple \"nut\" oak pine qu%ick rowan_ spruce 🌲teak".split()


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Program:
    """A program of the zoo: its schema, and what this schema needs."""

    def __init__(self, name, text, make=None):
        self.name, self.make = name, make
        self.title = text.split("\n", 1)[0].lstrip("- ").strip()
        self.sql = text
        self.options = re.findall(r"^-- @(\w+) (.*)$", text, re.M)
        self.rows_of = {table: int(count) for table, count in (value.split() for value in self.all("rows"))}
        self.fills = {tuple(where.split(".", 1)): sql for where, sql in (o.split(None, 1) for o in self.all("fill"))}

    def all(self, option):
        return [value.strip() for name, value in self.options if name == option]

    def words(self, option):
        return [word for value in self.all(option) for word in value.split()]

    def only_here(self):
        """The names of what only the program has; the message of a refusal must contain one of them."""
        return [value.split()[0].strip("'") for option in ("collation", "function", "tokenizer") for value in self.all(option)] + [
            value.split("USING ")[1].split("(")[0] for value in self.all("module")]

    def needs(self, connection):
        """Defines what the program itself would define."""
        for name in self.words("collation"):
            connection.create_collation(name, lambda a, b: (a.casefold() > b.casefold()) - (a.casefold() < b.casefold()))
        def call(*values):
            first = next((value for value in values if value is not None), None)
            return first.decode(errors="replace") if isinstance(first, bytes) else first if first is None else str(first)

        for name, count, *number in (value.split() for value in self.all("function")):
            connection.create_function(name, int(count), (lambda *_, n=int(number[0]): n) if number else call, deterministic=True)

    def tokenizers(self, connection, stored):
        """Writes the tokenizers of the program into the schema, or those that this SQLite has."""
        pairs = [value.split() for value in self.all("tokenizer")]
        if not pairs:
            return
        # Python's driver begins transactions of its own unless isolation_level is None.
        connection.execute("PRAGMA writable_schema = ON")
        for name, other in pairs:
            old, new = (other, name) if stored else (name, other)
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE sql LIKE 'CREATE VIRTUAL%tokenize%'",
                (f"tokenize={old}", f"tokenize={new}"))
        version, = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")
        connection.execute("PRAGMA writable_schema = RESET")

    def create(self, path):
        """Makes the database without generated rows."""
        if self.make:
            self.make(path)
            return
        connection = sqlite3.connect(path, isolation_level=None)
        for encoding in self.all("encoding"):
            connection.execute(f"PRAGMA encoding = '{encoding}'")
        self.needs(connection)
        text = self.sql
        for name, other in (value.split() for value in self.all("tokenizer")):
            text = text.replace(f"tokenize={name}", f"tokenize={other}")
        connection.executescript("BEGIN;" + text + ";COMMIT;")
        self.tokenizers(connection, stored=True)
        for statement in self.all("module"):
            name = statement.split()[3]
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("INSERT INTO sqlite_schema VALUES ('table', ?, ?, 0, ?)", (name, name, statement))
        connection.close()

    def build(self, path, empty, version):
        """Makes a database with the generated rows of a version."""
        with open(empty, "rb") as source, open(path, "wb") as target:
            target.write(source.read())
        self.write(path, lambda filler: filler.fill(version))

    def write(self, path, work):
        """Writes rows as the program would, and checks the result."""
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            self.needs(connection)
            self.tokenizers(connection, stored=False)
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            work(Filler(self, connection))
            connection.execute("COMMIT")
            for check in ("integrity_check", "foreign_key_check"):
                found = [row for row in connection.execute(f"PRAGMA {check}").fetchall() if not is_false_alarm(connection, row[0])]
                if found not in ([], [("ok",)]):
                    raise RuntimeError(f"{self.name}: {check}: {found[:3]}")
            self.tokenizers(connection, stored=True)
        finally:
            connection.close()


def is_false_alarm(connection, text):
    """SQLite 3.40 reports NULL in columns of WITHOUT ROWID tables that stand before a column of the key, and have no NULL."""
    found = re.fullmatch(r"NULL value in (\w+)\.(\w+)", str(text))
    return found and not connection.execute(f"SELECT count(*) FROM {quoted(found[1])} WHERE typeof({quoted(found[2])}) = 'null'").fetchone()[0]


class Table:
    """The facts of a table that the generator needs."""

    def __init__(self, connection, name, kind, without_rowid):
        self.name, self.kind = name, kind
        self.sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0] or ""
        info = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        self.columns = [row[1] for row in info if row[6] == 0]
        self.types = {row[1]: (row[2] or "").upper() for row in info}
        self.not_null = {row[1] for row in info if row[3]}
        self.key = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
        self.unique = [set(self.key)] if self.key else []
        for _, index, unique, *_ in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
            if unique:
                self.unique.append({row[0] for row in connection.execute("SELECT name FROM pragma_index_info(?)", (index,)) if row[0]})
        self.in_key = set().union(*self.unique) if self.unique else set()
        self.parents = {}
        keys = connection.execute(f"PRAGMA foreign_key_list({quoted(name)})").fetchall()
        for number, position, parent, column, to, *_ in keys:
            self.parents.setdefault(column, (parent, to, position))
        # The rowid is the key if the type of the only key column is exactly INTEGER.
        self.rowid_key = len(self.key) == 1 and self.types[self.key[0]] == "INTEGER" and not without_rowid
        self.has_rowid = not without_rowid
        self.choices = {
            column.lower(): [eval_literal(word) for word in re.findall(r"'(?:[^']|'')*'|-?\d+", words)]
            for column, words in re.findall(r"[\"`\[]?(\w+)[\"`\]]?\s+IN\s*\(([^()]*)\)", self.sql, re.I)}
        self.checked = {word.lower() for part in re.findall(r"CHECK\s*\((.*)", self.sql, re.I) for word in re.findall(r"\w+", part)}
        self.json = {word.lower() for word in re.findall(r"json\w*\s*\(\s*[\"`\[]?(\w+)", self.sql, re.I)}
        self.json |= {word.lower() for word in re.findall(r"[\"`\[]?(\w+)[\"`\]]?\s*->", self.sql)}


def eval_literal(word):
    return word[1:-1].replace("''", "'") if word[0] == "'" else int(word)


class Filler:
    """Generates rows: the same rows for the same schema, version and number."""

    def __init__(self, program, connection):
        self.program, self.db = program, connection
        self.base = 1000 if program.make else 0
        listed = connection.execute("PRAGMA main.table_list").fetchall()
        self.tables = {name: Table(connection, name, kind, wr) for _, name, kind, _, wr, _ in listed
                       if kind in ("table", "virtual") and not name.startswith("sqlite_") and name not in MOULT_TABLES
                       and name not in {statement.split()[3] for statement in program.all("module")}}
        self.by_name = {name.lower(): name for name in self.tables}
        self.rows_of = program.rows_of
        ordinary = [name for name in self.tables if self.tables[name].kind == "table" and name not in program.words("skip")]
        self.count = max(40, 1100 // max(1, len(ordinary)) + 1)
        self.referenced = {self.by_name.get(parent[0].lower()) for table in self.tables.values() for parent in table.parents.values()}
        self.triggers = "\n".join(row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'"))
        self.helper = sqlite3.connect(":memory:")

    def rows(self, name, version):
        count = self.rows_of.get(name, self.count)
        numbers = range(self.base + 1, self.base + count + (1 + 15 * (version - 1) if count > 20 else 1))
        # A newer version lacks some rows that no other row refers to, and has some more.
        may_remove = version == 2 and name not in self.referenced and count > 20
        return [n for n in numbers if not (may_remove and n % 11 == 0)]

    def fill(self, version):
        skipped = self.program.words("skip")
        for name, table in self.tables.items():
            if name in skipped:
                continue
            if table.kind == "virtual":
                self.fill_virtual(table, version)
            else:
                for n in self.rows(name, version):
                    self.insert(table, n, version)
        for name, table in self.tables.items():
            if table.kind == "virtual" and name not in skipped and is_external(table.sql) and not self.from_trigger(name):
                self.db.execute(f"INSERT INTO {quoted(name)}({quoted(name)}) VALUES('rebuild')")

    def from_trigger(self, name):
        return re.search(rf"INTO\s+[\"`\[]?{re.escape(name)}\b", self.triggers, re.I)

    def fill_virtual(self, table, version):
        module = module_of(table.sql)
        if self.from_trigger(table.name) or is_external(table.sql) or module in ("fts5vocab", "fts4aux", "fts3tokenize", "spellfix1"):
            return
        for n in self.rows(table.name, version):
            if module in ("rtree", "rtree_i32"):
                bounds = [round((n * 37 % 360) - 180 + (i % 2) * 0.5 + (version - 1) * (n % 9 == 0), 3) for i in range(len(table.columns) - 1)]
                extra = bounds[:len(table.columns) - 1]
                self.put(table.name, table.columns, [n, *extra])
            else:
                values = [self.value(table, column, n, version) for column in table.columns]
                self.put(table.name, ["rowid", *table.columns], [n, *values])

    def insert(self, table, n, version):
        columns, values = list(table.columns), [self.value(table, column, n, version) for column in table.columns]
        if not table.key and table.has_rowid and not {"rowid"} & {column.lower() for column in columns}:
            columns, values = ["rowid", *columns], [n, *values]
        self.put(table.name, columns, values)

    def put(self, name, columns, values):
        try:
            self.db.execute(f"INSERT INTO {quoted(name)}({', '.join(map(quoted, columns))}) VALUES({', '.join('?' * len(values))})", values)
        except sqlite3.Error as error:
            raise RuntimeError(f"{self.program.name}: {name}: {error}: {dict(zip(columns, values))}") from error

    def value(self, table, column, n, version):
        sql = self.program.fills.get((table.name, column))
        if sql:
            return self.helper.execute(f"SELECT {sql}", {"n": n, "v": version if n % 9 == 0 else 1}).fetchone()[0]
        optional = column not in table.not_null and column not in table.in_key
        number = table.columns.index(column)
        if column in table.parents and (parent := self.by_name.get(table.parents[column][0].lower())):
            if optional and (n + number) % 6 == 0 or parent == table.name and n == self.base + 1 and optional:
                return None
            target = self.tables[parent]
            to = table.parents[column][1] or target.key[table.parents[column][2]]
            to = next(name for name in target.columns if name.lower() == to.lower())
            if parent == table.name:
                return self.value(target, to, self.base + 1 if column not in table.in_key else n, version) if to != column else n
            # Rows with the same number belong together, so pairs of references are unique.
            count = self.rows_of.get(parent, self.count)
            all_of = count + 15 * (version - 1) if count > 20 else count
            number = n if self.base < n <= self.base + all_of else self.base + 1 + n % count
            return self.value(target, to, number, version)
        kind, low = table.types[column], column.lower()
        if low in table.choices:
            return table.choices[low][n % len(table.choices[low])]
        if optional and low not in table.checked and (n + number) % 6 == 0:
            return None
        salt = version if n % 9 == 0 and column not in table.in_key and low not in table.checked else 1
        return self.plain(kind, low, n, salt, column in table.in_key, low in table.json or "json" in low or "JSON" in kind)

    def plain(self, kind, name, n, salt, unique, json):
        if unique and "INT" in kind:
            return n
        if "INT" in kind or "BOOL" in kind:
            return n % 2 if "BOOL" in kind or name.startswith(("is_", "has_")) else (n * 7919 + 13 * salt) % 100003
        if json:
            return f'{{"n": {n}, "word": "{WORDS[n % 5]}", "list": [{salt}, 2.5, null], "deep": {{"on": true}}}}'
        word = WORDS[(n * 5 + len(name) + salt) % len(WORDS)]
        if "BLOB" in kind or kind == "ANY" and n % 2:
            noise = random.Random(f"{name}{n}{salt}").randbytes(8 + n % 40)
            return noise + str(n).encode() if unique else noise
        if any(part in kind for part in ("REAL", "FLOA", "DOUB")):
            return n + 0.5 if unique else round(n * 1.37 + salt / 8, 4)
        if ("DATE" in kind or "TIME" in kind) and not unique:
            return f"2026-{1 + n % 12:02}-{1 + n % 28:02} {n % 24:02}:{(n * 7) % 60:02}:{salt:02}.{n % 1000:03}000"
        if any(part in kind for part in ("NUMERIC", "DECIMAL")):
            return n if unique else n * 100 + 25 * salt
        if unique:
            return f"{WORDS[n % len(WORDS)]}-{n}"
        return f"{word} {n}" + (f"\nsecond line {WORDS[(n + salt) % len(WORDS)]}" if n % 7 == 0 else "")


def module_of(sql):
    return re.search(r"USING\s+(\w+)", sql, re.I).group(1).lower()


def is_external(sql):
    """Whether a full-text index has its text in another table."""
    found = re.search(r"\bcontent\s*=\s*([\"'`]?)(\w*)\1", sql, re.I)
    return bool(found and found.group(2))


def is_contentless(sql):
    found = re.search(r"\bcontent\s*=\s*([\"'`])\1", sql, re.I)
    return bool(found)


def load(program, path):
    """Returns a copy of a database in memory, as the program would open it."""
    source = sqlite3.connect(f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro", uri=True)
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        source.backup(copy)
    finally:
        source.close()
    program.needs(copy)
    program.tokenizers(copy, stored=False)
    # A text that is not UTF-8 keeps its bytes, and text and blob stay different.
    copy.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return copy


def content(program, path):
    return content_of(program, load(program, path))


def content_of(program, db):
    """Returns everything that two databases with the same content have in common, in parts that can be compared."""
    parts = {}
    for name in ("user_version", "application_id", "encoding"):
        parts[name] = db.execute(f"PRAGMA {name}").fetchall()
    owned = lambda name: any(name.lower() == own or name.lower().startswith(f"sqlite_autoindex_{own}") for own in MOULT_TABLES)
    parts["schema"] = sorted(
        repr(row) for row in db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema") if not owned(row[1]))
    for check in ("integrity_check", "foreign_key_check"):
        parts[check] = sorted(map(repr, db.execute(f"PRAGMA {check}")))
    for _, name, kind, _, without_rowid, _ in db.execute("PRAGMA main.table_list").fetchall():
        if owned(name) or name in ("sqlite_schema", "sqlite_temp_schema"):
            continue
        try:
            if kind == "virtual":
                parts.update(virtual(db, name))
            elif kind in ("table", "view"):
                parts[f"{kind} {name}"] = sorted(map(repr, db.execute(f"SELECT * FROM {quoted(name)}")))
                if kind == "table" and not without_rowid and not name.startswith("sqlite_"):
                    parts[f"rowids of {name}"] = sorted(map(repr, db.execute(f"SELECT rowid, * FROM {quoted(name)}")))
        except sqlite3.Error as error:
            parts[f"{kind} {name}"] = [f"cannot be read: {error}"]
    return parts


def virtual(db, name):
    """Reads a virtual table through SQLite: its rows, its index, answers to queries, and its own integrity check."""
    parts, sql = {}, db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
    module, table = module_of(sql), quoted(name)
    if module in ("rtree", "rtree_i32", "geopoly"):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        parts[f"rtree {name}"] = sorted(map(repr, db.execute(f"SELECT * FROM {table}")))
        for low, high in ((-100, -20), (0, 90)):
            parts[f"rtree {name} within {low}, {high}"] = sorted(
                map(repr, db.execute(f"SELECT {quoted(columns[0])} FROM {table} WHERE {quoted(columns[1])} >= ? AND {quoted(columns[2])} <= ?", (low, high))))
        parts[f"rtree {name} check"] = db.execute("SELECT rtreecheck(?)", (name,)).fetchall()
    elif module in ("fts5", "fts4", "fts3"):
        if not is_contentless(sql):
            parts[f"fts {name}"] = sorted(map(repr, db.execute(f"SELECT rowid, * FROM {table}")))
        for word in ("alder", "oak", "12", "se*", "fir OR hazel"):
            parts[f"fts {name} MATCH {word}"] = sorted(map(repr, db.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (word,))))
        if module == "fts5":
            db.execute(f"CREATE VIRTUAL TABLE temp.zoo_terms USING fts5vocab(main, {table}, instance)")
            parts[f"fts {name} terms"] = sorted(map(repr, db.execute("SELECT * FROM temp.zoo_terms")))
        else:
            db.execute(f"CREATE VIRTUAL TABLE temp.zoo_terms USING fts4aux(main, {table})")
            parts[f"fts {name} terms"] = sorted(map(repr, db.execute("SELECT * FROM temp.zoo_terms")))
        db.execute("DROP TABLE temp.zoo_terms")
        try:
            db.execute(f"INSERT INTO {table}({table}) VALUES('integrity-check')")
            if module == "fts5" and is_external(sql):
                db.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
            parts[f"fts {name} check"] = ["ok"]
        except sqlite3.Error as error:
            parts[f"fts {name} check"] = [str(error)]
    return parts


def differences(expected, actual, ignore=lambda part: False):
    """Returns the differences between two contents as text."""
    found = []
    for part in sorted(set(expected) | set(actual)):
        one, other = expected.get(part, []), actual.get(part, [])
        if one != other and not ignore(part):
            had, has = set(one), set(other)
            missing, extra = [row for row in one if row not in has], [row for row in other if row not in had]
            found.append(f"{part}: {len(one)} expected, {len(other)} found; missing {short(missing)}; unexpected {short(extra)}")
    return found


def short(rows):
    return f"{len(rows)}" + (f" ({str(rows[0])[:160]})" if rows else "")
