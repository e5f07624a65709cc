"""What is done to a store while it is struck. To add a flow, add an entry to `FLOWS`.

Each has a way to its beginning, the command that is struck, what a person would look for before and after it, and the
command that must succeed afterwards wherever the strike left the store.
"""
import json, os, sqlite3
from dataclasses import dataclass
from typing import Callable

import releases

NOTIFY = os.path.join(os.path.dirname(__file__), "../../Examples/steps/notify")


@dataclass(frozen=True)
class Flow:
    name: str
    # Brings a new, empty store to where the flow begins.
    begin: Callable
    # The words after `moult`; `{name}` is the manifest of that release, `{feed name}` the address of that feed.
    command: list
    # "version", or "FILE: SQL" with its rows, before and after.
    looks: dict
    # The commands that must succeed afterwards and lead to the end of the flow; None for the command itself.
    again: list = None
    # Whether the databases can be read at the very moment, too: not if what is replaced is broken.
    readable: bool = True
    # The commands that lead from the beginning to places where the flow may stop in between.
    between: list = ()
    # A network brings bytes in pieces as it likes, so the last calls of one run may not come about in another.
    varies: bool = False


def install(name):
    def begin(world):
        world.must("apply", "-q", world.manifest(name))
    return begin


def with_rows(name, file, *statements, wal=False):
    """A release, and an app that has written to one of its databases and died: in WAL mode its rows are in the WAL."""
    def begin(world):
        install(name)(world)
        path = os.path.join(world.store, file)
        app = sqlite3.connect(path)
        if wal:
            app.execute("PRAGMA journal_mode = WAL")
            app.execute("PRAGMA wal_autocheckpoint = 0")
        for statement in statements:
            app.execute(statement)
        app.commit()
        left = {one: open(one, "rb").read() for one in (path, path + "-wal") if wal}
        app.close()
        for one, content in left.items():
            with open(one, "wb") as out:
                out.write(content)
    return begin


def settle_on(world, **settings):
    """Writes settings into a store's moult.json."""
    path = os.path.join(world.store, "moult.json")
    with open(path) as file:
        known = json.load(file)
    with open(path, "w") as out:
        json.dump(known | settings, out)


def following(feed, name):
    """A release, and the address and key of a feed that has a newer one."""
    def begin(world):
        install(name)(world)
        releases = world.tools.releases
        settle_on(world, feed={"url": releases.feeds[feed]}, keys={"trusted": [{"key": releases.key}]})
    return begin


def telling(world):
    """A release, and a step that somebody else wrote: it leaves a message for each update."""
    install("plain-1.0.0")(world)
    hooks = os.path.join(world.store, "hooks")
    os.mkdir(hooks)
    settle_on(world, steps={"example.notify": {
        "executable": NOTIFY, "after": "verify", "with": {"directory": hooks}, "writable": [hooks]}})
    world.must("steps", "trust", "example.notify", "-q")


def rolled_forward(world):
    install("plain-1.0.0")(world)
    world.must("apply", "-q", world.manifest("plain-2.0.0"))


def broken(world):
    install("cache-1.0.0")(world)
    for suffix, content in (("", b"no database, " * 900), ("-journal", b"of another file" * 60), ("-wal", b"left" * 99)):
        with open(os.path.join(world.store, "thumbs.db" + suffix), "wb") as out:
            out.write(content)


NOTES = ["INSERT INTO note(text) VALUES('rye'), ('bread')"]
MINE = ["INSERT INTO food VALUES(100, 'mine', 1), (101, 'also', 1), (5, 'my five', 1) ON CONFLICT DO UPDATE SET "
        "name = excluded.name, editable = 1", "UPDATE food SET name = 'scribbled' WHERE id = 1"]
FOOD = "food.db: SELECT DISTINCT release FROM food"
PANTRY = "pantry.db: SELECT id, name FROM food WHERE id IN (1, 5, 6, 100, 101)"


def pantry(version, first):
    return [(1, first), (5, "my five"), (6, f"{version} 6"), (100, "mine"), (101, "also")]


def shared(way, wal):
    return Flow(
        f"shared by {way}" + (", WAL" if wal else ""), with_rows(f"{way}-1.0.0", "pantry.db", *MINE, wal=wal),
        ["apply", f"{{{way}-2.0.0}}"], {
            "version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)]),
            PANTRY: (pantry("1.0.0", "scribbled"), pantry("2.0.0", "2.0.0 1")),
            "pantry.db: SELECT release FROM moult_release": ([("1.0.0",)], [("2.0.0",)])})


UPDATE = {"version": ("1.0.0", "2.0.0"), FOOD: ([("1.0.0",)], [("2.0.0",)]),
          "user.db: SELECT text FROM note": ([("rye",), ("bread",)],) * 2}

FLOWS = [
    Flow("first install", lambda world: None, ["apply", "{plain-1.0.0}"],
         {"version": (None, "1.0.0"), FOOD: (None, [("1.0.0",)]), "user.db: SELECT count(*) FROM note": (None, [(0,)])}),
    Flow("update", with_rows("plain-1.0.0", "user.db", *NOTES), ["apply", "{plain-2.0.0}"], UPDATE),
    Flow("update, tar.zst", with_rows("plain-1.0.0", "user.db", *NOTES), ["apply", "{plain-2.0.0+tar}"], UPDATE),
    Flow("rollback", rolled_forward, ["rollback", "--reason", "proof"],
         {"version": ("2.0.0", "1.0.0"), FOOD: ([("2.0.0",)], [("1.0.0",)])}, 
         again=[["unhold"], ["apply", "{plain-2.0.0}"], ["rollback", "--reason", "proof"]]),
    shared("exchange", wal=False),
    shared("exchange", wal=True),
    shared("live", wal=False),
    shared("live", wal=True),
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
    Flow("cache reset", broken, ["reset", "thumbs"],
         {"version": ("1.0.0",) * 2, "thumbs.db: SELECT count(*) FROM thumb": (None, [(0,)])}, readable=False),
]
