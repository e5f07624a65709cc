#!/usr/bin/env python3
"""Runs, on real stores, the statements that a DatabasePool of GRDB 7.8.0 uses to open, read and write, with the databases
attached by path and by URI.

usage: integrations/grdb/sequence.py MOULT [FLIPS]     FLIPS is the number of releases to install, by default 100

The flags and statements were recorded with the trace function of GRDB 7.8.0 on Linux. GRDB does not set SQLITE_OPEN_URI, so
this needs a SQLite that was built with SQLITE_USE_URI, such as Debian's. As root, it runs a second time as an ordinary user.
"""
import ctypes, ctypes.util, hashlib, json, os, pathlib, shutil, subprocess, sys, tempfile

READONLY, READWRITE, CREATE, NOMUTEX, EXRESCODE = 0x1, 0x2, 0x4, 0x8000, 0x2000000
sqlite = ctypes.CDLL(ctypes.util.find_library("sqlite3"))
sqlite.sqlite3_errmsg.restype = ctypes.c_char_p
for name in ("errmsg", "close", "exec", "busy_timeout"):
    getattr(sqlite, f"sqlite3_{name}").argtypes = {
        "exec": [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p],
        "busy_timeout": [ctypes.c_void_p, ctypes.c_int]}.get(name, [ctypes.c_void_p])
ROW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_char_p))


class Failure(Exception):
    pass


class Connection:
    """A connection opened with Configuration.SQLiteOpenFlags and Database.setUp(), and with databases attached in
    prepareDatabase."""

    def __init__(self, path, attached, is_reader):
        self.db = ctypes.c_void_p()
        flags = NOMUTEX | EXRESCODE | (READONLY if is_reader else READWRITE | CREATE)
        if sqlite.sqlite3_open_v2(os.fsencode(path), ctypes.byref(self.db), flags, None):
            raise Failure(sqlite.sqlite3_errmsg(self.db).decode())
        # An app sets busyMode for the writer; 10 seconds is GRDB's own value for readers.
        sqlite.sqlite3_busy_timeout(self.db, 10000 if is_reader else 30000)
        self.run("PRAGMA foreign_keys = ON")
        for schema, file in attached.items():
            self.run("ATTACH DATABASE '{}' AS \"{}\"".format(file.replace("'", "''"), schema))
        self.run("SELECT * FROM sqlite_master LIMIT 1")

    def run(self, sql):
        rows = []

        def row(_, count, values, names):
            rows.append(tuple(values[i].decode() for i in range(count)))
            return 0

        if sqlite.sqlite3_exec(self.db, sql.encode(), ROW(row), None, None):
            raise Failure(f"{sql}: {sqlite.sqlite3_errmsg(self.db).decode()}")
        return rows

    def close(self):
        assert sqlite.sqlite3_close(self.db) == 0


class Pool:
    def __init__(self, path, attached):
        self.writer = Connection(path, attached, is_reader=False)
        self.reader = None
        assert self.writer.run("PRAGMA journal_mode = WAL") == [("wal",)]
        self.writer.run("PRAGMA synchronous = NORMAL")
        if not os.path.exists(path + "-wal") or os.path.getsize(path + "-wal") == 0:
            self.write("CREATE TABLE grdb_issue_102 (id INTEGER PRIMARY KEY)", "DROP TABLE grdb_issue_102")
        self.path, self.attached = path, attached

    def write(self, *statements):
        self.writer.run("BEGIN IMMEDIATE TRANSACTION")
        try:
            for sql in statements:
                self.writer.run(sql)
        except Failure:
            self.writer.run("ROLLBACK TRANSACTION")
            raise
        self.writer.run("COMMIT TRANSACTION")

    def read(self, sql):
        self.reader = self.reader or Connection(self.path, self.attached, is_reader=True)
        self.reader.run("BEGIN DEFERRED TRANSACTION")
        self.reader.run("PRAGMA schema_version")
        rows = self.reader.run(sql)
        self.reader.run("COMMIT TRANSACTION")
        return rows

    def close(self):
        for connection in (self.writer, self.reader):
            if connection:
                connection.close()


def check(fact, what):
    if not fact:
        sys.exit(f"failed: {what}")


def refused(body):
    try:
        body()
    except Failure as failure:
        return str(failure)
    return None


def digests(store):
    files = pathlib.Path(store, ".moult/generations").rglob("*.db*")
    return {file.name + file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class Example:
    def __init__(self, moult, directory):
        self.moult, self.directory = moult, directory
        drafts = pathlib.Path(__file__).resolve().parent.parent / "c/tests/set"
        shutil.copytree(drafts, directory / "set")
        for version in "12":
            self.command("pack", "-q", "-o", directory / "releases", directory / f"set/{version}.draft.json")

    def command(self, *words):
        return subprocess.run([self.moult, *map(str, words)], check=True, capture_output=True, text=True).stdout

    def apply(self, store, version):
        self.command("apply", "-q", "--wait", 30, "--retry", 60, "--follow", "match", "--create", "--store", store,
                     self.directory / f"releases/set-{version}.0.0.json")

    def store(self, name):
        store = self.directory / name / "store"
        store.parent.mkdir()
        self.apply(store, 1)
        return str(store)

    def databases(self, store):
        report = json.loads(self.command("attach", "--json", "--store", store))
        return {one["name"]: one for one in report["databases"]}


def as_path(example):
    """With paths, root changes a read-only file, and another user cannot open the pool."""
    store = example.store("path")
    databases, before = example.databases(store), digests(store)
    attached = {"words": databases["words"]["path"]}
    if os.getuid():
        why = refused(lambda: Pool(databases["notes"]["path"], attached))
        check(why == "PRAGMA journal_mode = WAL: attempt to write a readonly database", f"the pool: {why}")
        check(digests(store) == before, "a file changed")
        return why
    pool = Pool(databases["notes"]["path"], attached)
    pool.write("DELETE FROM words.word")
    check(pool.read("SELECT count(*) FROM words.word") == [("0",)], "the rows are still there")
    pool.close()
    check(digests(store) != before, "root changed nothing")
    verify = subprocess.run([example.moult, "verify", "-q", "--store", store], capture_output=True)
    check(verify.returncode == 1, "verify found nothing")
    return "root deleted all rows of a read-only database; moult verify reports it"


def as_uri(example, flips):
    """With URIs, no file of the release changes, writes to it are refused, and the app's own databases can be written to."""
    store = example.store("a b%25?#\u00e9")
    example.apply(store, 2)
    example.apply(store, 1)
    before, reads, flip = digests(store), 0, 0
    while flip < flips:
        databases = example.databases(store)
        version = databases["words"]["path"].split("/")[-2].split("+")[0]
        pool = Pool(databases["notes"]["path"], {
            "words": databases["words"]["uri"], "geo": databases["places"]["uri"], "prices": databases["prices"]["path"]})
        # Each release is installed while the pool of the previous one is open, which continues to read its own release.
        for _ in range(2):
            rows = pool.read("SELECT count(*), (SELECT count(*) FROM geo.place WHERE version = word.version), version,"
                             " (SELECT count(DISTINCT version) FROM prices.price) FROM words.word GROUP BY version")
            check(rows == [("500", "500", version, "1")], f"mixed releases: {rows}")
            pool.write("INSERT INTO note (text) VALUES ('mine')")
            reads += 1
            why = refused(lambda: pool.write("DELETE FROM words.word"))
            check(why == "DELETE FROM words.word: attempt to write a readonly database", f"DELETE: {why}")
            if reads % 2:
                example.apply(store, 1 + (flip + 1) % 2)
        pool.close()
        flip += 1
    check(digests(store) == before, "a file of a release changed")
    example.command("verify", "-q", "--store", store)
    notes = Connection(example.databases(store)["notes"]["path"], {}, is_reader=True)
    check(notes.run("SELECT count(*) FROM note") == [(str(reads),)], "notes are missing")
    notes.close()
    return f"{flips} releases: {reads} reads, {reads} rows written, no file of a release changed"


def main():
    moult, flips = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    check(sqlite.sqlite3_compileoption_used(b"USE_URI"), "this SQLite was not built with SQLITE_USE_URI")
    user = "root" if os.getuid() == 0 else "an ordinary user"
    directory = pathlib.Path(tempfile.mkdtemp(prefix="moult-grdb-")).resolve()
    try:
        example = Example(moult, directory)
        print(f"{user}, as a path: {as_path(example)}")
        print(f"{user}, as a URI: {as_uri(example, flips)}", flush=True)
    finally:
        subprocess.run(["chmod", "-R", "u+w", directory])
        shutil.rmtree(directory)
    if os.getuid() == 0:
        directory = tempfile.mkdtemp(prefix="moult-grdb-user-")
        try:
            shutil.copytree(pathlib.Path(__file__).resolve().parent.parent, directory + "/integrations", ignore=shutil.ignore_patterns("ansible"))
            os.chown(directory, 65534, 65534)
            subprocess.run(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", directory + "/integrations/grdb/sequence.py", moult, str(flips)],
                env=os.environ | {"TMPDIR": directory, "HOME": directory}, check=True)
        finally:
            shutil.rmtree(directory)


main()
