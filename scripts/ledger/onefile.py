"""Stories about a single file that `moult replace` replaces and restores, with an oracle that predicts its content."""
import json, os, random, shutil, sqlite3, subprocess, sys

from harness import files, releases
from harness.tools import struck

from app import ODD
from content import Text, exact
from world import Failed, World

WRITE = """import os, signal, sqlite3, sys
app = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
if sys.argv[2] == "crash": app.execute("PRAGMA journal_mode = WAL")
app.executescript("BEGIN;" + sys.argv[3] + "COMMIT;")
if sys.argv[2] == "crash": os.kill(os.getpid(), signal.SIGKILL)"""


def story(seed, number):
    """Makes a story like those about stores, but with operations on one file."""
    rng = random.Random(f"file story {seed} {number}")
    ops = []
    for _ in range(min(30, 4 + int(rng.expovariate(1 / 8)))):
        kind = rng.choices(["write", "replace", "undo", "kill", "full", "mode", "open", "refused"], [8, 6, 4, 3, 1, 2, 2, 1])[0]
        op = {"op": kind, "seed": rng.randrange(10**6)}
        if kind == "write":
            op |= {"n": rng.randint(1, 5)} | ({"crash": True} if rng.random() < 0.3 else {})
        elif kind == "replace":
            op |= replacement(rng)
        elif kind in ("kill", "full"):
            op |= {"at": int(rng.choice([rng.randint(1, 60), rng.randint(1, 260)])), "cmd": {"op": "undo"} if rng.random() < 0.4 else {"op": "replace"} | replacement(rng)}
            op |= {"write": rng.randint(1, 3)} if rng.random() < 0.4 else {}
            op |= {"torn": True} if kind == "kill" and rng.random() < 0.2 else {}
        elif kind == "mode":
            op["wal"] = rng.random() < 0.7
        elif kind == "refused":
            op["how"] = rng.choice(["damaged", "text", "check", "missing"])
        ops.append(op)
    return {"seed": seed, "story": number, "family": "one file", "without": [], "drafts": {}, "ops": ops}


def replacement(rng):
    return {"new": rng.randrange(10**6), "preserve": rng.choice([None, "note", "note", "note:n % 2 = 0"])}


def snapshot(path):
    """Returns the rows of each table that an app would find, read from a copy of the file; None if the file is missing, and
    "damaged" if SQLite finds damage."""
    if not os.path.exists(path):
        return None
    with files.opened(path) as app:
        app.text_factory = Text
        if not files.is_sound(app):
            return "damaged"
        names = [bytes(row[0]).decode() for row in app.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {}
        for name in sorted(names):
            if not name.startswith(("sqlite_", "moult_")):
                rows = app.execute(f"SELECT * FROM {name}")
                columns = [part[0] for part in rows.description]
                found[name] = sorted(tuple(zip(columns, map(exact, row))) for row in rows)
        return found


def numbered(content):
    """Returns the rows of the app, as pairs of number and value."""
    rows = [dict(row) for rows in content.values() for row in rows] if isinstance(content, dict) else []
    return {(row["n"], row["v"]) for row in rows if "n" in row}


class FileWorld(World):
    def __init__(self, story, catalogue, options, directory):
        super().__init__(story, catalogue, options, directory)
        self.file = os.path.join(directory, "app.db")
        self.store = os.path.join(directory, ".app.db.moult")
        self.copies, self.rows = [], set()
        # The copies of replacements that were undone: another undo does not go back to them.
        self.undone = set()

    # Running commands

    def command(self, *words, before=()):
        self.counts["commands"] += 1
        self.log.append(f"cd \"$W\"; {self.shell(before)} $MOULT {self.shell(words)}; echo \"exit $?\"")
        return self.spawn([*before, self.catalogue.moult, *words])

    def words(self, op):
        if op["op"] == "undo":
            return ["replace", "-q", "--undo", self.file]
        return ["replace", "-q", "--yes", self.file, self.new(op["new"])] + (["--preserve", op["preserve"]] if op["preserve"] else [])

    def new(self, number):
        """Makes a new file with different prices, and sometimes with an additional column for the rows of the app."""
        path = os.path.join(self.directory, f"new{number}.db")
        if not os.path.exists(path):
            more = f", c{number % 3} DEFAULT 'd'" if number % 2 else ""
            sql = (f"CREATE TABLE price(item PRIMARY KEY, cents); INSERT INTO price VALUES('bread', {number});"
                   f"CREATE TABLE note(id INTEGER PRIMARY KEY, n, v{more});")
            releases.database(path, sql)
            self.log.append(f"sqlite3 \"$W/new{number}.db\" \"{sql}\"")
        return path

    # The comparison

    def begin(self):
        os.makedirs(self.directory, exist_ok=True)
        os.rename(self.new(0), self.file)
        os.chmod(self.file, 0o640)
        self.log.append('mv "$W/new0.db" "$W/app.db"; chmod 640 "$W/app.db"')
        self.content = snapshot(self.file)

    def carried(self, op):
        """Returns the content of the new file with the rows that are carried over."""
        made = snapshot(self.new(op["new"]))
        path = self.new(op["new"])
        connection = sqlite3.connect(path)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(note)")]
        connection.close()
        if op["preserve"]:
            rows = [dict(row) for row in self.content["note"]]
            if ":" in op["preserve"]:
                rows = [row for row in rows if row["n"] != "NULL" and int(row["n"]) % 2 == 0]
            made["note"] = sorted(tuple((c, row.get(c, "t64")) for c in columns) for row in rows)
        return made

    def before(self):
        """Returns the number of the copy that an undo restores; None if no copy is older."""
        older = [n for n in range(len(self.copies)) if n not in self.undone]
        return older[-1] if older else None

    def sets(self):
        """Returns the kept sets, oldest first: the reason, the record, and the path of the content."""
        found = []
        for name in sorted(os.listdir(self.store) if os.path.isdir(self.store) else []):
            if name[0].isdigit():
                with open(os.path.join(self.store, name, "set.json")) as record:
                    found.append((json.load(record) | {"begun": name.endswith(".begun")}, os.path.join(self.store, name, "app.db")))
        return found

    def found(self):
        """Returns the contents from before replacements, and the numbers of those to which no undo goes back any more."""
        copies, numbers, undone = [], [], set()
        for record, path in self.sets():
            if record["reason"] == "replaced":
                numbers.append(record["number"])
                copies.append(snapshot(path))
            elif not record["begun"]:
                undone.update(n for n, number in enumerate(numbers) if number >= record["restored"])
        return copies, undone

    def everywhere(self):
        return numbered(self.content).union(*(numbered(snapshot(path)) for _, path in self.sets()))

    def settled(self, op, ended, exits, contents, copies, undone=None):
        """Compares everything that a command leaves. `contents`, `copies` and `undone` are the allowed results; None allows any
        result."""
        found = []
        if ended and ended.status not in exits:
            found.append(("exit", f"exit {ended.status}, expected {sorted(exits)}: {ended.err.strip()[:300]}"))
        now, (there, gone) = snapshot(self.file), self.found()
        if contents is not None and now not in contents:
            found.append(("rows", f"the file has {now}, expected {contents}"))
        if not isinstance(now, dict):
            found.append(("integrity", f"the file is {now}"))
        if there[:len(self.copies)] != self.copies:
            found.append(("adopted", f"the copies are {there}, but were {self.copies}"))
        if copies is not None and there not in copies:
            found.append(("adopted", f"the copies are {there}, expected {copies}"))
        if undone is not None and gone not in undone:
            found.append(("version", f"the copies {gone} are undone, expected {undone}"))
        self.content, self.copies, self.undone = now, there, gone
        lost = self.rows - self.everywhere()
        if lost:
            found.append(("lost", f"lost rows: {sorted(lost)}"))
        if os.stat(self.file).st_mode & 0o777 != 0o640:
            found.append(("owner", f"the mode is {os.stat(self.file).st_mode & 0o777:o}"))
        extra = [n for n in os.listdir(self.directory) if n not in ("out", "err", "strike", "app.db", ".app.db.moult") and not n.startswith(("new", "app.db-"))]
        extra += [n for n in (os.listdir(self.store) if os.path.isdir(self.store) else []) if not n[0].isdigit()]
        if extra:
            found.append(("left", f"left over: {extra}"))
        self.counts["rows kept in their databases"] += len(numbered(self.content)) if isinstance(now, dict) else 0
        self.judge(found, op)

    # Operations

    def do_write(self, op):
        rng = random.Random(op["seed"])
        for _ in range(op["n"]):
            self.number += 1
            there = [dict(row)["n"] for row in self.content["note"]]
            roll = rng.random()
            value = rng.choice(ODD)
            if there and roll < 0.4:
                one = rng.choice(there)
                self.sql(f"DELETE FROM note WHERE n = {one};" if roll < 0.15 else f"UPDATE note SET n = {self.number}, v = {value} WHERE n = {one};", op)
            elif roll < 0.5:
                self.sql(f"CREATE TABLE IF NOT EXISTS mine(n, v); INSERT INTO mine VALUES({self.number}, {value});", op)
            else:
                self.sql(f"INSERT INTO note(n, v) VALUES({self.number}, {value});", op)

    def sql(self, text, op):
        how = "crash" if op.get("crash") and self.file not in self.open else "close"
        ended = subprocess.run([sys.executable, "-c", WRITE, self.file, how, text], capture_output=True, text=True)
        self.log.append(f"sqlite3 \"$W/app.db\" \"{text}\"")
        if ended.returncode not in (0, -9):
            raise Failed([("ledger", ended.stderr)], op)
        before, self.content = numbered(self.content), snapshot(self.file)
        now = numbered(self.content)
        self.rows = (self.rows - (before - now)) | now
        self.counts["acknowledged"] += len(now - before)
        self.counts[f"app {text.split()[0].lower().replace('create', 'insert')}"] += 1

    def do_mode(self, op):
        if self.open:
            return False
        connection = sqlite3.connect(self.file)
        connection.execute(f"PRAGMA journal_mode = {'WAL' if op['wal'] else 'DELETE'}").fetchall()
        connection.close()
        self.log.append(f"sqlite3 \"$W/app.db\" 'PRAGMA journal_mode = {'WAL' if op['wal'] else 'DELETE'}'")

    def do_open(self, op):
        if self.open:
            self.close_all()
            return None
        connection = sqlite3.connect(self.file, isolation_level=None)
        connection.execute("SELECT count(*) FROM price").fetchall()
        self.open[self.file] = connection
        self.log.append('(echo "SELECT count(*) FROM price;"; sleep 60) | sqlite3 "$W/app.db" & sleep 0.3')

    def kept(self, old, new):
        """Returns the lists of copies that a replacement may leave. Content that the next undo would restore anyway is not kept again, and
        the same content does not replace itself."""
        same = new == old or self.before() is not None and self.copies[self.before()] == old
        return [self.copies + [old]] + ([self.copies] if same else [])

    def do_replace(self, op):
        new, old = self.carried(op), self.content
        copies = self.kept(old, new)
        ended = self.command(*self.words(op))
        self.settled(op, ended, {0}, [new], copies, [self.undone])

    def target(self):
        """Returns the number of the copy that an undo restores: one with other content."""
        older = [n for n in range(len(self.copies)) if n not in self.undone and self.copies[n] != self.content]
        return older[-1] if older else None

    def do_undo(self, op):
        target, before = self.target(), self.before()
        ended = self.command(*self.words({"op": "undo"}))
        if before is None:
            return self.settled(op, ended, {3}, [self.content], [self.copies], [self.undone])
        # Equal rows may be in different pages, so the newest copy may have been restored although it has the same rows.
        ends = [self.copies[n] for n in {target, before} if n is not None]
        self.settled(op, ended, {0} if target == before else {0, 3}, ends, [self.copies])

    def do_refused(self, op):
        new = os.path.join(self.directory, "new.db")
        shutil.copy(self.new(1), new)
        check = ["--check", "SELECT count(*) FROM price = 7"] if op["how"] == "check" else []
        with open(new, "r+b") as file:
            if op["how"] == "damaged":
                file.truncate(os.path.getsize(new) // 2 + 100)
            elif op["how"] == "text":
                file.write(b"not a database " * 20)
        if op["how"] == "missing":
            os.remove(new)
        ended = self.command("replace", "-q", self.file, new, *check)
        self.settled(op, ended, {1, 3}, [self.content], [self.copies], [self.undone])

    def do_kill(self, op):
        return self.strike(op, ["-a", "torn" if op.get("torn") else "kill"])

    def do_full(self, op):
        return self.strike(op, ["-a", "ENOSPC", "-g"])

    def strike(self, op, how):
        if self.options.tools.strike is None or self.open:
            return False
        command, report, old = op["cmd"], os.path.join(self.directory, "strike"), self.content
        target = self.target() if command["op"] == "undo" else None
        if command["op"] == "undo" and (target is None or target != self.before()):
            return False
        new = self.carried(command) if command["op"] == "replace" else self.copies[target]
        copies = self.kept(old, new) if command["op"] == "replace" else [self.copies]
        # If the command was complete before the kill, the file has the new content; otherwise it has the old content, and
        # there may be a copy of it.
        self.command(*self.words(command), before=[self.options.tools.strike, "-o", report, *how, "-n", str(op["at"]), "--"])
        if not struck(report)["struck"]:
            self.counts["strikes that missed"] += 1
            return self.settled(op, None, None, [new], copies)
        self.counts["strikes"] += 1
        now = snapshot(self.file)
        if now not in (old, new):
            raise Failed([("rows", f"after the strike the file has {now}, expected {old} or {new}")], op)
        self.content = now
        is_over = self.found()[1] != self.undone
        wrote = "write" in op
        if wrote:
            self.do_write({"op": "write", "seed": op["seed"], "n": op["write"]})
            self.counts["rows written before recovery"] += op["write"]
        if is_over:
            # The undo is recorded, and the same command goes back one more step.
            self.copies, self.undone = self.found()
            return self.do_undo({"op": "undo"})
        ended = self.command(*self.words(command))
        # However often the command was started, it had its effect only once, unless the app has written in between.
        self.settled(op, ended, {0}, None if wrote else [new], None if wrote else copies + [self.copies + [old]])

    def end(self):
        self.close_all()
        while self.target() is not None:
            self.do_undo({"op": "undo"})
        if self.copies:
            ended = self.command("verify", self.file)
            self.judge([("status", ended.err)] if ended.status else [], {"op": "end"})
        self.counts["stories"] += 1
