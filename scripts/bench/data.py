"""Makes databases, and releases of them."""
import os, random, sqlite3

from harness import releases
from measure import moult, shell, work


def database(path, megabytes):
    """Makes a database of names, groups, numbers and text, with two indexes."""
    generator = random.Random(7)
    words = ["".join(generator.choices("abcdefghijklmnoprstuvy", k=generator.randint(3, 9))) for _ in range(4000)]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("""PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
        CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT NOT NULL, part TEXT, kcal REAL, note TEXT);""")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO food VALUES(?, ?, ?, ?, ?)", (
        (number, " ".join(generator.choices(words, k=3)), words[number % 60], generator.randint(1, 9000) / 10,
         " ".join(generator.choices(words, k=12))) for number in range(megabytes * 5000)))
    connection.execute("COMMIT")
    connection.executescript("CREATE INDEX name ON food(name); CREATE INDEX part ON food(part, kcal);")
    connection.close()


def larger(path, source, times):
    """Makes a larger database from the rows of another database, with different numbers and words. This takes a sixth of the
    time of `database`."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(f"""PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; ATTACH '{source}' AS source;
        CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT NOT NULL, part TEXT, kcal REAL, note TEXT);""")
    connection.execute("BEGIN")
    rows = connection.execute("SELECT count(*) FROM source.food").fetchone()[0]
    for number in range(times):
        connection.execute("INSERT INTO food SELECT id + ?1, ?2 || name, part, kcal + ?1, substr(note, ?3 + 1) || substr(note, 1, ?3) "
                           "FROM source.food ORDER BY id", (number * rows, chr(97 + number % 26), number * 7))
    connection.execute("COMMIT")
    connection.executescript("CREATE INDEX name ON food(name); CREATE INDEX part ON food(part, kcal);")
    connection.close()


def shared_releases(directory, count):
    """Packs two releases of many shared databases of 1 MB, in which every row differs; returns the paths of their manifests."""
    os.makedirs(f"{work}/{directory}")
    manifests = []
    for number in (1, 2):
        databases = {}
        for index in range(count):
            file = f"{number}-{index}.db"
            connection = sqlite3.connect(f"{work}/{directory}/{file}", isolation_level=None)
            connection.executescript(f"""PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
                CREATE TABLE item{index}(id INTEGER PRIMARY KEY, text, own DEFAULT 0);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9500)
                INSERT INTO item{index} SELECT i, printf('row %d of release {number}%80c', i, 'x'), 0 FROM n;""")
            connection.close()
            databases[f"db{index}"] = {"kind": "shared", "source": file, "attach": {"group": f"g{index // 9}"},
                                       "preserve": [{"table": f"item{index}", "where": "own = 1"}]}
        draft = releases.draft("org.example.bench", f"{number}.0.0", number, databases)
        manifests.append(releases.pack(moult, f"{work}/{directory}", draft, "out", level=1, name=f"draft-{number}.json"))
    return manifests


def evolve(path, share):
    """Changes one of every `share` rows in place."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(f"""PRAGMA synchronous=OFF; BEGIN;
        UPDATE food SET kcal = kcal + 1, note = note || ' again' WHERE id % {share} = 3; COMMIT;""")
    connection.close()


def pack(directory, version, sequence, level, arguments="", out="out", **fields):
    """Packs `food.db` of a directory; returns the path of the manifest, relative to the working directory."""
    draft = releases.draft("org.example.bench", version, sequence, {"food": {"kind": "reference", "source": "food.db"} | fields})
    # The options name files relative to the working directory.
    options = [os.path.abspath(f"{work}/{word}") if os.path.exists(f"{work}/{word}") else word for word in arguments.split()]
    return os.path.relpath(releases.pack(moult, f"{work}/{directory}", draft, out, *options, level=level, name=f"draft-{version}.json"), work)


def make_empty(options=""):
    """Returns the commands that make a new store, and empty directories for the other programs."""
    return ("chmod -R u+w store new live 2>/dev/null || :; rm -rf store new live; mkdir new live; "
            f"{moult} init -q store --product org.example.bench {options}")


EMPTY = make_empty()


def script(archive, sums, check="quick_check"):
    """Returns a script that a careful user could run to replace the database without moult."""
    return (f"{archive} && (cd new && sha256sum --quiet -c ../{sums}) && sqlite3 new/food.db 'pragma {check}' "
            "&& sync new/food.db new && mv -T new/food.db live/food.db && sync live")


SCRIPT = "bsdtar, sha256sum, quick_check, mv"
