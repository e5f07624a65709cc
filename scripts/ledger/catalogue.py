"""The releases that stories install: families of twelve releases, each made from the previous one by a few changes.

The number of a family determines its releases, so a story contains only that number. The real command packs a release when a
story first needs it, into a directory named by its content.
"""
import functools, hashlib, json, os, random, shutil, sqlite3, tempfile

from harness import releases
from harness.companions import Insert

PRODUCT = "org.example.ledger"
RELEASES = 12
# A small set, so that shipped rows and rows of the app collide.
WORDS = ["flour", "rice", "salt", "Salt", "SALT", "lentils", "saffron", "ÄPFEL", "007", "x"]
KEYS = ["integer"] * 3 + ["auto"] * 2 + ["text"] * 3 + ["nocase", "without", "none", "none"]
TYPES = ["", "TEXT", "INTEGER", "NUMERIC", "REAL", "BLOB"]


# The rows of companions, in each database that apps write to. Every release preserves them.
BESIDE = Insert("beside", n="?1", t="'beside ' || ?1")
BESIDE_TABLE = "CREATE TABLE beside(n INTEGER PRIMARY KEY, t TEXT);"


# A table is {"name", "key", "columns": [{"name", "type", "more"}], "more": [constraints]}; the column k is always its key.
def table_sql(table):
    key = {
        "integer": "k INTEGER PRIMARY KEY", "auto": "k INTEGER PRIMARY KEY AUTOINCREMENT", "text": "k TEXT PRIMARY KEY",
        "nocase": "k TEXT PRIMARY KEY COLLATE NOCASE", "without": "k TEXT PRIMARY KEY", "none": "k TEXT",
    }[table["key"]]
    parts = [key] + [" ".join(filter(None, (c["name"], c["type"], c.get("more")))) for c in table["columns"]]
    return f"CREATE TABLE {table['name']}({', '.join(parts + table['more'])}){' WITHOUT ROWID' if table['key'] == 'without' else ''}"


def search_sql(name, column):
    """Returns SQL for a full-text index over a column of a table that stores the text."""
    return [
        f"CREATE VIRTUAL TABLE {name}_fts USING fts5({column}, content='{name}', content_rowid='k')",
        f"CREATE TRIGGER {name}_ai AFTER INSERT ON {name} BEGIN INSERT INTO {name}_fts(rowid, {column}) VALUES(new.k, new.{column}); END",
        f"CREATE TRIGGER {name}_ad AFTER DELETE ON {name} BEGIN INSERT INTO {name}_fts({name}_fts, rowid, {column}) VALUES('delete', old.k, old.{column}); END",
        f"CREATE TRIGGER {name}_au AFTER UPDATE ON {name} BEGIN INSERT INTO {name}_fts({name}_fts, rowid, {column}) VALUES('delete', old.k, old.{column}); "
        f"INSERT INTO {name}_fts(rowid, {column}) VALUES(new.k, new.{column}); END",
    ]


LOGGING = ("CREATE TRIGGER item_log AFTER INSERT ON item WHEN new.own = 1 BEGIN "
           "INSERT INTO log(n, own, v) VALUES(-new.n, 0, 'trigger'); END")


def clone(data):
    return json.loads(json.dumps(data))


class Family:
    """The drafts of one family."""

    def __init__(self, number, without=()):
        self.number, self.without = number, tuple(without)
        self.rng = random.Random(f"family {number}")
        self.names = 0
        # Every fifth family has few changes, because otherwise half of the operations of a story would be refused.
        self.calm = number % 5 == 0
        self.releases = []
        draft = {"databases": self.first()}
        for i in range(RELEASES):
            if i:
                draft = clone(draft)
                for _ in range(self.rng.choice([1, 1, 2, 3])):
                    self.change(draft["databases"])
            made = clone(draft)
            made |= {"version": f"{i + 1}.0.0", "sequence": i + 1}
            made["databases"] = {name: db for name, db in made["databases"].items() if name not in self.without}
            for name, db in made["databases"].items():
                self.thin(name, db)
                if db["kind"] in ("user", "shared"):
                    db["beside"] = BESIDE_TABLE
                if db["kind"] == "shared":
                    db["preserve"] = db["preserve"] + [{"table": BESIDE.table}]
            self.releases.append(made)
        self.all = sorted({name for release in self.releases for name in release["databases"]})

    def thin(self, name, db):
        """Removes the tables that a shrunk story does not need."""
        gone = {word.split(".")[1] for word in self.without if word.startswith(name + ".")}
        if not gone:
            return
        db["tables"] = [t for t in db["tables"] if t["name"] not in gone]
        db["rows"] = {t: rows for t, rows in db["rows"].items() if t not in gone}
        db["extra"] = [sql for sql in db["extra"] if not any(f" {g}_" in sql or f" {g}(" in sql or f" {g} " in sql for g in gone)]
        db["preserve"] = [e for e in db.get("preserve", []) if e["table"] not in gone]

    # The first release

    def first(self):
        rng = self.rng
        found = {"pantry": self.shared("pantry")}
        if rng.random() < 0.45:
            found["shop"] = self.shared("shop")
        if rng.random() < 0.7:
            found["diary"] = self.user("diary")
        if rng.random() < 0.5:
            found["thumbs"] = self.cache("thumbs")
        if rng.random() < 0.4:
            found["food"] = self.reference("food")
        return found

    def fresh(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def table(self, name, key=None):
        rng = self.rng
        columns = [{"name": "n", "type": "INTEGER"}, {"name": "own", "type": "INTEGER", "more": "NOT NULL DEFAULT 0"},
                   {"name": "v", "type": rng.choice(TYPES)}]
        if rng.random() < 0.4:
            columns.append({"name": self.fresh("w"), "type": rng.choice(TYPES)})
        return {"name": name, "key": key or rng.choice(KEYS), "columns": columns, "more": []}

    def shipped(self, table):
        """Returns rows whose keys differ in every collation."""
        rng, rows = self.rng, []
        words = rng.sample([w for w in WORDS if w not in ("Salt", "SALT")], rng.randint(0, 4))
        numbers = rng.sample(range(1, 9), rng.randint(0, 4))
        for key in numbers if table["key"] in ("integer", "auto") else words:
            rows.append({"k": key, "n": 0, "own": 0, "v": rng.choice(["shipped", "7", None, "old"])})
        return rows

    def entry(self, table):
        rng = self.rng
        entry = {"table": table["name"]}
        where = rng.choice(["own = 1"] * 6 + ['"own" = 1', "n > 0", "own = 1 AND n % 3 <> 0"] + [None] * (table["key"] != "none"))
        if where:
            entry["where"] = where
        if rng.random() < 0.6:
            entry["onConflict"] = rng.choice(["keep-user", "keep-new", "keep-new"] + ["fail"] * (not self.calm))
        if rng.random() < (0.9 if self.calm else 0.6):
            entry["onReject"] = rng.choice(["table"] * 4 + ["block"])
        return entry

    def shared(self, name):
        rng = self.rng
        db = {"kind": "shared", "path": f"{name}.db", "tables": [self.table("item")], "extra": [], "rows": {}, "user_version": 0, "preserve": []}
        item = db["tables"][0]
        if rng.random() < 0.25:
            db["tables"].append({"name": "log", "key": "auto", "more": [], "columns": [
                {"name": "n", "type": "INTEGER"}, {"name": "own", "type": "INTEGER", "more": "NOT NULL DEFAULT 0"}, {"name": "v", "type": "TEXT"}]})
            db["extra"].append(LOGGING)
        if rng.random() < 0.25:
            doc = self.table("doc", "integer")
            db["tables"].append(doc)
            db["extra"] += search_sql("doc", "v")
        if rng.random() < 0.3 and item["key"] != "none":
            part = self.table("part")
            part["columns"].append({"name": "item", "type": "INTEGER" if item["key"] in ("integer", "auto") else "TEXT",
                                    "more": "REFERENCES item(k)" + rng.choice(["", " ON DELETE CASCADE"])})
            db["tables"].append(part)
        if rng.random() < 0.3:
            db["tables"].append(self.table("fav"))
        for table in db["tables"]:
            db["rows"][table["name"]] = self.shipped(table) if table["name"] != "log" else []
            if rng.random() < 0.85:
                db["preserve"].append(self.entry(table))
        if rng.random() < 0.1:
            db["unpreserved"] = "keep"
        return db

    def user(self, name):
        base = ("CREATE TABLE note(k INTEGER PRIMARY KEY, n INTEGER, own INTEGER DEFAULT 1, t TEXT, x); "
                "PRAGMA user_version = 1;")
        return {"kind": "user", "path": f"{name}.db", "base": base, "migrations": []}

    def cache(self, name):
        return {"kind": "cache", "path": f"{name}.db", "tables": [self.table("thumb", "integer")], "extra": [], "rows": {}, "user_version": 0}

    def reference(self, name):
        table = self.table("food", "integer")
        return {"kind": "reference", "path": f"{name}.db", "tables": [table], "extra": [], "rows": {"food": self.shipped(table)}, "user_version": 0}

    # A change from one release to the next

    def change(self, databases):
        rng = self.rng
        name = rng.choice(sorted(databases))
        db = databases[name]
        roll = rng.random()
        if roll < (0.02 if self.calm else 0.06):
            return self.change_kind(databases, name)
        if roll < (0.03 if self.calm else 0.08) and len(databases) > 1:
            self.gone = getattr(self, "gone", {})
            self.gone[name] = databases.pop(name)
            return
        if roll < 0.12:
            gone = getattr(self, "gone", {})
            if gone:
                back = rng.choice(sorted(gone))
                databases[back] = gone.pop(back)
            else:
                made = {"late": self.shared, "later": self.user, "lately": self.cache, "lastly": self.reference}
                new = rng.choice(sorted(made))
                databases.setdefault(new, made[new](new))
            return
        if roll < 0.16 and db["kind"] in ("user", "shared"):
            stem = db["path"].split(".")[0].split("-")[0]
            db["path"] = f"{stem}-{self.fresh('p')}.db"
            return
        getattr(self, "change_" + db["kind"])(db)

    def change_kind(self, databases, name):
        old = databases[name]
        kind = self.rng.choice([k for k in ("user", "shared", "cache", "reference") if k != old["kind"]])
        databases[name] = getattr(self, kind)(name) | {"path": old["path"]}

    def change_user(self, db):
        rng = self.rng
        number = len(db["migrations"]) + 2
        column = self.fresh("c")
        have = columns_of(db, "note")
        some = [c for c in have if c not in ("k", "n", "own")]
        choices = [f"ALTER TABLE note ADD COLUMN {column}", f"ALTER TABLE note ADD COLUMN {column} TEXT DEFAULT 'none'",
                   f"CREATE TABLE {column}(k INTEGER PRIMARY KEY, n INTEGER, t TEXT)",
                   f"CREATE INDEX {column} ON note(n)"]
        if some:
            one = rng.choice(some)
            choices += [f"UPDATE note SET {one} = NULL", f"UPDATE note SET {one} = upper({one})", f"ALTER TABLE note DROP COLUMN {one}",
                        f"UPDATE note SET {one} = NULL; ALTER TABLE note DROP COLUMN {one}",
                        f"CREATE TABLE {column}(k INTEGER PRIMARY KEY, {one}); INSERT INTO {column} SELECT k, {one} FROM note",
                        f"DELETE FROM note WHERE n % 2 = 0", f"CREATE UNIQUE INDEX {column} ON note({one})"]
        sql = rng.choice(choices)
        db["migrations"].append(f"{sql};\nPRAGMA user_version = {number};\n")
        try:
            columns_of(db, "note")
        except sqlite3.OperationalError:
            # A column with an index cannot be dropped.
            db["migrations"].pop()
            return
        if sql.startswith("DELETE") and rng.random() < 0.7:
            db["shrinks"] = True

    def change_cache(self, db):
        db["tables"] = [self.table("thumb", "integer")]

    def change_reference(self, db):
        db["rows"]["food"] = self.shipped(db["tables"][0])

    def change_shared(self, db):
        rng = self.rng
        table = rng.choice(db["tables"])
        name = table["name"]
        entries = [e for e in db["preserve"] if e["table"] == name]
        free = [c for c in table["columns"] if c["name"] not in ("n", "own", "item", "pin") and not (name == "doc" and c["name"] == "v")
                and not (name == "log")]
        # A table that is not preserved yet is often preserved by the next release.
        kind = rng.choice(["rows"] * 5 + ["entry"] * (3 if entries else 12) + ["column", "column", "drop column", "rename", "type", "key", "check", "unique",
                          "not null", "table", "drop table", "unpreserve", "unpreserve", "pin", "keep"])
        if kind == "rows":
            db["rows"][name] = self.shipped(table) if name != "log" else []
        elif kind == "entry":
            kept = [e.get("columns") for e in entries]
            db["preserve"] = [e for e in db["preserve"] if e["table"] != name] + [self.entry(table)]
            if kept and kept[0]:
                db["preserve"][-1]["columns"] = kept[0]
        elif kind == "unpreserve":
            db["preserve"] = [e for e in db["preserve"] if e["table"] != name]
        elif kind == "column":
            table["columns"].append({"name": self.fresh("w"), "type": rng.choice(TYPES), "more": rng.choice(["", "DEFAULT 7", "DEFAULT 'd'"])})
        elif kind == "drop column" and len(free) > 1:
            self.drop(db, table, rng.choice(free)["name"])
        elif kind == "rename" and free:
            column = rng.choice(free)
            old, new = column["name"], self.fresh("r")
            self.drop(db, table, old)
            table["columns"].append(column | {"name": new})
            for row in db["rows"].get(name, []):
                if "v" == old:
                    row[new] = row.get("v")
            for e in entries:
                if rng.random() < 0.7:
                    e["columns"] = {o: n for o, n in e.get("columns", {}).items() if n != old} | {old: new}
        elif kind == "type" and free:
            rng.choice(free)["type"] = rng.choice(TYPES)
        elif kind == "key" and table["key"] in ("text", "nocase"):
            table["key"] = "nocase" if table["key"] == "text" else "text"
        elif kind == "check" and free:
            table["more"] = [rng.choice(["CHECK(n % 5 <> 0 OR own = 0)", "CHECK(n IS NULL OR n < 40 OR own = 0)"])] if not table["more"] else []
        elif kind == "unique" and name != "item" and not any("UNIQUE" in m for m in table["more"]) and name not in ("doc", "log"):
            table["columns"].append({"name": self.fresh("u"), "type": "TEXT", "more": "UNIQUE"})
        elif kind == "not null" and free:
            rng.choice(free)["more"] = "NOT NULL DEFAULT 0" if rng.random() < 0.5 else ""
        elif kind == "table" and not any(t["name"] == "fav" for t in db["tables"]):
            db["tables"].append(self.table("fav"))
            db["rows"]["fav"] = self.shipped(db["tables"][-1])
            db["preserve"].append(self.entry(db["tables"][-1]))
        elif kind == "drop table" and name in ("fav", "part"):
            db["tables"].remove(table)
            db["rows"].pop(name, None)
            db["preserve"] = [e for e in db["preserve"] if e["table"] != name]
        elif kind == "pin" and not any(c["name"] == "pin" for c in table["columns"]) and name != "log":
            table["columns"].append({"name": "pin", "type": "INTEGER", "more": "DEFAULT 0"})
            for e in entries:
                e["where"] = "own = 1 OR pin = 1"
        elif kind == "keep":
            db.pop("unpreserved", None)
            if rng.random() < 0.6:
                db["unpreserved"] = "keep"

    def drop(self, db, table, column):
        table["columns"] = [c for c in table["columns"] if c["name"] != column]
        for row in db["rows"].get(table["name"], []):
            row.pop(column, None)
        for e in db["preserve"]:
            if e["table"] == table["name"] and "columns" in e:
                e["columns"] = {o: n for o, n in e["columns"].items() if n != column}
                if not e["columns"]:
                    del e["columns"]


@functools.lru_cache(2000)
def family(number, without=()):
    return Family(number, without)


def script(db):
    """Returns the SQL that creates the shipped database."""
    if db["kind"] == "user":
        return "\n".join([db["base"], *filter(None, [db.get("beside")]), *db["migrations"]])
    lines = [*filter(None, [db.get("beside")]), *(table_sql(t) + ";" for t in db["tables"])]
    # Triggers belong to the app: shipped rows do not fire them, and the full-text index is rebuilt.
    for table in db["tables"]:
        have = {"k"} | {c["name"] for c in table["columns"]}
        required = [c["name"] for c in table["columns"] if c.get("more", "").startswith("NOT NULL")]
        for row in db["rows"].get(table["name"], []):
            row = {c: v for c, v in row.items() if c in have and (v is not None or c not in required)}
            lines.append(f"INSERT INTO {table['name']}({', '.join(row)}) VALUES({', '.join(map(literal, row.values()))});")
    for sql in db["extra"]:
        lines.append(sql + ";")
        if sql.startswith("CREATE VIRTUAL"):
            name = sql.split()[3]
            lines.append(f"INSERT INTO {name}({name}) VALUES('rebuild');")
    lines.append(f"PRAGMA user_version = {db['user_version']};")
    return "\n".join(lines) + "\n"


def literal(value):
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def columns_of(db, table):
    connection = sqlite3.connect(":memory:")
    connection.executescript(script(db))
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def draft(release):
    """Returns the draft and its files, as text by name."""
    files, entries, budget = {}, {}, {}
    for name, db in release["databases"].items():
        files[f"{name}.sql"] = script(db)
        entry = {"kind": db["kind"], "source": f"{name}.db", "path": db["path"]}
        if db["kind"] == "shared":
            entry["preserve"] = db["preserve"]
            if db.get("unpreserved"):
                entry["unpreserved"] = db["unpreserved"]
        if db["kind"] == "user" and db["migrations"]:
            entry["migrations"] = []
            for i, sql in enumerate(db["migrations"]):
                files[f"{name}/{i + 2:04}.sql"] = sql
                entry["migrations"].append(f"{name}/{i + 2:04}.sql")
            if db.get("shrinks"):
                budget[f"{name}.note"] = {"shrink": "100%"}
        entries[name] = entry
    text = releases.draft(PRODUCT, release["version"], release["sequence"], entries)
    if budget:
        text["budget"] = budget
    files["draft.json"] = json.dumps(text, indent=1)
    return files


class PackRefused(Exception):
    """`moult pack` refused a draft that has no fault."""


class Catalogue:
    """The packed releases. Several processes, and later runs, can use the releases packed by one binary."""

    def __init__(self, moult, directory, features=frozenset()):
        self.moult, self.directory = moult, directory
        self.features = features
        facts = os.stat(moult)
        self.binary = f"{facts.st_size} {facts.st_mtime_ns}"
        self.known = {}
        os.makedirs(directory, exist_ok=True)

    def get(self, story, index):
        """Returns a release of a story's family. A kept story includes its releases, so that it never changes."""
        number, without = story["family"], tuple(story.get("without", ()))
        key = (id(story["drafts"]) if "drafts" in story else number, without, index)
        if key not in self.known:
            if "drafts" in story:
                spec = clone(story["drafts"][str(index)])
            else:
                spec = clone(family(number, without).releases[index])
            if "unpreserved" not in self.features:
                for db in spec["databases"].values():
                    db.pop("unpreserved", None)
            if len(self.known) > 1500:
                self.known.clear()
            self.known[key] = Release(index, spec, self.pack(spec))
        return self.known[key]

    def pack(self, spec):
        files = draft(spec)
        digest = hashlib.sha256((self.binary + json.dumps(files, sort_keys=True)).encode()).hexdigest()[:24]
        final = os.path.join(self.directory, digest)
        if not os.path.exists(final):
            work = tempfile.mkdtemp(prefix="making-", dir=self.directory)
            releases.write(work, files)
            for name, text in files.items():
                if name.endswith(".sql") and "/" not in name:
                    releases.database(os.path.join(work, name[:-4] + ".db"), text)
            try:
                releases.pack(self.moult, work, json.loads(files["draft.json"]), "out")
            except SystemExit as refused:
                shutil.rmtree(work)
                raise PackRefused(str(refused)) from None
            try:
                os.rename(work, final)
            except OSError:
                shutil.rmtree(work)
        return final


class Release:
    def __init__(self, index, spec, directory):
        self.draft = clone(spec)
        self.index, self.version, self.directory = index, spec["version"], directory
        self.databases = spec["databases"]
        self.manifest = os.path.join(directory, "out", f"ledger-{self.version}.json")
        sealed = json.load(open(self.manifest))["databases"]
        for name, db in self.databases.items():
            db["name"] = name
            db["sha256"] = sealed[name]["sha256"]
            with open(os.path.join(directory, f"{name}.db"), "rb") as file:
                db["bytes"] = file.read()

    def at(self, path):
        """Returns the database at a path."""
        return next((db for db in self.databases.values() if db["path"] == path), None)
