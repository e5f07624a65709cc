"""Hostile and odd databases, by an author who has not read the code: equivalent names, many columns, endless queries, odd values, odd files."""
import json
import pathlib
import subprocess

from kit import all_values, attack, harmless, refused, works

NFC, NFD = "\u00e9", "e\u0301"


def updates(arena, schema, fill, preserve, second=None, name="shop", **options):
    """Installs a shared database with this schema, fills it as the app, and updates it."""
    entry = {"preserve": [{"table": table} for table in preserve]}
    first = arena.release("1.0.0", {name: ("shared", schema, entry)})
    next_ = arena.release("2.0.0", {name: ("shared", second or schema, entry)})
    arena.store(first)
    arena.database(f"store/{name}.db", fill)
    return next_


@attack("tables and columns have names that are equal as Unicode text, but different in SQLite", works(), limit=40)
def equivalent_names(arena):
    schema = f'''CREATE TABLE "{NFC}"(id INTEGER PRIMARY KEY, "{NFC}" TEXT, "{NFD}" TEXT); CREATE TABLE "{NFD}"(id INTEGER PRIMARY KEY, "{NFD}" TEXT, "{NFC}" TEXT);
        CREATE TABLE "\u212b"(x); CREATE TABLE "\u00c5"(x); CREATE TABLE "A\u030a"(x);'''
    fill = f'''INSERT INTO "{NFC}" VALUES(1, 'c-c', 'c-d'); INSERT INTO "{NFD}" VALUES(1, 'd-d', 'd-c'); INSERT INTO "\u212b" VALUES('angstrom'); INSERT INTO "\u00c5" VALUES('composed'); INSERT INTO "A\u030a" VALUES('decomposed');'''
    second = updates(arena, schema, fill, [NFC, NFD, "\u212b", "\u00c5", "A\u030a"])
    arena.attack("plan", "--deep", "--store", "store", second, expects=works("", 2))
    arena.attack("apply", "-q", "--store", "store", second, allowed=["store"])
    arena.keeps("store/shop.db", f'SELECT "{NFC}", "{NFD}" FROM "{NFC}"', [("c-c", "c-d")])
    arena.keeps("store/shop.db", f'SELECT "{NFC}", "{NFD}" FROM "{NFD}"', [("d-c", "d-d")])
    for table, value in (("\u212b", "angstrom"), ("\u00c5", "composed"), ("A\u030a", "decomposed")):
        arena.keeps("store/shop.db", f'SELECT x FROM "{table}"', [(value,)])
    arena.sh("cp store/shop.db a.db; cp store/shop.db b.db")
    arena.database("b.db", f'DELETE FROM "{NFD}"')
    ended = arena.attack("diff", "a.db", "b.db", "--json", expects=works("", 2))
    arena.check('"removed":1' in ended.out.replace(" ", ""), f"rows: the diff has no removed row: {ended.out[:400]}")
    arena.attack("replace", "-q", "a.db", "b.db", "--preserve", NFD, allowed=["a.db", ".a.db.moult"])
    arena.keeps("a.db", f'SELECT "{NFD}" FROM "{NFD}"', [("d-d",)])


@attack("a table without a key has 1,990 columns, and another has columns named rowid, oid and _rowid_", harmless(), limit=60)
def many_columns(arena):
    wide = f"CREATE TABLE wide({', '.join(f'c{n}' for n in range(1990))})"
    schema = wide + "; CREATE TABLE r(rowid TEXT, oid TEXT, x TEXT); CREATE TABLE w(a, b, PRIMARY KEY(b DESC, a)) WITHOUT ROWID; CREATE TABLE big(id INTEGER PRIMARY KEY AUTOINCREMENT, x)"
    fill = f"""INSERT INTO wide(c0, c1989) VALUES('first', 'last'); INSERT INTO wide(c0, c1989) VALUES('first', 'last'); INSERT INTO r VALUES('1', '2', '3'), ('1', '2', '3'); INSERT INTO w VALUES(1, 2), (2, 1);
        INSERT INTO big VALUES(9223372036854775807, 'highest'), (-9223372036854775808, 'lowest'), (0, 'zero')"""
    second = updates(arena, schema, fill, ["wide", "r", "w", "big"])
    arena.attack("apply", "-q", "--store", "store", second, allowed=["store"], limit=15)
    arena.keeps("store/shop.db", "SELECT count(*) FROM wide WHERE c0 = 'first' AND c1989 = 'last'", [(2,)])
    arena.keeps("store/shop.db", "SELECT count(*) FROM r", [(2,)])
    arena.keeps("store/shop.db", "SELECT a, b FROM w ORDER BY a", [(1, 2), (2, 1)])
    arena.keeps("store/shop.db", "SELECT id FROM big ORDER BY id", [(-9223372036854775808,), (0,), (9223372036854775807,)])
    arena.sh("cp store/shop.db a.db; cp store/shop.db b.db")
    arena.attack("diff", "a.db", "b.db", expects=works("", 0))
    arena.attack("replace", "-q", "a.db", "b.db", "--preserve", "wide", "--preserve", "r", allowed=["a.db", ".a.db.moult"])
    arena.attack("reset", "-q", "shop", "--set-user-data-aside", "--store", "store", allowed=["store"], limit=15)
    arena.kept[:] = []
    arena.holds("store", "highest", "lowest", "zero", "last")


@attack("values that compare as equal but are different bytes: -0.0, 1 and 1.0, blobs and text, case, zero bytes, lone surrogates, NaN", harmless(), limit=40)
def odd_values(arena):
    schema = "CREATE TABLE k(a PRIMARY KEY, b); CREATE TABLE n(a COLLATE NOCASE, b); CREATE TABLE t(x TEXT, y BLOB, z REAL)"
    shipped = schema + "; INSERT INTO k VALUES(1, 'shipped'), ('a', 'shipped'); INSERT INTO n VALUES('ABC', 'shipped'); INSERT INTO t VALUES('x', x'00', 0.0)"
    fill = """INSERT INTO k VALUES(1.5, 'mine'), ('A', 'mine'), (x'61', 'mine'), ('a' || char(0), 'mine'), ('a' || char(0) || 'b', 'mine'); INSERT INTO n VALUES('abc', 'shipped'), ('ABC ', 'shipped');
        INSERT INTO t VALUES('x', x'00', -0.0), ('x', '', 0.0), ('x', x'', 1e999), ('x', 'x' || char(0), -1e999), (CAST(x'ff' AS TEXT), x'ff', 4.9e-324), (CAST(x'eda080' AS TEXT), 1, 9007199254740993), ('x', 1.0, 1), (char(0), NULL, NULL)"""
    second = updates(arena, shipped, fill, ["k", "n", "t"])
    sql = {"k": "SELECT typeof(a), hex(a), b FROM k ORDER BY 1, 2", "n": "SELECT hex(a), b FROM n ORDER BY 1", "t": "SELECT typeof(x), hex(x), typeof(y), hex(y), typeof(z), quote(z) FROM t ORDER BY 1, 2, 3, 4, 5, 6"}
    before = {table: arena.rows("store/shop.db", text) for table, text in sql.items()}
    arena.attack("apply", "-q", "--store", "store", second, allowed=["store"], expects=works())
    for table, text in sql.items():
        missing = [row for row in before[table] if row not in arena.rows("store/shop.db", text)]
        arena.check(not missing, f"rows: {table}: {missing} are missing")
    arena.attack("rollback", "-q", "--store", "store", allowed=["store"], expects=works())
    for table, text in sql.items():
        missing = [row for row in before[table] if row not in arena.rows("store/shop.db", text)]
        arena.check(not missing, f"rows: after the rollback, {table}: {missing} are missing")


@attack("queries of a release have no end: golden queries, conditions, views, generated columns and migrations", harmless("time|limit|query|SQL|check|CPU|took|refuse|endless|condition|preserve|deterministic|migration|interrupt"), limit=160)
def endless_queries(arena):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    arena.database("work/food.db", f"CREATE TABLE food(x); INSERT INTO food VALUES(1); CREATE VIEW v AS {endless}")
    arena.database("work/user.db", "CREATE TABLE u(x); PRAGMA user_version = 1")
    arena.write("work/0002-x.sql", f"CREATE TABLE m AS {endless}; PRAGMA user_version = 2;")
    drafts = {"check": ({"food": {"kind": "reference", "source": "food.db"}}, {"checks": [{"on": "food", "sql": endless, "expect": "1"}]}), "view": ({"food": {"kind": "reference", "source": "food.db"}}, {"checks": [{"on": "food", "sql": "SELECT * FROM v", "expect": "1"}]}),
              "condition": ({"food": {"kind": "shared", "source": "food.db", "preserve": [{"table": "food", "where": f"({endless}) > 0"}]}}, {}),
              "migration": ({"food": {"kind": "user", "source": "user.db", "migrations": ["0002-x.sql"]}}, {})}
    for name, (databases, more) in drafts.items():
        arena.write("work/draft.json", json.dumps({"manifest": 1, "product": "org.example.app", "version": "1.0.0", "sequence": 1, "databases": databases, **more}))
        begun = len(arena.effects)
        if name == "migration":
            arena.sh("rm -rf releases")
            arena.release("0.9.0", {"food": ("user", "CREATE TABLE u(x); PRAGMA user_version = 1")}, top={"sequence": 1})
            arena.write("work/draft.json", pathlib.Path("work/draft.json").read_text().replace('"sequence": 1', '"sequence": 2'))
        # 4 seconds of processor time on the store, so the machine that packs allows a second, and some for its start.
        arena.attack("pack", "work/draft.json", "--check-timeout", "4", limit=14, expects=refused("", 1, 3), allowed=["releases"])
        arena.effects[begun:] = [f"{effect} ({name})" for effect in arena.effects[begun:]]
    content = pathlib.Path("work/food.db").read_bytes()
    arena.store(settings={"checkTimeout": 2})
    for kind, change in (("reference", {"checks": [{"on": "food", "sql": endless, "expect": "1"}]}), ("shared", {})):
        release = arena.forge("1.0.0", {"food": (kind, content)}, change=lambda m, c=change, k=kind: {**m, **c, "databases": {"food": {**m["databases"]["food"], **({"preserve": [{"table": "food", "where": f"({endless}) > 0"}]} if k == "shared" else {})}}})
        for words in (["apply", "--store", "store", release], ["plan", "--deep", "--store", "store", release]):
            arena.attack(*words, limit=14, allowed=["store"], expects=harmless())
        second = arena.forge("2.0.0", {"food": (kind, content)}, change=lambda m, c=change, k=kind: {**m, **c, "databases": {"food": {**m["databases"]["food"], **({"preserve": [{"table": "food", "where": f"({endless}) > 0"}]} if k == "shared" else {})}}})
        arena.attack("apply", "--store", "store", second, limit=14, allowed=["store"], expects=harmless())


@attack("`moult sql` without --write tries to write: ATTACH, VACUUM INTO, journal modes, temporary files, extensions", harmless(), limit=40)
def sql_without_write(arena):
    arena.store(arena.shop("1.0.0"))
    arena.database("store/notes.db", "INSERT INTO note VALUES(1, 'note of the user')")
    for sql in ("VACUUM INTO 'made.db'", "VACUUM food INTO 'made.db'", "ATTACH 'made.db' AS m; CREATE TABLE m.t(x)", "ATTACH 'file:made.db?mode=rwc' AS m; CREATE TABLE m.t(x)", "ATTACH 'victim/out.db' AS v; DELETE FROM v.v",
                "DELETE FROM note", "UPDATE main.note SET text = 'x'", "PRAGMA journal_mode=WAL", "PRAGMA main.journal_mode=DELETE", "PRAGMA user_version=9", "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = ''",
                "DROP TABLE note", "DELETE FROM food.food", "CREATE TEMP TRIGGER x AFTER INSERT ON note BEGIN DELETE FROM note; END", "PRAGMA temp_store_directory='victim'", "SELECT load_extension('x')", "SELECT writefile('made.db', 'x')",
                "SELECT fts3_tokenizer('x', x'00')", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA query_only=OFF; DELETE FROM note", "BEGIN EXCLUSIVE; SELECT 1", "DETACH main", "REINDEX", "ANALYZE", "PRAGMA incremental_vacuum", "EXPLAIN DELETE FROM note",
                "CREATE VIRTUAL TABLE temp.x USING fts5(y)", "WITH a AS (SELECT 1) DELETE FROM note RETURNING *", "PRAGMA secure_delete=ON; VACUUM", "PRAGMA locking_mode=EXCLUSIVE; SELECT * FROM note"):
        arena.attack("sql", sql, "--store", "store", expects=harmless(), limit=6)
    arena.keeps("store/notes.db", "SELECT text FROM note", [("note of the user",)])


@attack("page sizes, reserved bytes, encodings, vacuum modes and versions differ between the old and the new content, with and without a reader", harmless(), limit=60)
def odd_formats(arena):
    for number, (pragma, other) in enumerate((("PRAGMA page_size=512", "PRAGMA page_size=65536"), ("PRAGMA encoding='UTF-16le'", "PRAGMA encoding='UTF-8'"), ("PRAGMA auto_vacuum=FULL", "PRAGMA auto_vacuum=NONE"),
                                              ("PRAGMA journal_mode=WAL", "PRAGMA journal_mode=DELETE"), ("PRAGMA legacy_file_format=ON", "PRAGMA page_size=1024"), ("PRAGMA application_id=252006673", "PRAGMA user_version=-1"))):
        for path, setting, value in (("app.db", pragma, "mine"), ("new.db", other, "new")):
            arena.sh(f"rm -rf {path}* .{path}.moult")
            arena.database(path, f"{setting}; CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT); INSERT INTO t VALUES({number * 10 + (path == 'app.db')}, '{value}\u20ac'); CREATE INDEX i ON t(x)")
        for reader in (False, True):
            script = "import sqlite3, time\nc = sqlite3.connect('app.db'); print(c.execute('SELECT * FROM t').fetchall(), flush=True)\ntime.sleep(20)"
            process = subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=-1) if reader else None
            if process:
                process.stdout.readline()
            ended = arena.attack("replace", "-q", "app.db", "new.db", "--preserve", "t", allowed=["app.db*", ".app.db.moult"])
            if ended.status == 0:
                found = {row[0] for row in arena.rows("app.db", "SELECT x FROM t")}
                arena.check("mine\u20ac" in found and arena.rows("app.db", "PRAGMA integrity_check") == [("ok",)], f"rows: {pragma}: {found}")
                arena.attack("replace", "-q", "--undo", "app.db", allowed=["app.db*", ".app.db.moult"], expects=works("", 0, 3, 75))
            if process:
                process.kill()
                process.wait()
            arena.check("mine\u20ac" in {row[0] for row in arena.rows("app.db", "SELECT x FROM t")}, f"rows: {pragma} after the undo")


@attack("a database of an app has 1,200 tables with indexes, and a row with a megabyte", harmless(), limit=60)
def many_tables(arena):
    arena.database("app.db", "".join(f"CREATE TABLE t{n}(a, b UNIQUE); CREATE INDEX i{n} ON t{n}(a); INSERT INTO t{n} VALUES({n}, {n});" for n in range(1200)) + "INSERT INTO t0 VALUES(zeroblob(1000000), 1)")
    arena.sh("cp app.db new.db; sqlite3 new.db 'DELETE FROM t1'")
    arena.attack("inspect", "app.db", limit=10)
    arena.attack("diff", "app.db", "new.db", limit=12)
    arena.attack("replace", "-q", "app.db", "new.db", "--preserve", "t0", "--preserve", "t1199", limit=20, allowed=["app.db", ".app.db.moult"])
    arena.holds(".", "1199")


@attack("60 views of a database use each other twice, so that preparing the last one takes for ever", harmless("view|time|limit|SQL|CPU|took"), limit=160)
def chain_of_views(arena):
    chain = "CREATE TABLE t(x); INSERT INTO t VALUES('one'); CREATE VIEW v0 AS SELECT 1 x;" + "".join(f"CREATE VIEW v{n} AS SELECT x FROM v{n - 1} UNION ALL SELECT x FROM v{n - 1};" for n in range(1, 60))
    arena.database("app.db", chain)
    arena.database("new.db", "CREATE TABLE t(x); INSERT INTO t VALUES('two')")
    # SIGTERM must end each of them.
    for words in (["inspect", "app.db"], ["diff", "app.db", "new.db"], ["replace", "-q", "app.db", "new.db"], ["replace", "-q", "new.db", "app.db"], ["pack", "-q", "app.db", "--product", "org.example.v"]):
        ended = arena.attack("-s", "TERM", "-k", "4", "5", arena.command, *words, program="/usr/bin/timeout", limit=12, allowed=["app.db*", "new.db*", ".app.db.moult", ".new.db.moult", "releases"],
                             expects=works("", 0, 1, 2, 3, 124))
        arena.check(ended.status != 137, f"time: {words[0]} did not end 4 s after SIGTERM")
    arena.effects[:] = [effect for effect in arena.effects if not (effect.startswith("sentence: no error is shown") and "ended with 124" in effect)]
    arena.holds(".", "one", "two")


@attack("the app has made tables, views and triggers with the names that moult uses in a database", harmless(), limit=60)
def names_of_moult(arena):
    for number, made in enumerate(("CREATE TABLE moult_rejected(x); INSERT INTO moult_rejected VALUES('only copy')", "CREATE VIEW moult_rejected AS SELECT 1 x", "CREATE VIRTUAL TABLE moult_rejected USING fts5(x); INSERT INTO moult_rejected VALUES('only copy')",
                                   "DROP TABLE moult_release; CREATE TABLE moult_release(x); INSERT INTO moult_release VALUES('only copy')", "CREATE TRIGGER tr AFTER DELETE ON moult_release BEGIN DELETE FROM item; END",
                                   "CREATE TABLE Moult_Rejected(a, b); INSERT INTO moult_rejected VALUES('only copy', 2)", "DROP TABLE moult_release; CREATE VIEW moult_release AS SELECT * FROM item",
                                   "INSERT INTO moult_release SELECT * FROM moult_release", "CREATE TABLE moult_rejected(\"table\", \"row\", reason, at, x DEFAULT (1/0)); INSERT INTO moult_rejected VALUES('item', 'only copy', 1, 2, 3)")):
        arena.sh("rm -rf store releases work-*")
        first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
        arena.store(first)
        arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
        arena.database("store/shop.db", made)
        for words in (["status"], ["verify"], ["plan", "--deep", second], ["apply", second], ["rollback"], ["apply", "--allow-downgrade", first]):
            arena.attack(*words, "--store", "store", allowed=["store"], expects=harmless())
        wanted = {"row of the app"} | ({"only copy"} if "only copy" in made else set())
        arena.check(wanted <= all_values("store", wanted), f"rows: {wanted - all_values('store', wanted)} are lost: {made}")
