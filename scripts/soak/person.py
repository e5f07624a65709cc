"""A reader or a writer. It ends when its standard input ends, and then writes its reads, writes and errors to its log."""
import json, os, random, select, sqlite3, subprocess, sys, time

moult, store, log, number, what, how = sys.argv[1:]
said = {"reads": 0, "full": 0, "faults": [], "rows": {}, "file": how}
pantry, mark = os.path.join(store, "pantry.db"), os.path.join(os.path.dirname(store), "filler.mark")
# Every shipped row and `moult_release` have the number of the release: two different numbers would be a mix of releases.
WHOLE = """SELECT group_concat(DISTINCT r) FROM (SELECT release r FROM food WHERE mine = 0
           UNION ALL SELECT CAST(release AS INTEGER) FROM moult_release)"""
SET = WHOLE.replace("FROM food", "FROM pantry.food").replace("moult_release", "pantry.moult_release")
SEALED = "SELECT CASE WHEN (SELECT count(DISTINCT release) FROM food.food) = 1 AND (SELECT min(release) FROM food.food) = (SELECT release FROM codes.codes) THEN 1 ELSE 'mix' END"


def ended():
    return bool(select.select([sys.stdin], [], [], 0)[0])


def is_full(error):
    """Returns whether the error may come from a full disk, and is therefore expected."""
    text = str(getattr(error, "stderr", None) or error)
    return any(word in text for word in ("disk is full", "disk I/O", "No space", "unable to open"))


def connect(path):
    return sqlite3.connect(path, timeout=10, isolation_level=None)


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]


def reader():
    if how == "connection":
        kept = connect(pantry)
        return lambda: kept.execute(WHOLE).fetchone()[0]
    if how == "query":
        def query():
            connection = connect(pantry)
            try:
                return connection.execute(WHOLE).fetchone()[0]
            finally:
                connection.close()
        return query
    if how == "shell":
        return lambda: output("sqlite3", "-cmd", ".timeout 10000", pantry, WHOLE)
    if how == "moult":
        return lambda: output(moult, "sql", "--store", store, random.choice([SET, SEALED]))

    def path():
        connection = sqlite3.connect(f"file:{store}/food.db?mode=ro", uri=True)
        try:
            return connection.execute("SELECT group_concat(DISTINCT release) FROM food").fetchone()[0]
        finally:
            connection.close()
    return path


def attempt(body):
    was_full = os.path.exists(mark)
    try:
        return body()
    except (sqlite3.Error, subprocess.CalledProcessError) as error:
        if is_full(error) and (was_full or os.path.exists(mark)):
            said["full"] += 1
        else:
            said["faults"].append(f"{what} {how}: {error!r} {getattr(error, 'stderr', '')}")


def read():
    look = reader()
    while not ended():
        seen = attempt(look)
        if seen is not None and not str(seen).isdigit():
            said["faults"].append(f"{how} saw {seen}")
        said["reads"] += 1
        time.sleep(0.02)


def write():
    path, count = os.path.join(store, how), 0
    connection = connect(path)
    # Adds a row, or gives one of its own rows a new value.
    sql = {"pantry.db": "INSERT OR REPLACE INTO food VALUES(?, 0, ?, 1)", "user.db": "INSERT OR REPLACE INTO note VALUES(?, ?)"}[how]
    while not ended():
        count += 1
        slot = 1_000_000 * int(number) + count % 300
        rows = said["rows"].setdefault(slot, [None])

        def commit():
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(sql, (slot, count))
            # From here on, the row may be committed, whatever SQLite reports.
            rows.append(count)
            connection.execute("COMMIT")
            return True
        if attempt(commit):
            rows[:] = [count]
        elif connection.in_transaction:
            connection.execute("ROLLBACK")
        time.sleep(0.02)
    connection.close()


(read if what == "read" else write)()
with open(log, "w") as out:
    json.dump(said, out)
