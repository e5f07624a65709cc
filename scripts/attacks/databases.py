"""Databases whose schema, pages or SQL attack the process that opens them, and rows that a command could lose."""
import json
import os
import pathlib
import random
import signal
import time

from kit import attack, harmless, refused, sha256, tar, stopped, works

SPIN = "instr(zeroblob(20000000), zeroblob(10000000) || x'01')"
BIG = "hex(zeroblob(200000000))"
FUNCTIONS = "not authorized|unsafe|load_extension|no such function|function"


def over(arena, sql, more=None, change=None, kind="reference", inspected=True, **options):
    """Installs release 2.0.0 with this content, made without `moult pack`, over release 1.0.0."""
    if not os.path.exists("store"):
        arena.store(arena.release("1.0.0", {"food": (kind, "CREATE TABLE food(x); INSERT INTO food VALUES('one')")}))
    content = sql if isinstance(sql, bytes) else arena.content(sql)
    hostile = arena.forge("2.0.0", {"food": (kind, content)}, change=change or (lambda manifest: manifest | (more or {})))
    if inspected:
        arena.attack("inspect", hostile, **{**options, "expects": harmless()})
    arena.attack("apply", "--store", "store", hostile, **options)
    arena.keeps("store/food.db", "SELECT x FROM food", [("one",)])


def query(sql, expect="1"):
    return {"checks": [{"on": "food", "sql": sql, "expect": expect}]}


@attack("a golden query reads a view that loads an extension, or calls functions that open files", refused(FUNCTIONS + "|no such"))
def golden_query_loads_code(arena):
    trap = arena.trap()
    for call in (f"load_extension('{trap}')", "fts3_tokenizer('simple', x'4141414141414141')", f"readfile('{arena.victim}/private')",
                 f"writefile('{arena.victim}/public', 'x')", f"edit('x', '{trap}')", "fts3_tokenizer('x')"):
        over(arena, f"CREATE TABLE food(x); CREATE VIEW v AS SELECT {call} AS x", query("SELECT x FROM v"))
        over(arena, "CREATE TABLE food(x)", query(f"SELECT {call}"))


@attack("a golden query changes the database, attaches the victim's, or writes a file", refused("check|query|authorized|statement|read"))
def golden_query_writes(arena):
    for sql in (f"ATTACH '{arena.victim}/out.db' AS v", "DELETE FROM food", "DROP TABLE food", f"VACUUM INTO '{arena.victim}/new.db'", "PRAGMA writable_schema = 1",
                "PRAGMA journal_mode = WAL", "SELECT 1; DELETE FROM food", "PRAGMA temp_store_directory = '/tmp'", "CREATE TABLE evil(x)", "BEGIN", "SELECT x FROM pragma_database_list"):
        over(arena, "CREATE TABLE food(x)", query(sql))


@attack("a golden query never ends", refused("time|long|stopped|CPU|interrupt"), limit=60)
def endless_golden_query(arena):
    arena.store(arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x); INSERT INTO food VALUES('one')")}), settings={"checkTimeout": 2})
    for sql in ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", f"SELECT sum({SPIN}) FROM (VALUES(1),(2),(3),(4))"):
        over(arena, "CREATE TABLE food(x)", query(sql), limit=28, inspected=False)


@attack("a CHECK keeps SQLite's check of a release busy", refused("time|long|stopped|CPU|interrupt|limit"), limit=60)
def slow_schema(arena):
    arena.store(arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x); INSERT INTO food VALUES('one')")}), settings={"checkTimeout": 2})
    rows = "INSERT INTO food SELECT value FROM json_each('[" + ",".join("1" for _ in range(400)) + "]');"
    over(arena, f"PRAGMA ignore_check_constraints = 1; CREATE TABLE food(x); {rows} PRAGMA writable_schema = 1; "
                f"UPDATE sqlite_schema SET sql = 'CREATE TABLE food(x, CHECK({SPIN.replace(chr(39), chr(39) * 2)} = 0))'", limit=28, inspected=False)


def signalled(number):
    """Sends a signal to a command that has had two seconds to begin."""
    def send(process):
        time.sleep(2)
        os.kill(process.pid, number)
    return {"during": send, "limit": 12}


@attack("a function in a generated column of the app's database spins for hours; the command is asked to end", stopped(), limit=60)
def spinning_column_ignores_signals(arena):
    arena.database("new.db", "CREATE TABLE t(a)")
    arena.database("app.db", f"CREATE TABLE t(a); INSERT INTO t(a) VALUES(1), (2); ALTER TABLE t ADD COLUMN g AS ({SPIN})")
    arena.keeps("app.db", "SELECT count(a) FROM t", [(2,)])
    for words, number in ((["--preserve", "t:g = 0"], signal.SIGTERM), (["--preserve", "t"], signal.SIGINT)):
        arena.attack("replace", *words, "app.db", "new.db", allowed=["app.db*", ".app.db.moult"], **signalled(number))


@attack("the same in other tables, columns and triggers of the app's shared database, during an update", stopped(), limit=90)
def spinning_schema_ignores_signals(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    for number, schema in enumerate((f"CREATE TABLE extra(a); INSERT INTO extra(a) VALUES(1); ALTER TABLE extra ADD COLUMN g AS ({SPIN})",
                                     f"ALTER TABLE item ADD COLUMN g AS ({SPIN})", f"CREATE TRIGGER r AFTER INSERT ON item BEGIN SELECT {SPIN}; END")):
        store = arena.store(first, name=f"store{number}")
        arena.database(f"store{number}/shop.db", "INSERT INTO item(id, name, own) VALUES(7, 'row of the app', 1)")
        arena.database(f"store{number}/shop.db", schema)
        arena.attack("apply", "-q", "--store", store, second, allowed=f"store{number}", **signalled(signal.SIGTERM))
        arena.holds(store, "row of the app")


@attack("the same in an index of a database that is reset, and of a user's database that is migrated", stopped(), limit=90)
def spinning_index_ignores_signals(arena):
    index = (f"CREATE TABLE extra(a); INSERT INTO extra(a) VALUES(1); CREATE INDEX i ON extra(a); PRAGMA writable_schema = 1; UPDATE sqlite_schema SET "
             f"sql = 'CREATE INDEX i ON extra({SPIN.replace(chr(39), chr(39) * 2)})' WHERE name = 'i'")
    user = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)"
    first = arena.release("1.0.0", {"notes": ("user", user), "shop": ("shared", user.replace("note", "item"), {"preserve": [{"table": "item"}]})})
    arena.write("work-2.0.0/0001-m.sql", "ALTER TABLE note ADD COLUMN more; UPDATE note SET text = text || '!'; PRAGMA user_version = 1;")
    second = arena.release("2.0.0", {"notes": ("user", "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT, more); PRAGMA user_version = 1", {"migrations": ["0001-m.sql"]})})
    arena.store(first)
    for path, table in (("store/shop.db", "item"), ("store/notes.db", "note")):
        arena.database(path, f"INSERT INTO {table} VALUES(7, 'row of the {table}'); ALTER TABLE {table} ADD COLUMN g AS ({SPIN})")
        arena.database(path, index)
    arena.attack("reset", "-q", "shop", "--store", "store", allowed="store", **signalled(signal.SIGTERM))
    arena.attack("verify", "-q", "--deep", "--store", "store", allowed="store", **signalled(signal.SIGTERM))
    arena.attack("apply", "-q", "--store", "store", second, allowed="store", **signalled(signal.SIGTERM))
    arena.holds("store", "row of the item", "row of the note")


@attack("a generated column of an 8 KiB database makes 200 MB of each row", harmless(), limit=90)
def expanding_column(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("store/shop.db", "INSERT INTO item(id, name, own) VALUES(7, 'row of the app', 1)")
    arena.database("store/shop.db", f"ALTER TABLE item ADD COLUMN g AS ({BIG})")
    arena.holds("store", "row of the app")
    arena.attack("apply", "-q", "--store", "store", second, allowed="store", memory=500, limit=20)
    arena.database("app.db", f"CREATE TABLE t(a); INSERT INTO t(a) VALUES('row 1'), ('row 2'); ALTER TABLE t ADD COLUMN g AS ({BIG})")
    arena.database("new.db", "CREATE TABLE t(a, g)")
    arena.attack("replace", "--preserve", "t", "app.db", "new.db", allowed=["app.db", ".app.db.moult"], memory=500, limit=20)
    arena.holds(".", "row 1", "row 2")


@attack("ordinary databases have JSON functions in CHECKs, indexes and generated columns", works(), limit=40)
def json_functions(arena):
    schemas = ("CREATE TABLE t(id INTEGER PRIMARY KEY, data TEXT CHECK(JSON_VALID(data)))",
               "CREATE TABLE t(id INTEGER PRIMARY KEY, data TEXT); CREATE INDEX i ON t(json_extract(data, '$.a'))",
               "CREATE TABLE t(id INTEGER PRIMARY KEY, data TEXT, a AS (data ->> '$.a'))")
    for number, schema in enumerate(schemas):
        arena.database(f"app{number}.db", schema + "; INSERT INTO t(data) VALUES('{\"a\": 1}')")
        arena.database(f"new{number}.db", schema + "; INSERT INTO t(data) VALUES('{\"a\": 2}')")
        arena.attack("replace", "-q", "--preserve", "t", f"app{number}.db", f"new{number}.db", allowed=[f"app{number}.db", f".app{number}.db.moult"])
        arena.attack("pack", "-q", f"new{number}.db", "--product", f"org.example.p{number}", allowed="releases")
        arena.check(os.path.exists(f"releases/p{number}-1.0.0.json"), f"status: {schema} was not packed")
    first = arena.release("1.0.0", {"notes": ("user", f"{schemas[0]}; CREATE TABLE other(x); PRAGMA user_version = 1")}) if os.path.exists("releases/p0-1.0.0.json") else None
    if first:
        arena.write("work-2.0.0/0002-m.sql", "ALTER TABLE other ADD COLUMN y; PRAGMA user_version = 2;")
        second = arena.release("2.0.0", {"notes": ("user", f"{schemas[0]}; CREATE TABLE other(x, y); PRAGMA user_version = 2", {"migrations": ["0002-m.sql"]})})
        arena.store(first)
        arena.attack("apply", "-q", "--store", "store", second, allowed="store")


@attack("the SQL of a release attaches, vacuums into, or reads files of the victim in a migration", refused("migration|authorized|not allowed|cannot|function"), limit=60)
def migration_reaches_files(arena):
    first = arena.release("1.0.0", {"notes": ("user", "CREATE TABLE note(x); PRAGMA user_version = 1")})
    arena.store(first)
    arena.database("store/notes.db", "INSERT INTO note VALUES('note of the user')")
    arena.keeps("store/notes.db", "SELECT x FROM note", [("note of the user",)])
    content = arena.content("CREATE TABLE note(x, y); PRAGMA user_version = 2")
    for sql in (f"ATTACH '{arena.victim}/out.db' AS v; UPDATE v.v SET x = 'changed';", f"VACUUM INTO '{arena.victim}/new.db';", "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema;",
                f"SELECT load_extension('{arena.trap()}');", f"SELECT writefile('{arena.victim}/public', 'x');", "COMMIT; DELETE FROM note;", "ROLLBACK; DROP TABLE note;",
                f".shell touch {arena.path('sprung')}", f"CREATE VIRTUAL TABLE c USING csv(filename='{arena.victim}/private');", "PRAGMA temp_store_directory = '/tmp';",
                f"CREATE TABLE evil AS SELECT readfile('{arena.victim}/private');"):
        migration = ("ALTER TABLE note ADD COLUMN y; " + sql + " PRAGMA user_version = 2;").encode()
        archive = tar({"notes.db": content, "0002.sql": migration})
        release = arena.forge("2.0.0", {"notes": ("user", content)}, archive=archive, change=lambda manifest: manifest["databases"]["notes"].update(
            migrations=[{"file": "0002.sql", "size": len(migration), "sha256": sha256(migration), "to": 2}]) or manifest)
        arena.attack("apply", "-q", "--store", "store", release)


@attack("conditions and tables of `--preserve` and `--check` contain other SQL", refused("preserve|condition|check|authorized|statement|table", 1, 3, 64))
def sql_in_arguments(arena):
    arena.database("app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('row')")
    arena.database("new.db", "CREATE TABLE t(x)")
    for condition in ("1); DELETE FROM t; --", "(SELECT load_extension('x'))", "random() > 0", "1 UNION SELECT 1", "\"nothing\" = 1",
                      f"writefile('{arena.victim}/public', 'x')", "1; ATTACH 'x' AS y"):
        arena.attack("replace", "-q", "--preserve", f"t:{condition}", "app.db", "new.db")
    for check in ("DELETE FROM t RETURNING 1=1", "ATTACH 'victim/out.db' AS v=1", "SELECT load_extension('x')=1", "SELECT 1; DROP TABLE t=1", "PRAGMA journal_mode = WAL=1"):
        arena.attack("replace", "-q", "--check", check, "app.db", "new.db")


@attack("files that are no databases: empty, one byte, another format, wrong page size or count", refused("database|damaged|empty|size|match|page"))
def no_database(arena):
    arena.database("app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('row')")
    good = arena.content("CREATE TABLE t(x); INSERT INTO t VALUES(1)")
    broken = [b"", b"x", b"PK\3\4" + bytes(5000), good[:5000], good + bytes(1), good[:100], good[:16] + b"\0\0" + good[18:], good[:16] + b"\2\0" + good[18:],
              good[:28] + b"\xff\xff\xff\xff" + good[32:], good[:18] + b"\3\3" + good[20:], b"SQLite format 3\0", b"\xff" * 8192,
              good[:4096] + b"\xff" * 4096, good[:100] + b"\x05" + good[101:], good[:32] + (2).to_bytes(4, "big") + (99).to_bytes(4, "big") + good[40:]]
    for number, content in enumerate(broken):
        arena.write("new.db", content)
        arena.attack("replace", "-q", "app.db", "new.db")
        arena.attack("pack", "-q", "new.db", "--product", "org.example.x", expects=harmless("."), allowed="releases")


@attack("a schema is a maze: 300 nested views, 1,900 columns, an expression of 900 terms, 4,000 tables", harmless(), limit=60)
def maze(arena):
    views = "CREATE TABLE food(x); CREATE VIEW v0 AS SELECT x FROM food;" + "".join(f"CREATE VIEW v{n} AS SELECT * FROM v{n - 1};" for n in range(1, 300))
    schemas = (views, "CREATE TABLE food(x, " + ", ".join(f"c{n} CHECK(c{n} <> {n})" for n in range(1900)) + ");", "CREATE TABLE food(x, CHECK(" + " + ".join(["x"] * 900) + " > 0));",
               "CREATE TABLE food(x);" + "".join(f"CREATE TABLE t{n}(x);" for n in range(4000)))
    arena.database("app.db", "CREATE TABLE food(x)")
    for schema in schemas:
        arena.remove("store")
        over(arena, schema, limit=12, memory=500, allowed="store", expects=harmless())
        arena.write("new.db", arena.content(schema))
        arena.attack("diff", "app.db", "new.db", limit=12, memory=500)
    arena.kept.clear()


@attack("each of 300 views reads the one before it twice, so that their expansion never ends", harmless(), limit=60)
def exponential_views(arena):
    arena.store(arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x); INSERT INTO food VALUES('one')")}), settings={"checkTimeout": 2})
    views = "CREATE TABLE food(x); CREATE VIEW v0 AS SELECT x FROM food;" + "".join(f"CREATE VIEW v{n} AS SELECT * FROM v{n - 1} UNION ALL SELECT * FROM v{n - 1};" for n in range(1, 300))
    over(arena, views, limit=25, memory=500, inspected=False, expects=harmless(), allowed="store")
    over(arena, views, query("SELECT count(*) FROM v299"), limit=25, memory=500, inspected=False, expects=harmless(), allowed="store")
    arena.kept.clear()


@attack("the schema table of a database was edited: it names pages of other tables, loops, and has other SQL", harmless(), limit=40)
def edited_schema(arena):
    arena.database("app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('row')")
    for edit in ("UPDATE sqlite_schema SET rootpage = 1", "UPDATE sqlite_schema SET rootpage = 2000000000", "UPDATE sqlite_schema SET sql = 'CREATE TABLE t(x, x)'",
                 "UPDATE sqlite_schema SET sql = 'CREATE TABLE t(' || hex(zeroblob(400000)) || ')'", "UPDATE sqlite_schema SET name = 'sqlite_sequence'",
                 "INSERT INTO sqlite_schema VALUES('trigger', 'r', 't', 0, 'CREATE TRIGGER r AFTER DELETE ON t BEGIN SELECT load_extension(1); END')",
                 "INSERT INTO sqlite_schema VALUES('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING fts5(x)')", "UPDATE sqlite_schema SET sql = NULL",
                 "UPDATE sqlite_schema SET type = 'view', sql = 'CREATE VIEW t AS SELECT * FROM t'", "DELETE FROM sqlite_schema",
                 "UPDATE sqlite_schema SET tbl_name = 'other'", "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema"):
        if os.path.exists("new.db"):
            os.unlink("new.db")
        arena.database("new.db", "CREATE TABLE t(x); CREATE INDEX i ON t(x); INSERT INTO t VALUES(1)")
        arena.database("new.db", f"PRAGMA writable_schema = 1; {edit}")
        for words in (["inspect", "new.db"], ["diff", "app.db", "new.db"], ["replace", "--dry-run", "app.db", "new.db"], ["replace", "--dry-run", "--preserve", "t", "new.db", "app.db"]):
            arena.attack(*words, limit=9, memory=400)


@attack("random bytes of a database are changed, and every verb reads it", harmless(), limit=60)
def damaged_pages(arena):
    chance = random.Random(4711)
    arena.database("app.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE INDEX i ON t(x); CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO t(x) SELECT hex(randomblob(90)) "
                             "FROM json_each('[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]'), json_each('[1,1,1,1,1,1,1,1,1,1]'); INSERT INTO f SELECT x FROM t")
    whole = pathlib.Path("app.db").read_bytes()
    for number in range(40):
        content = bytearray(whole)
        for _ in range(1 + number % 8):
            at = chance.randrange(100, len(content))
            content[at:at + 4] = chance.randbytes(4)
        arena.write("new.db", bytes(content))
        arena.attack(*(["inspect", "new.db"], ["diff", "new.db", "app.db"], ["replace", "--dry-run", "--preserve", "t", "new.db", "app.db"],
                       ["pack", "-q", "new.db", "--product", f"org.example.x{number}"])[number % 4], limit=9, memory=400, allowed="releases")


@attack("root's app writes to a read-only database of a release, and the release is repaired", harmless(), root=True)
def row_in_sealed_file(arena):
    release = arena.shop("1.0.0")
    arena.store(release)
    arena.database("store/food.db", "INSERT INTO food VALUES('row in a sealed file')")
    for words in (["apply"], ["recover"], ["clean"]):
        arena.attack(*words, *([release] if words == ["apply"] else []), "--store", "store", allowed="store")
    second = arena.shop("2.0.0")
    arena.attack("apply", second, "--store", "store", allowed="store")
    arena.settings({"keep": 1, "minimumAge": 0})
    arena.attack("apply", arena.shop("3.0.0"), "--store", "store", allowed="store")
    arena.attack("clean", "--store", "store", allowed="store")
    arena.holds("store", "row in a sealed file")


@attack("a trigger of the app deletes rows, and views are named like the tables that moult creates", harmless(), limit=40)
def planted_tables(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    for number, schema in enumerate(("CREATE TRIGGER r AFTER INSERT ON item BEGIN DELETE FROM item WHERE own = 1; END",
                                     "DROP TABLE moult_release; CREATE VIEW moult_release AS SELECT 1 AS x", "CREATE VIEW moult_rejected AS SELECT 1 AS x",
                                     "CREATE TABLE moult_rejected(a, b, c)", "CREATE TABLE extra(x); INSERT INTO extra VALUES('row of the app')",
                                     "CREATE TRIGGER d BEFORE DELETE ON item BEGIN SELECT RAISE(IGNORE); END",
                                     "CREATE TRIGGER x AFTER INSERT ON moult_release BEGIN DELETE FROM item; END")):
        store = arena.store(first, name=f"store{number}")
        arena.database(f"store{number}/shop.db", "INSERT INTO item(id, name, own) VALUES(7, 'row of the app', 1)")
        arena.database(f"store{number}/shop.db", schema)
        for words in (["plan", second], ["apply", second], ["rollback"]):
            arena.attack(*words, "--store", store, allowed=f"store{number}")
            arena.holds(store, "row of the app")


@attack("names of tables and columns are not UTF-8", harmless())
def names_of_bytes(arena):
    content = arena.content("CREATE TABLE zzzz(yyyy); INSERT INTO zzzz VALUES('row of the app')").replace(b"zzzz", b"\xff\xfe\xc3z").replace(b"yyyy", b"\xff\xc3\xa4y")
    arena.write("app.db", content)
    arena.write("new.db", arena.content("CREATE TABLE t(x)"))
    arena.attack("inspect", "app.db")
    arena.attack("diff", "app.db", "new.db")
    arena.attack("replace", "-q", "app.db", "new.db", allowed=["app.db", ".app.db.moult"])
    arena.attack("replace", "-q", "--undo", "app.db", allowed=["app.db", ".app.db.moult"])
    kept = [path for path in pathlib.Path(".").rglob("*") if path.is_file() and not path.is_symlink() and b"row of the app" in path.read_bytes()]
    arena.check(kept, "rows: the row of the app is in no file")
    store = arena.store(arena.shop("1.0.0"))
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1); CREATE TABLE zzzz(x)")
    arena.write("store/shop.db", pathlib.Path("store/shop.db").read_bytes().replace(b"zzzz", b"\xff\xfe\xc3z"))
    arena.attack("apply", "-q", arena.shop("2.0.0"), "--store", store, allowed="store")
    arena.attack("rollback", "-q", "--store", store, allowed="store")
    arena.check(b"row of the app" in b"".join(path.read_bytes() for path in pathlib.Path("store").rglob("*.db") if path.is_file()), "rows: the row is lost")


@attack("a build script reads and writes files outside its directory, and starts programs", refused("outside|not supported|not allowed|authorized|cannot|unknown|function|no such", 1, 3))
def build_script(arena):
    trap = arena.trap()
    for line in (".import ../victim/private t", f".import {arena.victim}/private t", ".read ../victim/private", f".shell {trap}", f".system {trap}", f".output '|{trap}'",
                 f".once {arena.victim}/public", f".import '|{trap}' t", f".backup {arena.victim}/out.db", f".save {arena.victim}/out.db", f".open {arena.victim}/out.db",
                 f"ATTACH '{arena.victim}/out.db' AS v; DELETE FROM v.v;", f"VACUUM INTO '{arena.victim}/x.db';", f"INSERT INTO t VALUES(readfile('{arena.victim}/private'));",
                 f"SELECT writefile('{arena.victim}/public', 'x');", f".load {trap}", f".log {arena.victim}/public", f".cd {arena.victim}", f".excel", f".www", f".restore {arena.victim}/out.db",
                 f".clone {arena.victim}/x.db", f".archive -c -f {arena.victim}/x.tar", f".dump", f"SELECT edit('x', '{trap}');"):
        arena.write("src/make.sql", f"CREATE TABLE t(x);\n{line}\n")
        arena.attack("build", "src/make.sql", "-o", "out.db", allowed=["out.db"], expects=harmless("") if line == ".dump" else None)
        if os.path.exists("out.db"):
            arena.check(arena.secret.encode() not in pathlib.Path("out.db").read_bytes(), f"secret: {line} copied the private file into out.db")
            os.unlink("out.db")
