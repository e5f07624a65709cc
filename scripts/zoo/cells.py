"""The ten operations that each database of the zoo goes through, and what its content must be afterwards."""
import collections, glob, json, os, shutil, sqlite3, subprocess

from database import APP, Filler, content, content_of, differences, is_external, load, quoted

COLUMNS = ("replace", "undo", "reference", "shared", "user", "cache", "rows", "migration", "salvage", "diff")
PRODUCT = "org.example.zoo"


class Failed(Exception):
    """A command ended with a status that it must not have here."""


class Cells:
    def __init__(self, program, directory, moult):
        self.program, self.directory, self.moult = program, directory, moult
        self.packed = {}
        at = lambda name: os.path.join(directory, name)
        self.empty, self.old, self.new = at("empty.db"), at("old.db"), at("new.db")
        program.create(self.empty)
        program.build(self.old, self.empty, 1)
        program.build(self.new, self.empty, 2)
        self.contents = {path: content(program, path) for path in (self.old, self.new)}
        db = load(program, self.old)
        self.tables = Filler(program, db).tables
        self.preserved = self.choose_preserved()
        db.close()

    def row_count(self):
        return sum(len(rows) for part, rows in self.contents[self.old].items() if part.startswith(("table ", "fts ", "rtree ")) and part.count(" ") == 1)

    def choose_preserved(self):
        """The tables to which the app writes, with the condition for its rows; None: all rows of the table are the app's."""
        named = self.program.words("preserve")
        if not named:
            fit = [t for t in self.tables.values() if t.kind == "table" and t.key and t.name not in self.program.words("skip")
                   and not any(unique and unique <= set(t.parents) for unique in t.unique) and self.program.rows_of.get(t.name, 40) > 20]
            fit.sort(key=lambda t: (-("json" in t.sql.lower() or "GENERATED" in t.sql.upper() or "CHECK" in t.sql.upper()), -len(t.columns)))
            named = [t.name for t in fit[:3]]
        chosen = {}
        for position, name in enumerate(named):
            table = self.tables[name]
            # Every database has a table whose rows all belong to the app, unless it has only one table.
            last = position and position == len(named) - 1
            chosen[name] = f"{quoted(table.key[0])} > {APP}" if table.rowid_key and not last else None
        return chosen

    def run(self, *words, ends=(0,)):
        ran = subprocess.run([self.moult, *words], cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             errors="backslashreplace", timeout=60, env={**os.environ, "NO_COLOR": "1", "HOME": self.directory})
        if ran.returncode not in ends:
            text = " / ".join(line.strip() for line in (ran.stderr or ran.stdout).strip().splitlines()[:3])
            raise Failed(f"exit {ran.returncode}: {text}\n      moult {' '.join(words)}")
        return ran

    def compare(self, expected, path, ignore=lambda part: False):
        return differences(expected, content(self.program, path), ignore)

    # Releases and stores

    def pack(self, kind, version=1, source=None, **fields):
        """Packs a release, and returns the path of its manifest."""
        name = f"{kind}-{version}"
        draft = {"manifest": 1, "product": PRODUCT, "version": f"{version}.0.0", "sequence": version,
                 "databases": {"zoo": {"kind": kind, "source": source or self.old, **fields}}}
        path = os.path.join(self.directory, f"{name}.draft.json")
        with open(path, "w") as file:
            json.dump(draft, file)
        self.run("pack", "-q", path, "-o", f"{kind}-releases")
        return f"{kind}-releases/zoo-{version}.0.0.json"

    def first(self, kind):
        if kind not in self.packed:
            fields = {"preserve": self.preserve_fields()} if kind == "shared" else {}
            try:
                self.packed[kind] = self.pack(kind, **fields)
            except Failed as error:
                self.packed[kind] = error
        if isinstance(self.packed[kind], Failed):
            raise self.packed[kind]
        return self.packed[kind]

    def preserve_fields(self):
        return [{"table": name, **({"where": where} if where else {})} for name, where in self.preserved.items()]

    def install(self, kind, store):
        """Installs the first release in a new store, and returns the path of the database."""
        release = self.first(kind)
        self.run("apply", "-q", "--create", "--store", store, release)
        return os.path.join(self.directory, store, "zoo.db")

    def kind(self, kind):
        path = self.install(kind, kind)
        found = self.compare(self.contents[self.old], path)
        self.run("verify", "-q", "--deep", "--store", kind)
        self.run("apply", "-q", "--store", kind, self.first(kind))
        return found + self.compare(self.contents[self.old], path)

    def reference(self):
        return self.kind("reference")

    def shared(self):
        return self.kind("shared")

    def user(self):
        return self.kind("user")

    def cache(self):
        return self.kind("cache")

    # A single file

    def copy_of(self, source, name):
        path = os.path.join(self.directory, name)
        shutil.copyfile(source, path)
        return path

    def replace(self):
        path = self.copy_of(self.old, "replaced.db")
        self.run("replace", "-q", "replaced.db", self.new)
        return self.compare(self.contents[self.new], path)

    def undo(self):
        path = self.copy_of(self.old, "undone.db")
        self.run("replace", "-q", "undone.db", self.new)
        self.run("replace", "-q", "--undo", "undone.db")
        return self.compare(self.contents[self.old], path)

    # Rows of the app

    def app_writes(self, path, tables):
        def work(filler):
            for name in tables:
                for n in range(APP + 1, APP + 6):
                    filler.insert(filler.tables[name], n, 1)
        self.program.write(path, work)

    def rows(self):
        path = self.install("shared", "written")
        self.app_writes(path, self.preserved)
        expected, rejected = self.carried(path)
        self.run("apply", "-q", "--store", "written", self.pack("shared", 2, self.new, preserve=[
            {**field, "onReject": "table"} for field in self.preserve_fields()]))
        found = self.check_rows(path, expected, rejected)
        single = self.copy_of(self.old, "single.db")
        self.app_writes(single, self.preserved)
        words = [word for name, where in self.preserved.items() for word in ("--preserve", name + (f":{where}" if where else ""))]
        self.run("replace", "-q", "single.db", self.new, *words)
        return found + [f"replace --preserve: {text}" for text in self.check_rows(single, expected, 0)]

    def carried(self, path):
        """The new content with the preserved rows, and the number of shipped rows that these displace."""
        db, before = load(self.program, self.new), load(self.program, path)
        rejected, schema = 0, db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in schema:
            db.execute(f"DROP TRIGGER {quoted(name)}")
        for name, where in self.preserved.items():
            columns = ", ".join(map(quoted, self.tables[name].columns))
            shipped = set(map(repr, db.execute(f"SELECT {columns} FROM {quoted(name)}")))
            for row in before.execute(f"SELECT {columns} FROM {quoted(name)} WHERE {where or '1'}").fetchall():
                # Rows without a unique key cannot conflict; a row that equals a shipped row is not added again.
                if self.tables[name].unique or repr(row) not in shipped:
                    db.execute(f"INSERT OR REPLACE INTO {quoted(name)}({columns}) VALUES({', '.join('?' * len(row))})", row)
            rejected += len(shipped - set(map(repr, db.execute(f"SELECT {columns} FROM {quoted(name)}"))))
        for name, table in self.tables.items():
            if table.kind == "virtual" and is_external(table.sql):
                db.execute(f"INSERT INTO {quoted(name)}({quoted(name)}) VALUES('rebuild')")
        for _, sql in schema:
            db.execute(sql)
        return content_of(self.program, db), rejected

    def check_rows(self, path, expected, rejected):
        # Only the rows count: a carried row may get another implicit rowid, and AUTOINCREMENT may skip numbers, but not reuse them.
        ignored = {f"rowids of {name}" for name in self.preserved} | {"table sqlite_sequence"}
        found = self.compare(expected, path, lambda part: part in ignored)
        db = load(self.program, path)
        for name in self.preserved:
            if "AUTOINCREMENT" in self.tables[name].sql.upper():
                next_number, = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
                highest, = db.execute(f"SELECT max(rowid) FROM {quoted(name)}").fetchone()
                if next_number is None or next_number < highest:
                    found.append(f"sqlite_sequence of {name}: {next_number}, and the highest number is {highest}")
        has = db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'moult_rejected'").fetchone()[0]
        count = db.execute("SELECT count(*) FROM moult_rejected").fetchone()[0] if has else 0
        return found + ([f"moult_rejected: {rejected} rows expected, {count} found"] if count != rejected else [])

    # A migration

    def migration(self):
        path = self.install("user", "migrated")
        self.app_writes(path, self.preserved)
        name = (self.program.all("migrate") or list(self.preserved))[0]
        table, version = self.tables[name], int(self.contents[self.old]["user_version"][0][0]) + 1
        script = f"""
            ALTER TABLE {quoted(name)} ADD COLUMN zoo_note TEXT DEFAULT 'none';
            CREATE TABLE zoo_tag (id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE, weight REAL CHECK (weight >= 0));
            CREATE INDEX zoo_tag_weight ON zoo_tag (weight);
            INSERT INTO zoo_tag (label, weight) VALUES ('old', 0.5), ('ærø', 2), ('new', NULL);
            UPDATE {quoted(name)} SET zoo_note = 'seen' WHERE {quoted(table.key[0]) if table.key else "rowid"} IS NOT NULL;
            PRAGMA user_version = {version};
        """
        os.makedirs(os.path.join(self.directory, "migrations"), exist_ok=True)
        member = f"migrations/{version:04}-zoo.sql"
        with open(os.path.join(self.directory, member), "w") as file:
            file.write(script)

        def migrated(source):
            db = load(self.program, source)
            db.executescript("BEGIN;" + script + "COMMIT;")
            return db

        expected = content_of(self.program, migrated(path))
        template = os.path.join(self.directory, "template.db")
        db = migrated(self.old)
        self.program.tokenizers(db, stored=True)
        file = sqlite3.connect(template)
        db.backup(file)
        file.close()
        self.run("apply", "-q", "--store", "migrated", self.pack("user", 2, template, migrations=[member]))
        return self.compare(expected, path)

    # Damage

    def salvage(self):
        path = self.install("user", "damaged")
        self.app_writes(path, self.preserved)
        expected = content(self.program, path)
        with open(path, "r+b") as file:
            file.write(bytes(100))
        self.run("reset", "-q", "zoo", "--set-user-data-aside", "--store", "damaged")
        found = self.compare(self.contents[self.old], path)
        salvaged = glob.glob(os.path.join(self.directory, "damaged/.moult/quarantine/*-zoo/salvaged.db"))
        if len(salvaged) != 1:
            return found + [f"{len(salvaged)} salvaged databases"]
        has = content(self.program, salvaged[0])
        tables = {part: rows for part, rows in expected.items() if part.startswith("table ") and not part.startswith("table sqlite_")}
        # An index whose tokenizer only the program has is salvaged as the table of its texts.
        own = [name for name, table in self.tables.items() if table.kind == "virtual" and not is_external(table.sql)]
        for part, name in ((f"{kind} {name}", name) for name in own for kind in ("fts", "rtree")):
            if part in expected:
                tables[part] = expected[part]
                has.setdefault(part, has.get(f"table {name}_content", []))
        return found + [f"salvaged: {text}" for text in differences(tables, has, lambda part: part not in tables)]

    # Differences

    def diff(self):
        same = json.loads(self.run("diff", "--json", self.old, self.old).stdout)
        found = ["the database differs from itself"] if same["differs"] else []
        report = json.loads(self.run("diff", "--json", self.old, self.new, ends=(2,)).stdout)["databases"][0]
        if report["schema"] or report["properties"]:
            found.append(f"schema changes: {report['schema'][:2]} {report['properties'][:2]}")
        told, unread = {table["name"]: table for table in report["tables"]}, []
        old, new = load(self.program, self.old), load(self.program, self.new)
        for name, table in self.tables.items():
            if table.kind != "table":
                continue
            key = table.key or ["rowid"]
            read = lambda db: {repr(row[:len(key)]): repr(row) for row in db.execute(
                f"SELECT {', '.join(map(quoted, key))}, * FROM {quoted(name)}")}
            was, now = read(old), read(new)
            expected = (len(now.keys() - was.keys()), len(was.keys() - now.keys()),
                        sum(was[row] != now[row] for row in was.keys() & now.keys()))
            has = told.get(name, {})
            if has.get("method") == "unread":
                unread.append(f"{name} is not compared: {has.get('why')}")
                continue
            # A key that this SQLite cannot sort, as moult needs it, is replaced by the whole row, and the report says so.
            if has.get("method") == "content" and (self.program.all("collation") or self.program.all("encoding")) and not table.has_rowid:
                was, now = collections.Counter(was.values()), collections.Counter(now.values())
                expected = ((now - was).total(), (was - now).total(), 0)
            actual = tuple(has.get(field) for field in ("added", "removed", "changed"))
            if actual != expected:
                found.append(f"{name}: added, removed, changed {expected} expected, {actual} found")
        if unread and not found:
            raise Failed(f"exit 3: {'; '.join(unread)}")
        return found + unread
