"""Reads the contents of a store without using moult, and without changing the store."""
import collections, hashlib, json, os, re, sqlite3, stat

from harness import rows
from harness.files import SIDECARS, digest, once, opened

# The names of transactions, with which the names of sets in quarantine begin.
UPDATE = re.compile(r"\d{14}-[0-9a-f]{8}")


def sealed(store):
    """Returns the digest of each read-only database, by the path that apps use."""
    found = {}
    for name in names(store):
        path = os.path.join(store, name)
        if os.path.islink(path):
            found[name] = digest(path)
    return found


def writable(store):
    """Returns the content of each writable database as SQLite reads it, with its sidecars."""
    return {name: found for name, (found, _) in contents(store).items()}


def modes(store):
    return {name: mode for name, (_, mode) in contents(store).items()}


def contents(store):
    return {name: content(os.path.join(store, name)) for name in names(store)
            if not os.path.islink(os.path.join(store, name))}


def names(store):
    return sorted(name for name in os.listdir(store) if name.endswith(".db"))


def columns(table):
    return "release, sequence, digest" if table == b"moult_release" else "*"


@once
def content(path, first_of_app=None):
    """Returns the health and a digest of schema and rows, or digests of the file and its sidecars if it is not a database; also the
    journal mode. Rows whose first value is a number from `first_of_app` on are left out."""
    with opened(path) as connection:
        try:
            connection.text_factory = bytes
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            health = connection.execute("PRAGMA integrity_check").fetchall()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            # The marker has the ID of the transaction, which no two runs share.
            tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name != 'moult_transaction' "
                                        "ORDER BY name").fetchall()
            rows = [(sql, sorted((row for row in connection.execute(f"SELECT {columns(name)} FROM \"{name.decode()}\"")
                                  if not (first_of_app and isinstance(row[0], int) and row[0] >= first_of_app)), key=repr))
                    for name, sql in tables]
        except sqlite3.DatabaseError:
            return "no database: " + " ".join(digest(path + suffix) if os.path.isfile(path + suffix) else "-" for suffix in ("",) + SIDECARS), None
    return f"{health} {version} " + hashlib.sha256(repr(rows).encode()).hexdigest(), mode


def query(path, sql):
    """Returns rows of a database, read from a copy of the files at the path that apps use."""
    with opened(path) as connection:
        return connection.execute(sql).fetchall()


def version(store):
    """Returns the version in the manifest of the current generation; None if nothing is installed."""
    manifest = os.path.join(store, ".moult/current/manifest.json")
    if not os.path.lexists(os.path.join(store, ".moult/current")):
        return None
    return json.load(open(manifest))["version"]


def files(store):
    """Returns every name in the store with its kind and mode, without the sidecars of databases in WAL mode, which belong to
    the app."""
    found = collections.Counter()
    for directory, below, plain in os.walk(store):
        for name in below + plain:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, store)
            # The last feed is also known from the generations; an interrupted transfer waits to be resumed. Results of
            # checks are only cached to avoid repeating them. A verified file that got a second name, and so a new
            # ctime, is recorded regardless of the result of the update. The record of holds also exists without holds: see
            # `holds`. Without the record of changed rows, apps read everything again.
            if relative.startswith((".moult/feed", ".moult/downloads", ".moult/links.json", ".moult/checks.json",
                                    ".moult/holds.json", ".moult/attempt.json", ".moult/changes/")):
                continue
            if relative.endswith((".db-wal", ".db-shm")) and "/" not in relative or relative == ".moult/history.jsonl":
                continue
            facts = os.lstat(path)
            kind = "link to " + os.readlink(path) if stat.S_ISLNK(facts.st_mode) else oct(facts.st_mode)
            found[f"{UPDATE.sub('ID', relative)} {kind}"] += 1
    return found


def kept(store):
    """Returns each set in quarantine: its record without times, and the content of its database."""
    found = []
    for name in rows.quarantined(store):
        known = rows.record(store, name)
        if not isinstance(known, dict):
            found.append((UPDATE.sub("ID", name), rows.fault(store, name)))
            continue
        known.pop("time", None)
        # Recovery may make a set again, with the next number.
        known.pop("number", None)
        file = os.path.join(store, ".moult/quarantine", name, os.path.basename(known.get("path", "?")))
        known = UPDATE.sub("ID", json.dumps(known, sort_keys=True).replace(store, "STORE"))
        found.append((UPDATE.sub("ID", name), known, *(content(file) if os.path.isfile(file) else ["no file"])))
    return sorted(found)


def reasons(store):
    """Returns the databases in quarantine, each with the reason, the release, and by table the number of rows that are
    nowhere else."""
    records = [rows.record(store, name) for name in rows.quarantined(store) if not rows.fault(store, name)]
    return sorted((known["database"], known["reason"], known["release"], known.get("rows")) for known in records)


def settings(store):
    with open(os.path.join(store, "moult.json")) as file:
        parsed = json.loads(file.read().replace(store, "STORE"))
    return parsed | {"holds": holds(store)}


def holds(store):
    """Returns the releases on hold, with the reasons."""
    try:
        with open(os.path.join(store, ".moult/holds.json")) as file:
            return [(hold["release"], hold["reason"]) for hold in json.load(file)["holds"]]
    except FileNotFoundError:
        return []


def installed(store):
    """Returns the number of completed installations in the history, and the release of the last one."""
    try:
        lines = open(os.path.join(store, ".moult/history.jsonl"), errors="replace").read().splitlines()
    except FileNotFoundError:
        return 0, None
    entries = []
    for line in lines:
        try:
            entries.append(json.loads(line))
        except ValueError:
            pass  # a line that was torn by the strike
    through = [entry for entry in entries if entry["outcome"] in ("done", "finished")]
    return len(through), through[-1]["to"] if through else None


def everything(store):
    """Returns the complete contents of a store, to detect any change."""
    found = {}
    for directory, below, plain in os.walk(store):
        for name in below + plain + ["."]:
            path = os.path.join(directory, name)
            facts = os.lstat(path)
            content = digest(path) if stat.S_ISREG(facts.st_mode) else ""
            found[path] = (facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, content)
    return found


# What differs between two runs that leave the same: IDs, times, keys, signatures and digests of them.
VARYING = re.compile(rb"\d{14}-[0-9a-f]{8}|[A-Za-z0-9+/=]{40,}|\b[0-9a-f]{16,}\b|\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{8,}|\"(milliseconds|number|serial)\":\d+")
TEMPORARY = re.compile(r"(?<=moult-)\w{6}\b|(?<=feed\.json\.)[0-9a-f]{16}")


def fingerprint(directory):
    """Returns a digest of every name below a directory with its mode and content, which is equal if two runs leave the same:
    databases that differ between runs are compared by their rows."""
    found = []
    for above, below, plain in os.walk(directory):
        for name in below + plain:
            path = os.path.join(above, name)
            facts = os.lstat(path)
            relative = TEMPORARY.sub("NAME", UPDATE.sub("ID", os.path.relpath(path, directory)))
            text = os.readlink(path) if stat.S_ISLNK(facts.st_mode) else of_file(path, relative) if stat.S_ISREG(facts.st_mode) else ""
            found.append((relative, facts.st_mode, facts.st_nlink if stat.S_ISREG(facts.st_mode) else 0, text))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()


def of_file(path, relative):
    if path.endswith((*SIDECARS, "-shm")):
        return "sidecar" if os.path.getsize(path) else "empty"
    # Inodes and times, which save reading files again.
    if relative.endswith(("/links.json", "/checks.json", "/attempt.json")):
        return "record"
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"SQLite format 3\0") and "/generation" not in relative and "/unpacked/" not in relative:
        return content(path)
    if relative.endswith("/history.jsonl"):
        # The line of an update that failed names the call.
        data = b"\n".join(re.sub(rb'"(time|transaction|reason|milliseconds|parts)":("[^"]*"|\d+|\[[^]]*\]),?', b"", line) for line in data.splitlines())
    if relative.endswith("/seal.json"):
        data = re.sub(rb"\d+", b"", VARYING.sub(b"", data))
    if b"\0" not in data[:4096]:
        data = VARYING.sub(b"", data)
    return hashlib.sha256(data).hexdigest()


def is_over(journal):
    """Returns whether SQLite has ended the transaction of a journal by zeroing its header, although it could not remove the file. Sets
    in quarantine have other names in a state."""
    if not os.path.exists(journal):
        return False
    with open(journal, "rb") as file:
        return not any(file.read(28))


class State:
    """A store without an unfinished update."""

    def __init__(self, store, first_of_app=None):
        self.version, self.sealed = version(store), sealed(store)
        found = {name: content(os.path.join(store, name), first_of_app) for name in names(store) if not os.path.islink(os.path.join(store, name))}
        self.writable, self.modes = ({name: values[at] for name, values in found.items()} for at in (0, 1))
        self.files, self.settings = files(store), settings(store)
        for name in [name for name in self.files if name.split(" ")[0].endswith("-journal") and is_over(os.path.join(store, name.split(" ")[0]))]:
            del self.files[name]
        self.installed, self.last = installed(store)
        self.kept = kept(store)

    def key(self):
        """Returns a digest of everything that two equal states share."""
        found = {name: sorted(value.items()) if isinstance(value, dict) else value for name, value in vars(self).items()}
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def differences(self, other):
        found = [f"in quarantine, but not expected: {known}" for known in self.kept if known not in other.kept]
        found += [f"expected in quarantine: {known}" for known in other.kept if known not in self.kept]
        found += [f"{name} is {getattr(self, name)}, expected {getattr(other, name)}"
                 for name in ("version", "sealed", "writable", "modes", "settings") if getattr(self, name) != getattr(other, name)]
        found += [f"left over: {name}" for name in sorted((self.files - other.files).elements())]
        found += [f"missing: {name}" for name in sorted((other.files - self.files).elements())]
        return found
