"""Finds every row that an app or a user wrote in the files of a store, without using moult.

After a recovery, a row may be in three places: in a database, in its table `moult_rejected`, or in a complete set in quarantine.
A row that is in none of these places is lost.
"""
import collections, copy, glob, json, os, sqlite3

from harness.files import is_sound, once, opened

OWN = ("moult_release", "moult_rejected", "moult_transaction")
RECORD = {"quarantine", "database", "kind", "path", "why", "time", "release", "reason"}
REASONS = {"replaced", "rolled-back", "migrated", "reset", "taken-over", "unfit-cache", "undone", "restored", "foreign"}


def row(table, columns, values):
    """Returns a row as a comparable value: its table, and each column with its value."""
    return table, frozenset(zip(columns, values))


@once
def read(path):
    """Returns the rows of a database, including its sidecars, and the rows in its `moult_rejected`; None if it does not
    load."""
    with opened(path) as connection:
        try:
            if not is_sound(connection):
                return None
            tables = [name for name, in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")]
            rows, rejected = collections.Counter(), collections.Counter()
            for table in tables:
                found = connection.execute(f'SELECT * FROM "{table}"')
                columns = [column[0] for column in found.description]
                if table == "moult_rejected":
                    for values in found:
                        entry = dict(zip(columns, values))
                        content = json.loads(entry["row"])
                        rejected[row(entry["table"], content.keys(), content.values())] += 1
                elif table not in OWN:
                    rows.update(row(table, columns, values) for values in found)
            return rows, rejected
        except sqlite3.DatabaseError:
            return None


class Place:
    """A database file, and the kind and name of its place."""

    def __init__(self, kind, name, path):
        self.kind, self.name = kind, name
        self.rows, self.rejected = read(path) or (collections.Counter(), collections.Counter())

    def count(self, wanted):
        """Returns how many times the file contains a row. A newer schema may have more columns than the row."""
        table, values = wanted
        exact = self.rows[wanted] + self.rejected[wanted]
        if exact or self.kind != "database":
            return exact
        return sum(count for (name, found), count in (self.rows + self.rejected).items() if name == table and values <= found)


def databases(store):
    return [Place("database", name, os.path.join(store, name)) for name in sorted(os.listdir(store))
            if name.endswith(".db") and not os.path.islink(os.path.join(store, name))]


def quarantined(store):
    shelf = os.path.join(store, ".moult/quarantine")
    return sorted(os.listdir(shelf)) if os.path.isdir(shelf) else []


def sets(store):
    """Returns the complete sets in quarantine."""
    shelf = os.path.join(store, ".moult/quarantine")
    return [Place("quarantine", name, os.path.join(shelf, name, os.path.basename(record(store, name)["path"])))
            for name in quarantined(store) if not fault(store, name)]


def settled(store):
    """Returns every place where a row may be in a store without an unfinished update."""
    return databases(store) + sets(store)


def anywhere(store):
    """Returns every database file of a store, including those of an unfinished update."""
    found = databases(store)
    for directory, _, names in os.walk(os.path.join(store, ".moult")):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path) and open(path, "rb").read(16) == b"SQLite format 3\0":
                found.append(Place("file", os.path.relpath(path, store), path))
    return found


def record(store, name):
    try:
        with open(os.path.join(store, ".moult/quarantine", name, "set.json")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def fault(store, name):
    """Returns why a set in quarantine is not complete; None if it is complete."""
    known = record(store, name)
    if known is None:
        return "set.json is missing or cannot be read"
    if not isinstance(known, dict) or RECORD - known.keys():
        return f"set.json lacks {', '.join(sorted(RECORD - known.keys()))}"
    if known.get("pending"):
        return "set.json says that the update has not ended"
    if known["quarantine"] != 1 or known["reason"] not in REASONS or not name.endswith("-" + known["database"]):
        return f"set.json is not valid: {known}"
    file = os.path.join(store, ".moult/quarantine", name, os.path.basename(known["path"]))
    if not os.path.isfile(file):
        return f"{os.path.basename(file)} is missing"
    # A file that does not load is kept as it is.
    if known["reason"] not in ("reset", "unfit-cache", "foreign") and read(file) is None:
        return f"{os.path.basename(file)} does not load"
    return None


class Ledger:
    """The rows that an app wrote: all rows of a store that no release shipped."""

    def __init__(self, store, shipped, caches=()):
        # A row in quarantine must also stay; one copy is enough.
        self.most = collections.Counter()
        for place in settled(store):
            if place.kind == "database" and place.name in caches:
                continue
            for wanted, count in (place.rows + place.rejected).items():
                if wanted not in shipped:
                    self.most[wanted] = max(self.most[wanted], count)

    def with_rows(self, more):
        """Returns this ledger with additional rows, which an app wrote later."""
        found = copy.copy(self)
        found.most = self.most + collections.Counter(more)
        return found

    def faults(self, store):
        """Returns why a store without an unfinished update has not kept every row once: in a database, in moult_rejected or
        in a complete set in quarantine."""
        found = settled(store)
        missing, doubled = self.missing(found), self.doubled(found)
        return [f"rows are duplicated: {text(doubled)}"] * bool(doubled) + [f"rows are lost: {text(missing)}"] * bool(missing) + [
            f"{name} in quarantine is not complete: {why}" for name in quarantined(store) if (why := fault(store, name))] + [
            f"{name} has the marker of an update that is over" for name in marked(store)]

    def missing(self, places):
        """Returns the rows of which the places have fewer copies than before, or none."""
        return [wanted for wanted, most in self.most.items() if sum(place.count(wanted) for place in places) < most]

    def doubled(self, places):
        """Returns the rows that the databases and their `moult_rejected` contain more often than any single place did
        before."""
        current = [place for place in places if place.kind == "database"]
        return [wanted for wanted, most in self.most.items() if sum(place.count(wanted) for place in current) > most]


def marked(store):
    """Returns the databases with the marker of an update. It may stay only while an app has the database locked, and then the record
    of the update stays, too."""
    if glob.glob(f"{store}/.moult/transactions/*/*ed.json"):
        return []
    return [name for name in sorted(os.listdir(store)) if name.endswith(".db") and has_marker(os.path.join(store, name))]


@once
def has_marker(path):
    try:
        with opened(path) as connection:
            return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'moult_transaction'").fetchone())
    except sqlite3.DatabaseError:
        return False


def text(rows):
    return "; ".join(sorted(f"{table}({', '.join(f'{name}={value!r}' for name, value in sorted(values))})" for table, values in rows))
