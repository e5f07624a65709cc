"""Predicts where the rows of a shared database go when its content is replaced, by the rules of docs/user-rows.md.

The code follows the contract on that page, and shares only SQLite with the implementation.
"""
import sqlite3

from content import Content, bound, exact, open_memory, quoted, uniques


class Refused(Exception):
    """The contract requires the operation to be refused."""


class Row(tuple):
    """An exact row with its rowid."""

    def __new__(cls, values, rowid):
        made = super().__new__(cls, values)
        made.rowid = rowid
        return made


class Carried:
    """The expected content afterwards, and the rows that are not in it."""

    def __init__(self, content):
        self.content = content
        self.rejected = []   # (table, columns, row, whose)
        self.kept = {}       # table: (least, most) rows that are in the kept copy only
        self.keeps = False   # whether the old content must be kept
        self.why = []

    def keep(self, table, least, most, why):
        self.keeps = True
        low, high = self.kept.get(table, (0, 0))
        self.kept[table] = (low + least, high + most)
        self.why.append(f"{table}: {why}")


def condition(entries):
    return " OR ".join(f"({e['where']})" if e.get("where") else "1" for e in entries)


def compiles(content, table, entry):
    try:
        content.db.execute(f"SELECT 1 FROM {quoted(table)} WHERE {condition([entry])} LIMIT 0")
        return True
    except sqlite3.OperationalError:
        return False


def of_table(entries, table):
    return [e for e in entries if e["table"].lower() == table.lower()]


def selection(old, table, installed, target, back):
    """Returns the entries that select the rows of a table, and whether they come from the installed release. On the way back to
    an older release, both releases select rows, but an older entry without a condition does not replace newer conditions."""
    mine = of_table(installed, table)
    others = [e for e in of_table(target, table) if compiles(old, table, e)]
    if not mine:
        return others, False
    return mine + ([e for e in others if e.get("where")] if back else []), True


def placement(installed, target, table, columns, back):
    """Returns the entry that places the rows of a table into one with these columns. An older release cannot know the rows of a
    newer one, so rows do not stop the way back to it, and renamed columns get their old names back."""
    mine, theirs = of_table(installed, table), of_table(target, table)
    if not back:
        return theirs[0] if theirs else None
    entry = (theirs or mine or [None])[0]
    if not entry:
        return None
    there = {c.lower() for c in columns}
    listed = {(a.lower(), b.lower()) for a, b in (theirs[0] if theirs else {}).get("columns", {}).items()}
    renamed = {}
    for before, after in (mine[0] if mine else {}).get("columns", {}).items():
        # A name that the older release lists as renamed is from before that release, so another name comes first.
        known = before.lower() in {a for a, _ in listed}
        if before.lower() in there and (before.lower(), after.lower()) not in listed and (after not in renamed or not known):
            renamed[after] = before
    policy = entry.get("onConflict", "keep-user")
    return entry | {"onReject": "table", "onConflict": "keep-user" if policy == "fail" else policy, "columns": renamed}


def carry(old, shipped_before, shipped_now, before, target, choose, purpose="update", adopting=False, accept=False, back=False):
    """Returns the expected content. `old` is the live content, `shipped_before` and `shipped_now` are shipped contents, `before`
    and `target` are the entries of the database in the two releases; `back` means that the target is the older one."""
    excluded = set()
    while True:
        result = attempt(old, shipped_before, shipped_now, before, target, choose, purpose, adopting, accept, back, excluded)
        more = violations(result, choose, adopting) - excluded
        if not more:
            break
        # Rows with dangling references are left out, and the rows that they had replaced are restored.
        excluded |= more
    if not adopting:
        for table, (rest, shipped) in result.unselected.items():
            leftover(result, old, table, rest, shipped, choose)
        objects(result, old, shipped_before, shipped_now, choose)
    finish(result, old, shipped_now)
    return result


def attempt(old, shipped_before, shipped_now, before, target, choose, purpose, adopting, accept, back, excluded):
    installed = before["preserve"] if before and before["kind"] == "shared" else []
    result = Carried(shipped_now.copy())
    result.excluded = excluded
    new = result.content
    for name, (kind, _, _) in shipped_now.objects.items():
        if kind == "trigger":
            new.db.execute(f"DROP TRIGGER {quoted(name)}")
    new.db.execute("PRAGMA foreign_keys = OFF")
    result.placed, result.unselected = {}, {}
    for table in old.tables:
        entries, by_installed = selection(old, table, installed, target["preserve"], back)
        columns = old.columns(table)
        shipped = shipped_before.counted(table) if shipped_before and shipped_before.table_named(table) == table \
            and shipped_before.columns(table) == columns else {}
        chosen, rest = [], []
        if entries:
            rowid = "NULL" if uniques(old, table)[1] != ["rowid"] else "rowid"
            for row in old.all(f"SELECT *, {rowid}, ({condition(entries)}) FROM {quoted(table)}"):
                (chosen if row[-1] else rest).append(Row(map(exact, row[:-2]), exact(row[-2])))
        else:
            rest = list(old.rows(table))
        result.unselected[table] = rest, shipped
        there = new.table_named(table)
        entry = placement(installed, target["preserve"], table, new.columns(there), back) if there else None
        if not entry:
            if chosen and by_installed:
                if purpose == "update" and target.get("unpreserved") != "keep" and not accept:
                    if any(not shipped.get(row) for row in chosen) or choose("refuse for shipped rows only", True, False):
                        raise Refused("unpreserved")
                own = sum(not shipped.get(row) for row in chosen)
                if own:
                    result.keep(table, own, len(chosen), "no longer preserved")
                elif chosen and choose("keep for shipped rows only", False, True):
                    result.keep(table, 0, len(chosen), "no longer preserved, but shipped")
        elif chosen:
            place(result, old, table, there, columns, chosen, shipped, entry, choose, adopting)
    return result


def place(result, old, table, there, columns, rows, shipped, entry, choose, adopting):
    new = result.content
    after = new.columns(there)
    names = {c.lower(): c for c in after}
    renamed = {old.lower(): name for old, name in entry.get("columns", {}).items()}
    pairs = [(i, names[renamed.get(c.lower(), c).lower()]) for i, c in enumerate(columns) if renamed.get(c.lower(), c).lower() in names]
    gone = [i for i in range(len(columns)) if i not in {at for at, _ in pairs}]
    block = entry.get("onReject", "block") == "block" and not adopting
    policy = entry.get("onConflict", "keep-user")
    sets, key = uniques(new, there)
    # Whether an implicit rowid counts as a key is not specified.
    by_rowid = not sets and choose("implicit rowids", False, True)
    fit = Fit(new, there)
    placed = result.placed.setdefault(there, {})
    lost_values = soft_values = 0
    usual = defaults(old, table)

    def reject(row):
        result.rejected.append((table, columns, row, "user"))

    for number, row in enumerate(rows):
        values = [row[at] for at, _ in pairs]
        into = [name for _, name in pairs]
        if (table, number) in result.excluded:
            reject(row)
            continue
        fits, whole = fit.try_row(into, values)
        if whole is None or not fits and by_rowid:
            if block:
                raise Refused("does not fit")
            reject(row)
            continue
        at = {"rowid": row.rowid} if by_rowid else dict(zip(after, whole))
        rivals = find_rivals(new, there, [["rowid"]] if by_rowid else sets, key, at)
        loses = any(row[at] != "NULL" for at in gone)
        # Whether shipped and default values count as content of the app is not specified.
        softly = shipped.get(row) or all(row[at] in ("NULL", usual[at]) for at in gone)
        same = [identity for identity, other in rivals if fits and identity not in placed and is_same(other, whole, after, into, choose)]
        if same:
            placed[same[0]] = (table, number, entry)
            lost_values += bool(loses and not softly)
            soft_values += bool(loses and softly)
            continue
        if any(identity in placed for identity, _ in rivals):
            # If two users' rows exclude each other, either row may win.
            result.clash = True
            if policy == "fail" and choose("two users' rows and onConflict fail", True, False):
                raise Refused("conflict")
            if block and (policy != "keep-new" or choose("two users' rows and keep-new", True, False)):
                raise Refused("clash")
            reject(row)
            continue
        if not fits and (not rivals or policy == "keep-user" or choose("whether it fits comes before conflicts", True, False)):
            if block:
                raise Refused("does not fit")
            reject(row)
            continue
        if rivals:
            if policy == "fail":
                raise Refused("conflict")
            if policy == "keep-new":
                reject(row)
                continue
            for identity, other in rivals:
                result.rejected.append((there, after, other, "shipped"))
                delete(new, there, key, identity)
        if by_rowid:
            into, values = into + ["rowid"], values + [row.rowid]
        placed[insert(new, there, into, values, key, whole, after)] = (table, number, entry)
        lost_values += bool(loses and not softly)
        soft_values += bool(loses and softly)
    if lost_values:
        result.keep(table, 0, lost_values + soft_values, "columns are gone")
    elif soft_values and choose("usual values of columns that are gone", False, True):
        result.keep(table, 0, soft_values, "columns are gone")


def is_same(other, whole, after, into, choose):
    """Returns whether the new content already contains a row. The contract does not say whether columns that only the new
    schema has are compared."""
    if other == whole:
        return True
    have, want = dict(zip(after, other)), dict(zip(after, whole))
    return all(have[c] == want[c] for c in into) and choose("new columns of a row that is there", True, False)


def defaults(content, table):
    """Returns the exact default value of each column, in the form in which the column stores it."""
    found = []
    for row in content.all(f"PRAGMA table_info({quoted(table)})"):
        if row[4] is None:
            found.append("NULL")
            continue
        scratch = open_memory()
        scratch.execute(f"CREATE TABLE d(c {row[2].decode()})")
        scratch.execute(f"INSERT INTO d VALUES({row[4].decode()})")
        found.append(exact(scratch.execute("SELECT c FROM d").fetchone()[0]))
    return found


class Fit:
    """Tests whether a row fits into an empty table, and can be read back unchanged."""

    def __init__(self, content, table):
        self.content, self.table = content, table
        self.db = open_memory()
        self.db.execute("PRAGMA foreign_keys = OFF")
        self.db.execute(content.objects[table][2])

    def try_row(self, names, values):
        """Returns whether the row can be read back unchanged, and the complete row with its defaults; None if a constraint
        refuses the row."""
        self.db.execute("BEGIN")
        try:
            run_insert(self.db, self.table, names, values)
            whole = tuple(map(exact, self.db.execute(f"SELECT * FROM {quoted(self.table)}").fetchone()))
        except (sqlite3.IntegrityError, sqlite3.OperationalError, OverflowError):
            return False, None
        finally:
            self.db.execute("ROLLBACK")
        columns = self.content.columns(self.table)
        back = dict(zip(columns, whole))
        return all(back[n] == v for n, v in zip(names, values)), whole


def run_insert(db, table, names, values):
    parts = [bound(v) for v in values]
    db.execute(f"INSERT INTO {quoted(table)}({', '.join(n if n == 'rowid' else quoted(n) for n in names)}) VALUES({', '.join(p for p, _ in parts)})",
               [v for _, v in parts])


def find_rivals(new, table, sets, key, row):
    """Returns the identities of the rows that conflict with a row."""
    found = {}
    for names in sets:
        if any(row[n] == "NULL" for n in names):
            continue
        parts = [bound(row[n]) for n in names]
        where = " AND ".join(f"{quoted(n) if n != 'rowid' else n} = {p}" for n, (p, _) in zip(names, parts))
        keys = ", ".join(quoted(k) if k != "rowid" else "rowid" for k in key)
        for other in new.db.execute(f"SELECT {keys}, * FROM {quoted(table)} WHERE {where}", [v for _, v in parts]):
            found[tuple(map(exact, other[:len(key)]))] = tuple(map(exact, other[len(key):]))
    return list(found.items())


def delete(new, table, key, identity):
    parts = [bound(v) for v in identity]
    where = " AND ".join(f"{quoted(k) if k != 'rowid' else k} = {p}" for k, (p, _) in zip(key, parts))
    new.db.execute(f"DELETE FROM {quoted(table)} WHERE {where}", [v for _, v in parts])


def insert(new, table, names, values, key, whole, after):
    run_insert(new.db, table, names, values)
    if key == ["rowid"]:
        return (exact(new.db.execute("SELECT last_insert_rowid()").fetchone()[0]),)
    row = dict(zip(after, whole))
    return tuple(row[k] for k in key)


def violations(result, choose, adopting):
    """Returns the users' rows whose parent is missing. The parent of a shipped row is missing only if a user's row replaced
    the parent."""
    new = result.content
    for _ in range(1000):
        found = new.db.execute("PRAGMA foreign_key_check").fetchall()
        users, other = set(), None
        for table, rowid, *_ in found:
            table = table.decode()
            placed = result.placed.get(table, {})
            identities = [(exact(rowid),)] if rowid is not None else [
                tuple(map(exact, key)) for key in new.all(f"SELECT {', '.join(uniques(new, table)[1])} FROM {quoted(table)}")
                if is_violating(new, table, tuple(map(exact, key)))]
            for identity in identities:
                if identity in placed:
                    name, number, entry = placed[identity]
                    if entry.get("onReject", "block") == "block" and not adopting and choose("a foreign key blocks", True, False):
                        raise Refused("foreign key")
                    users.add((name, number))
                else:
                    other = table, identity
        if users or not other:
            return users
        table, identity = other
        key = uniques(new, table)[1]
        where = " AND ".join(f"{quoted(k) if k != 'rowid' else k} = {bound(v)[0]}" for k, v in zip(key, identity))
        row = new.db.execute(f"SELECT * FROM {quoted(table)} WHERE {where}", [bound(v)[1] for v in identity]).fetchone()
        result.rejected.append((table, new.columns(table), tuple(map(exact, row)), "shipped"))
        delete(new, table, key, identity)
    return set()


def is_violating(new, table, identity):
    for row in new.all(f"PRAGMA foreign_key_list({quoted(table)})"):
        parent, column, to = row[2].decode(), row[3].decode(), (row[4] or b"k").decode()
        keys = uniques(new, table)[1]
        parts = [bound(v) for v in identity]
        where = " AND ".join(f"{quoted(k)} = {p}" for k, (p, _) in zip(keys, parts))
        if new.db.execute(f"SELECT 1 FROM {quoted(table)} WHERE {where} AND {quoted(column)} IS NOT NULL AND NOT EXISTS "
                          f"(SELECT 1 FROM {quoted(parent)} p WHERE p.{quoted(to)} = {quoted(table)}.{quoted(column)})",
                          [v for _, v in parts]).fetchone():
            return True
    return False


def leftover(result, old, table, rest, shipped, choose):
    """Handles rows that no entry selects: rows of the app are in the kept copy, shipped rows are replaced."""
    new = result.content
    there = new.table_named(table)
    now = dict(Content(new.db).counted(there)) if there and new.columns(there) == old.columns(table) else {}
    have = dict(shipped)
    lost = there_now = 0
    for row in rest:
        if have.get(row, 0) > 0:
            have[row] -= 1
        elif now.get(row):
            there_now += 1
        else:
            lost += 1
    if lost:
        result.keep(table, lost, lost + there_now, "not selected")
    elif there_now and choose("rows that the new release ships as well", False, True):
        result.keep(table, 0, there_now, "not selected, but shipped now")


def objects(result, old, shipped_before, shipped_now, choose):
    """Handles tables, indexes, triggers and views that the app created."""
    known = shipped_before.objects if shipped_before else {}
    for name, what in old.objects.items():
        if name in known and known[name][2] == what[2]:
            continue
        if shipped_now.objects.get(name, (None, None, None))[2] == what[2]:
            if not choose("an object of the app that the new release has as well", False, True):
                continue
        if name in known and shipped_before and what[0] == "table":
            # The app changed a shipped table: its rows were compared with its columns.
            result.keep(name, 0, len(old.rows(name)), "changed by the app")
        else:
            result.keep(name if what[0] == "table" else what[1], 0, 0, f"{what[0]} {name} of the app")


def finish(result, old, shipped_now):
    new = result.content
    sequence = new.sequence
    for table, number in old.sequence.items():
        there = new.table_named(table)
        if there and "AUTOINCREMENT" in new.objects[there][2].upper():
            now = new.db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (there,)).fetchone()
            if now is None:
                new.db.execute("INSERT INTO sqlite_sequence VALUES(?, ?)", (there, number))
            elif number > now[0]:
                new.db.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (number, there))
    for name, (kind, _, sql) in shipped_now.objects.items():
        if kind == "trigger":
            new.db.execute(sql)
    result.content = Content(new.db)
