"""The releases that the flows install: most are packed by moult, one is made with tar and zstd."""
import hashlib, json, os, random

from harness.releases import database, draft, pack, run, serve, write
from harness.rows import read

PRODUCT = "org.example.proof"


def reference(name, version, kibibytes=8):
    """Returns the SQL and the rows of a table in which every row has the version of its release, with random bytes, so that the
    database does not compress to almost nothing."""
    noise = random.Random(f"{name} {version}")
    rows = [(i, version, noise.randbytes(900)) for i in range(kibibytes)]
    return f"CREATE TABLE {name}(id INTEGER PRIMARY KEY, release TEXT, more BLOB);", [
        (f"INSERT INTO {name} VALUES(?, ?, ?)", rows)]


def edition(version):
    """Returns the SQL and the rows of a table in which one row differs between releases."""
    script, rows = reference("food", "any", 1600)
    return script, rows + [("UPDATE food SET release = ? WHERE id = 7", [(version,)])]


PANTRY = "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT NOT NULL, editable INTEGER NOT NULL DEFAULT 0);"
NOTE = {
    1: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 1;",
    2: """CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0);
          PRAGMA user_version = 2;""",
}
TO_TWO = "ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0;\nPRAGMA user_version = 2;\n"
# The user's notes, with a column that the second release drops.
MOOD = {
    1: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL, mood TEXT); PRAGMA user_version = 1;",
    2: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 2;",
}
WITHOUT_MOOD = """UPDATE note SET text = upper(text) WHERE text = 'rye';
ALTER TABLE note DROP COLUMN mood;
PRAGMA user_version = 2;
"""
FAVORITE = "CREATE TABLE favorite(food INTEGER PRIMARY KEY, stars INTEGER NOT NULL);"
THUMBS = "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB);"


def shelf(version):
    """Returns the SQL and the rows of a pantry that also has a table into which only apps insert rows."""
    script, rows = pantry(version)
    return script + FAVORITE, rows


def pantry(version):
    return PANTRY, [("INSERT INTO food VALUES(?, ?, 0)", [(i, f"{version} {i}") for i in range(1, 80)])]


class Releases:
    def __init__(self, moult, directory):
        self.moult, self.directory = moult, directory
        # Every row that a release shipped; all other rows come from an app or a user.
        self.shipped = set()
        os.makedirs(directory)
        # The user database, and two read-only databases. The second release has a different database
        # in place of the other one.
        self.pair("plain", lambda v: {
            "food": ("reference", reference("food", v, 1600), {}),
            "codes" if v == "1.0.0" else "units": ("reference", reference("codes", v), {}),
            "user": ("user", (NOTE[1], ()), {}),
        })
        preserve = [{"table": "food", "where": "editable = 1", "onConflict": "keep-user"}]
        self.pair("shared", lambda v: {
            "food": ("reference", reference("food", v), {}),
            "pantry": ("shared", pantry(v), {"preserve": preserve}),
        })
        self.pair("migration", lambda v: {
            "food": ("reference", reference("food", v), {}),
            "user": ("user", (NOTE[1 if v == "1.0.0" else 2], ()),
                     {} if v == "1.0.0" else {"migrations": ["migrations/0002-done.sql"]}),
        }, {"migrations/0002-done.sql": TO_TWO})
        self.pair("lossy", lambda v: {
            "food": ("reference", reference("food", v), {}),
            "user": ("user", (MOOD[1 if v == "1.0.0" else 2], ()),
                     {} if v == "1.0.0" else {"migrations": ["migrations/0002-mood.sql"]}),
        }, {"migrations/0002-mood.sql": WITHOUT_MOOD})
        # The second release no longer preserves the app's favorites.
        self.pair("left", lambda v: {
            "food": ("reference", reference("food", v), {}),
            "pantry": ("shared", shelf(v), {"preserve": preserve + ([{"table": "favorite"}] if v == "1.0.0" else [])}),
        })
        for kind in ("shared", "reference"):
            self.pair(f"taken-{kind}", lambda v: {
                "food": ("reference", reference("food", v), {}),
                "user": ("user", (NOTE[1], ()), {}) if v == "1.0.0"
                        else (kind, (NOTE[1], ()), {"preserve": []} if kind == "shared" else {}),
            })
        self.pair("sealed", lambda v: {"food": ("reference", reference("food", v), {}), "pantry": ("reference", pantry(v), {})})
        # All of these kinds of changes in one release.
        self.pair("several", lambda v: {
            "food": ("reference", reference("food", v), {}),
            "pantry": ("shared", pantry(v), {"preserve": preserve}),
            "larder": ("shared", pantry(v), {"preserve": preserve}),
            "user": ("user", (MOOD[1 if v == "1.0.0" else 2], ()),
                     {} if v == "1.0.0" else {"migrations": ["migrations/0002-mood.sql"]}),
            "diary": ("user", (NOTE[1], ()), {}),
        }, {"migrations/0002-mood.sql": WITHOUT_MOOD})
        self.pair("cache", lambda v: {
            "food": ("reference", reference("food", v), {}), "thumbs": ("cache", (THUMBS, ()), {}),
        })
        # Few rows differ, and one database is unchanged: the release is installed by its patch.
        self.pair("patch", lambda v: {
            "food": ("reference", edition(v), {}), "same": ("reference", reference("same", "any", 1200), {}),
        }, second=["--delta-from", self.manifest("patch-1.0.0")])
        os.remove(os.path.join(self.directory, "patch-2.0.0", "proof-2.0.0.tar.zst"))
        # The files that publishers publish for a release: its bundle and a patch.
        self.pair("published", lambda v: {"food": ("reference", edition(v), {})},
                  second=["--delta-from", self.manifest("published-1.0.0")])
        self.pair("chain", lambda v: {"food": ("reference", reference("food", v, 64), {})})
        self.pack("chain-3.0.0", "3.0.0", 3, {"food": ("reference", reference("food", "3.0.0", 64), {})}, {},
                  requires={"from": ">=2"})
        run(moult, "keygen", "-q", "--no-password", os.path.join(directory, "proof"))
        self.feeds = {name: self.feed(name, members) for name, members in {
            "one": ["plain-2.0.0"], "half": ["chain-1.0.0", "chain-2.0.0"],
            "chain": ["chain-1.0.0", "chain-2.0.0", "chain-3.0.0"]}.items()}

    def manifest(self, name):
        return os.path.join(self.directory, name, f"proof-{name.rsplit('-', 1)[1].split('+')[0]}.json")

    def feed(self, name, members):
        """Publishes signed releases to a directory that a web server serves; returns its address."""
        public = os.path.join(self.directory, f"feed-{name}")
        for member in members:
            run(self.moult, "publish", "-q", public, self.manifest(member), "--key", os.path.join(self.directory, "proof.key"))
        return serve(public)

    @property
    def key(self):
        with open(os.path.join(self.directory, "proof.pub")) as file:
            return file.read().splitlines()[1]

    def pair(self, name, databases, files={}, second=()):
        self.pack(f"{name}-1.0.0", "1.0.0", 1, databases("1.0.0"), files)
        self.pack(f"{name}-2.0.0", "2.0.0", 2, databases("2.0.0"), files, second)

    def pack(self, name, version, sequence, databases, files, options=(), **top):
        work = os.path.join(self.directory, f"{name}.draft")
        os.makedirs(work)
        write(work, files)
        entries = {}
        for key, (kind, (script, rows), more) in databases.items():
            database(os.path.join(work, f"{key}.db"), script, rows)
            self.shipped.update(read(os.path.join(work, f"{key}.db"))[0])
            entries[key] = {"kind": kind, "source": f"{key}.db", **more}
        pack(self.moult, work, draft(PRODUCT, version, sequence, entries, **top), os.path.join(self.directory, name), *options)
