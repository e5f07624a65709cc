"""The flows of stores. To add one, add an entry to `FLOWS`.

Each flow has the steps that lead to its start, the command that is struck, the expected content before and after the command,
and the commands that must succeed afterwards, whatever call was struck.
"""
import json, os, sqlite3, subprocess
from dataclasses import dataclass
from typing import Callable

from harness import rows
from harness.releases import set_settings

NOTIFY = os.path.join(os.path.dirname(__file__), "../../Examples/steps/notify")


@dataclass(frozen=True)
class Flow:
    name: str
    # Creates a new store in the state where the flow starts.
    begin: Callable
    # The arguments of `moult`; `{name}` is the manifest of that release, `{feed name}` the address of that feed.
    command: list
    # The expected content before and after: by "version", "kept" (sets in quarantine), or "FILE: SQL" with its rows.
    looks: dict
    # The commands that must succeed afterwards and complete the flow; None for the command itself.
    again: list = None
    # Whether the databases can also be read during the command, which they cannot if the replaced file is damaged.
    readable: bool = True
    # The commands that lead from the start to the intermediate states in which the flow may stop.
    between: list = ()
    # A network delivers bytes in varying pieces, so the last calls of one run may not occur in another.
    varies: bool = False
    # Whether the command changes nothing if it runs again after it has completed.
    repeats: bool = True
    # Whether `moult verify` finds no problem afterwards.
    sound: bool = True
    # The number of rows of the app at the start, which checks the flow itself.
    rows: int = 0
    # Caches, whose rows may be lost.
    caches: tuple = ("thumbs.db",)
    # The paths at which the flow creates a database, so that apps may create their own files there first.
    creates: tuple = ()


def install(name):
    def begin(world):
        world.must("apply", "-q", world.manifest(name))
    return begin


def write(path, *statements, wal=False, killed=True):
    """Runs an app that writes to a database and is killed, unless `killed` is false; in WAL mode, its rows stay in the WAL.

    The app is the SQLite shell, which starts much faster than Python: most failure points begin with it.
    """
    first = ["PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0"] if wal else []
    last = [".shell kill -KILL $PPID"] if killed else []
    ended = subprocess.run(["sqlite3", "-bail", path, *first, "BEGIN", *statements, "COMMIT", *last], capture_output=True, text=True)
    if ended.returncode != (-9 if killed else 0):
        raise OSError(f"an app could not write to {path}: {ended.stderr.strip()}")


def with_rows(name, file, *statements, wal=False):
    """Returns a function that installs a release, and runs an app that writes to one of its databases."""
    def begin(world):
        install(name)(world)
        write(os.path.join(world.store, file), *statements, wal=wal)
    return begin


def found(file, *statements, wal=False):
    """Returns a function that puts an app's file at the path of a database into a store without a release."""
    return lambda world: write(os.path.join(world.store, file), *statements, wal=wal)


def then(begin, *steps):
    """Returns `begin` followed by more steps: commands, and functions of the world."""
    def further(world):
        begin(world)
        for step in steps:
            step(world) if callable(step) else world.must(*world.words(step))
    return further


def writes(file, *statements, wal=False):
    return lambda world: write(os.path.join(world.store, file), *statements, wal=wal)


def following(feed, name):
    """Returns a function that installs a release, and configures a feed with a newer release."""
    def begin(world):
        install(name)(world)
        releases = world.tools.releases
        set_settings(world.store, feed={"url": releases.feeds[feed]}, keys={"trusted": [{"key": releases.key}]})
    return begin


def telling(world):
    """Installs a release, and configures an external step that sends a message for each update."""
    install("plain-1.0.0")(world)
    hooks = os.path.join(world.store, "hooks")
    os.mkdir(hooks)
    set_settings(world.store, steps={"example.notify": {
        "executable": NOTIFY, "after": "verify", "with": {"directory": hooks}, "writable": [hooks]}})
    world.must("steps", "trust", "example.notify", "-q")


def rolled_forward(world):
    install("plain-1.0.0")(world)
    world.must("apply", "-q", world.manifest("plain-2.0.0"))


def unreadable(name):
    """Returns a function that writes a file that SQLite cannot open, with sidecars."""
    def write_files(world):
        for suffix, content in (("", b"not a database,  " * 900), ("-journal", b"of another file" * 60), ("-wal", b"left" * 99)):
            with open(os.path.join(world.store, name + suffix), "wb") as out:
                out.write(content)
    return write_files


NOTES = ["INSERT INTO note(text) VALUES('rye'), ('bread')"]
MINE = ["INSERT INTO food VALUES(100, 'mine', 1), (101, 'also', 1), (5, 'my five', 1) ON CONFLICT DO UPDATE SET "
        "name = excluded.name, editable = 1", "UPDATE food SET name = 'scribbled' WHERE id = 1"]
FOOD = "food.db: SELECT DISTINCT release FROM food"
PANTRY = "pantry.db: SELECT id, name FROM food WHERE id IN (1, 5, 6, 100, 101)"


def pantry(version, first):
    return [(1, first), (5, "my five"), (6, f"{version} 6"), (100, "mine"), (101, "also")]


def shared(wal, records=False):
    """With `records`, an app has asked for changed rows, which the update then records."""
    def begin(world):
        with_rows("shared-1.0.0", "pantry.db", *MINE, wal=wal)(world)
        if records:
            os.mkdir(os.path.join(world.store, ".moult/changes"))
    return Flow(
        "shared" + mode(wal) + (", changes recorded" if records else ""), begin, ["apply", "{shared-2.0.0}"], {
            "version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)]),
            PANTRY: (pantry("1.0.0", "scribbled"), pantry("2.0.0", "2.0.0 1")),
            "pantry.db: SELECT release FROM moult_release": ([("1.0.0",)], [("2.0.0",)])})


# The rows that an app inserts after a crash into each of these tables that exists; `{}` is replaced by a number.
BETWEEN = {
    "note": [{"id": 9000, "text": "after the crash {}"}],
    "food": [{"id": 9000, "name": "after the crash {}", "editable": 1}, {"id": 9010, "name": "not selected {}", "editable": 0}],
    "favorite": [{"food": 9000, "stars": 5}],
}


def write_between(world):
    """Runs an app twice on each writable database: the first run ends normally, the second is killed. Returns the rows
    that they wrote."""
    written = []
    for name in sorted(os.listdir(world.store)):
        path = os.path.join(world.store, name)
        if not name.endswith(".db") or os.path.islink(path) or rows.read(path) is None:
            continue
        for number in (1, 2):
            app = sqlite3.connect(path)
            tables = [table for table, in app.execute("SELECT name FROM sqlite_schema WHERE type = 'table'") if table in BETWEEN]
            app.close()
            found = [(table, {column: value + number if column in ("id", "food") else
                              value.format(number) if isinstance(value, str) else value for column, value in row.items()})
                     for table in tables for row in BETWEEN[table]]
            write(path, *(f"INSERT INTO {table}({', '.join(row)}) VALUES({', '.join(map(repr, row.values()))})"
                          for table, row in found), killed=number == 2)
            written += [rows.row(table, row.keys(), row.values()) for table, row in found]
    return written


def mode(wal):
    return ", WAL" if wal else ""


# An app's pantry: rows that the release selects, rows that it does not select, and a table that is not in the release.
PANTRY_OF_APP = [
    "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT NOT NULL, editable INTEGER NOT NULL DEFAULT 0)",
    "INSERT INTO food VALUES(100, 'mine', 1), (5, 'my five', 1), (200, 'not selected', 0), (1, 'my one', 0)",
    "CREATE TABLE shop(name TEXT)", "INSERT INTO shop VALUES('corner')"]
OF_APP = [(1, "my one"), (5, "my five"), (100, "mine"), (200, "not selected")]
FOODS = "pantry.db: SELECT id, name FROM food WHERE id IN (1, 5, 6, 100, 200, 300)"
FOREIGN = ("pantry", "foreign", "", ...)


def over_file(kind, wal):
    """Returns the flow of a first install over an app's file, which a shared database replaces in place, and a link by a rename."""
    taken = [(1, "1.0.0 1"), (5, "my five"), (6, "1.0.0 6"), (100, "mine")]
    return Flow(
        f"first install over a file, {'reference' if kind == 'sealed' else kind}" + mode(wal),
        found("pantry.db", *PANTRY_OF_APP, wal=wal), ["apply", f"{{{kind}-1.0.0}}"], {
            "version": (None, "1.0.0"), "kept": ([], [FOREIGN]),
            FOODS: (OF_APP, taken if kind == "shared" else [(1, "1.0.0 1"), (5, "1.0.0 5"), (6, "1.0.0 6")])}, rows=5)


def restored_file(wal):
    """Returns the flow of restoring a file from before moult, after an app has written to the database of the release."""
    begin = then(found("pantry.db", *PANTRY_OF_APP, wal=wal), ["apply", "-q", "{shared-1.0.0}"],
                 writes("pantry.db", "INSERT INTO food VALUES(300, 'later', 0)", wal=wal))
    return Flow(
        "restore of a file from before moult" + mode(wal), begin, ["quarantine", "--restore", "pantry"], {
            "version": ("1.0.0",) * 2, "kept": ([FOREIGN], [FOREIGN, ("pantry", "restored", "1.0.0", ...)]), FOODS: (None, OF_APP)},
        # The restored content is from no release.
        repeats=False, rows=6, sound=False)


def taken(kind, wal):
    """Returns the flow of an update that takes over the user's database, with the operator's permission."""
    kept = [("user", "taken-over", "1.0.0", {"note": 2} if kind == "shared" else ...)]
    return Flow(
        f"take-over, user to {kind}" + mode(wal), with_rows(f"taken-{kind}-1.0.0", "user.db", *NOTES, wal=wal),
        ["apply", f"{{taken-{kind}-2.0.0}}", "--take-over", "user"], {
            "version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)]), "kept": ([], kept),
            "user.db: SELECT text FROM note": ([("rye",), ("bread",)], [])}, rows=2)


LEFT = [*MINE, "INSERT INTO favorite VALUES(7, 5), (8, 4)", "CREATE TABLE shop(name TEXT)", "INSERT INTO shop VALUES('corner')"]
LEFT_BEHIND = ("pantry", "replaced", "1.0.0", {"favorite": 2, "food": 1, "shop": 1})
FAVORITES = "pantry.db: SELECT food FROM favorite ORDER BY 1"


def left(wal):
    """Returns the flow of an update that leaves rows of the app behind: the release stops preserving a table, and no entry
    selected the other rows."""
    return Flow(
        "rows left behind" + mode(wal), with_rows("left-1.0.0", "pantry.db", *LEFT, wal=wal),
        ["apply", "{left-2.0.0}", "--accept-unpreserved"], {
            "version": ("1.0.0", "2.0.0"), "kept": ([], [LEFT_BEHIND]), FAVORITES: ([(7,), (8,)], []),
            PANTRY: (pantry("1.0.0", "scribbled"), pantry("2.0.0", "2.0.0 1"))}, rows=7)


def lossy(wal):
    """Returns the flow of a migration that changes one value and drops a column."""
    moods = ["INSERT INTO note(text, mood) VALUES('rye', 'good'), ('bread', 'bad')"]
    return Flow(
        "migration that changes values" + mode(wal), with_rows("lossy-1.0.0", "user.db", *moods, wal=wal),
        ["apply", "{lossy-2.0.0}"], {
            "version": ("1.0.0", "2.0.0"), "kept": ([], [("user", "migrated", "1.0.0", {"note": 2})]),
            "user.db: SELECT * FROM note": ([(1, "rye", "good"), (2, "bread", "bad")], [(1, "RYE"), (2, "bread")])}, rows=2)


def restored_user(wal):
    """Returns the flow of restoring the user's database from quarantine, after a user has written to the new database."""
    begin = then(with_rows("plain-1.0.0", "user.db", *NOTES, wal=wal), ["reset", "-q", "user", "--set-user-data-aside"],
                 writes("user.db", "INSERT INTO note(text) VALUES('later')", wal=wal))
    reset = ("user", "reset", "1.0.0", None)
    return Flow(
        "restore, user" + mode(wal), begin, ["quarantine", "--restore", "user"], {
            "version": ("1.0.0",) * 2, "kept": (None, None),
            "user.db: SELECT text FROM note": ([("later",)], [("rye",), ("bread",)])}, repeats=False, rows=3)


def restored_pantry(wal):
    """Returns the flow of restoring a shared database, with the rows that an update left behind, from quarantine."""
    begin = then(left(wal).begin, ["apply", "-q", "{left-2.0.0}", "--accept-unpreserved"],
                 writes("pantry.db", "INSERT INTO food VALUES(300, 'later', 1)", wal=wal))
    return Flow(
        "restore, shared" + mode(wal), begin, ["quarantine", "--restore", "pantry"], {
            "version": ("2.0.0",) * 2, FAVORITES: ([], [(7,), (8,)])}, repeats=False, rows=8,
        # The restored content is from an earlier release than the installed one.
        sound=False)


def restored_table(table, wal):
    """Returns the flow of restoring the rows of one table from quarantine, into a database that an app has written to since."""
    begin = then(left(wal).begin, ["apply", "-q", "{left-2.0.0}", "--accept-unpreserved"],
                 writes("pantry.db", "INSERT INTO favorite VALUES(9, 3)", wal=wal))
    old = pantry("2.0.0", "2.0.0 1")
    return Flow(
        f"restore, table {table}" + mode(wal), begin, ["quarantine", "--restore", "pantry", "--table", table], {
            "version": ("2.0.0",) * 2, "kept": ([LEFT_BEHIND],) * 2,
            FAVORITES: ([(9,)], [(7,), (8,), (9,)] if table == "favorite" else [(9,)]), PANTRY: (old, old)}, rows=8)


def several(wal):
    """Returns the flow of an update that replaces two databases and migrates one."""
    begin = then(install("several-1.0.0"), writes("pantry.db", *MINE, wal=wal),
                 writes("larder.db", "INSERT INTO food VALUES(110, 'larder', 1), (111, 'left', 0)", wal=wal),
                 writes("user.db", "INSERT INTO note(text, mood) VALUES('rye', 'good')", wal=wal),
                 writes("diary.db", "INSERT INTO note(text) VALUES('monday')", wal=wal))
    kept = [("larder", "replaced", "1.0.0", {"food": 1}), ("pantry", "replaced", "1.0.0", {"food": 1}),
            ("user", "migrated", "1.0.0", {"note": 1})]
    return Flow(
        "several databases" + mode(wal), begin, ["apply", "{several-2.0.0}"], {
            "version": ("1.0.0", "2.0.0"), "kept": ([], kept), PANTRY: (pantry("1.0.0", "scribbled"), pantry("2.0.0", "2.0.0 1")),
            "larder.db: SELECT id FROM food WHERE id > 100 ORDER BY id": ([(110,), (111,)], [(110,)]),
            "diary.db: SELECT text FROM note": ([("monday",)],) * 2},
        rows=8)


UPDATE = {"version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)]),
          "user.db: SELECT text FROM note": ([("rye",), ("bread",)],) * 2}

FLOWS = [
    Flow("first install", lambda world: None, ["apply", "{plain-1.0.0}"],
         {"version": (None, "1.0.0"), FOOD: (None, [("1.0.0",)]), "user.db: SELECT count(*) FROM note": (None, [(0,)])}, creates=("user.db",)),
    Flow("update", with_rows("plain-1.0.0", "user.db", *NOTES), ["apply", "{plain-2.0.0}"], UPDATE),
    Flow("rollback", rolled_forward, ["rollback", "--reason", "proof"],
         {"version": ("2.0.0", "1.0.0"), FOOD: ([("2.0.0",)], [("1.0.0",)])}, 
         again=[["unhold", "--all"], ["apply", "{plain-2.0.0}"], ["rollback", "--reason", "proof"]]),
    *(shared(wal, records) for records in (False, True) for wal in (False, True)),
    Flow("user migration", with_rows("migration-1.0.0", "user.db", *NOTES), ["apply", "{migration-2.0.0}"], {
        "version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)]),
        "user.db: SELECT text FROM note": ([("rye",), ("bread",)],) * 2,
        "user.db: PRAGMA user_version": ([(1,)], [(2,)])}),
    Flow("patch", install("patch-1.0.0"), ["apply", "{patch-2.0.0}"],
         {"version": ("1.0.0", "2.0.0"), "food.db: SELECT release FROM food WHERE id = 7": ([("1.0.0",)], [("2.0.0",)]),
          "same.db: SELECT count(*) FROM same": ([(1200,)],) * 2}),
    Flow("external step", telling, ["apply", "{plain-2.0.0}"],
         {"version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)])}),
    Flow("feed fetch", following("one", "plain-1.0.0"), ["apply"],
         {"version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)])}, varies=True),
    Flow("chain of two releases", following("chain", "chain-1.0.0"), ["apply"],
         {"version": ("1.0.0", "3.0.0"), FOOD: ([("1.0.0",)], [("3.0.0",)])},
         between=[["apply", "--feed", "{feed half}"]], varies=True),
    Flow("cache reset", then(install("cache-1.0.0"), unreadable("thumbs.db")), ["reset", "thumbs"],
         {"version": ("1.0.0",) * 2, "thumbs.db: SELECT count(*) FROM thumb": (None, [(0,)])}, readable=False,
         repeats=False),
    Flow("first install over a file that SQLite cannot open", unreadable("pantry.db"), ["apply", "{shared-1.0.0}"],
         {"version": (None, "1.0.0"), "kept": ([], [FOREIGN]), FOODS: (None, [(1, "1.0.0 1"), (5, "1.0.0 5"), (6, "1.0.0 6")])},
         readable=False),
    *(over_file(kind, wal) for kind in ("shared", "sealed") for wal in (False, True)),
    *(taken(kind, wal) for kind in ("shared", "reference") for wal in (False, True)),
    *(left(wal) for wal in (False, True)),
    *(lossy(wal) for wal in (False, True)),
    *(restored_user(wal) for wal in (False, True)),
    *(restored_pantry(wal) for wal in (False, True)),
    *(restored_table(table, wal) for table in ("favorite", "food") for wal in (False, True)),
    *(several(wal) for wal in (False, True)),
    *(restored_file(wal) for wal in (False, True)),
]
