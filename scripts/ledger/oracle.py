"""Predicts the result of each operation: the content of every file, the rejected and kept rows, and the exit status."""
import collections, copy, sqlite3

from carry import Carried, Refused, carry
from content import Content, quoted

DONE, CHANGES, REFUSED, BUSY = 0, 2, 3, 75


class File:
    """A file at a path in the store. If it was damaged, `content` is None, and `digest` identifies it."""

    def __init__(self, content, *, name=None, plain=False, digest=None, wal=False, link=False, restored=False, kind=None, readable=False):
        self.content, self.name, self.plain, self.digest = content, name, plain, digest
        self.wal, self.link, self.restored, self.kind = wal, link, restored, kind
        self.readable = readable    # whether the schema of a damaged file can still be read

    def but(self, **changes):
        made = copy.copy(self)
        made.__dict__.update(changes)
        return made


class Kept:
    """A set in quarantine."""

    def __init__(self, database, kind, path, release, reasons, file, rows=None, earlier=None):
        self.database, self.kind, self.path, self.release = database, kind, path, release
        self.reasons, self.file, self.rows, self.earlier = reasons, file, rows or {}, earlier
        self.is_rows = False    # whether it has only the rows that are left behind


class State:
    """The known state of the store."""

    def __init__(self):
        self.installed = None       # the index of a release
        self.before = []            # (from, to) of each change of the installed release, the newest last
        self.generations = []       # indexes of releases that are kept
        self.copied = False         # whether the store was copied
        self.holds = {}             # the versions on hold
        self.files = {}             # path: File
        self.sets = {}              # directory: Kept
        self.opened = {}            # path: "idle", "read" or "write"

    def is_locked(self, path):
        """Returns whether a process prevents the replacement of the content: a writer, and in rollback mode also a reader."""
        how = self.opened.get(path)
        return how == "write" or how == "read" and not self.files[path].wal

    def copy(self):
        made = State()
        made.installed, made.before, made.generations = self.installed, list(self.before), list(self.generations)
        made.holds, made.files, made.sets = dict(self.holds), dict(self.files), dict(self.sets)
        made.copied = self.copied
        made.opened = dict(self.opened)
        return made


class Outcome:
    """One possible result of an operation."""

    def __init__(self, exits, state, kept=(), rejected=None, same=False, loose=None, rows=None):
        self.exits, self.state = exits, state
        self.kept = list(kept)
        self.rejected = rejected or {}   # path: [(table, columns, row, whose)]
        self.same, self.loose = same, loose
        self.removed = set()             # sets in quarantine that the operator removes
        self.migrated = set()            # databases in which a migration changes values
        self.rows = rows or {}           # database: {table: (least, most)}, the numbers of rows that do not survive


class Chooser:
    """Tries every combination of choices that the contract leaves open."""

    def __init__(self, path):
        self.path, self.taken, self.named = path, [], {}

    def __call__(self, name, *options):
        if name in self.named:
            return self.named[name]
        at = len(self.taken)
        which = self.path[at] if at < len(self.path) else 0
        self.taken.append((name, which, len(options)))
        self.named[name] = options[which]
        return options[which]


def explore(predict, most=48):
    """Yields all outcomes, beginning with the one that the contract suggests."""
    waiting, seen = collections.deque([[]]), 0
    while waiting and seen < most:
        path = waiting.popleft()
        choose = Chooser(path)
        yield predict(choose)
        seen += 1
        for at in range(len(path), len(choose.taken)):
            for other in range(1, choose.taken[at][2]):
                waiting.append([which for _, which, _ in choose.taken[:at]] + [other])


class Busy(Exception):
    pass


class Oracle:
    def __init__(self, release):
        self.release = release      # index: Release
        self.shipped = {}

    def shipped_content(self, db):
        if db["sha256"] not in self.shipped:
            self.shipped[db["sha256"]] = Content.of_bytes(db["bytes"])
        return self.shipped[db["sha256"]]

    # Operations of the command

    def apply(self, state, op):
        index = op["to"]
        target = self.release(index)

        def predict(choose):
            same = Outcome({REFUSED}, state, same=True)
            if target.version in state.holds or "*" in state.holds:
                if state.installed == index:
                    if choose("hold of the installed release", True, False):
                        return self.switch(state, index, op, choose)
                    return same
                return same
            if state.installed is not None and index < state.installed and not op.get("downgrade"):
                return same
            return self.switch(state, index, op, choose)

        return explore(predict)

    def rollback(self, state, op):
        def predict(choose):
            same = Outcome({REFUSED}, state, same=True)
            if state.installed is None:
                return Outcome({REFUSED, 1}, state, same=True)
            wanted = op.get("to")
            if wanted is not None:
                if wanted not in state.generations or wanted == state.installed:
                    return same
                if self.release(wanted).version in state.holds:
                    return same
                return self.switch(state, wanted, op, choose, "rollback")
            older = [g for g in state.generations if g < state.installed]
            free = [g for g in older if self.release(g).version not in state.holds]
            return self.switch(state, max(free), op, choose, "rollback") if free else same

        return explore(predict)

    def switch(self, state, index, op, choose, purpose="update"):
        try:
            return Switch(self, state, index, op, choose, purpose).outcome()
        except Refused as why:
            # Open files may be reported before refusals.
            found = Outcome({REFUSED, BUSY} if state.opened else {REFUSED}, state, same=True)
            found.why = str(why)
            return found
        except Busy:
            return Outcome({BUSY} | self.refusal(state, index, op, choose, purpose), state, same=True)

    def refusal(self, state, index, op, choose, purpose):
        """Returns REFUSED if the release would be refused even if no process had a file open."""
        closed = state.copy()
        closed.opened = {}
        try:
            return Switch(self, closed, index, op, choose, purpose).outcome().exits & {REFUSED}
        except Refused:
            return {REFUSED}
        except Busy:
            return set()

    def reset(self, state, op):
        def predict(choose):
            name = op["db"]
            db = self.release(state.installed).databases.get(name) if state.installed is not None else None
            if db is None or db["kind"] == "reference":
                return Outcome({REFUSED, 1, 64}, state, same=True)
            if db["kind"] != "cache" and not op.get("aside"):
                return Outcome({REFUSED}, state, same=True)
            file = state.files.get(db["path"])
            if file and state.is_locked(db["path"]):
                return Outcome({BUSY}, state, same=True)
            if file and file.link and choose("reset of a link", True, False):
                return Outcome({REFUSED}, state, same=True)
            after = state.copy()
            after.files[db["path"]] = File(self.shipped_content(db), name=name, kind=db["kind"], wal=bool(file and file.wal), link=bool(file and file.link))
            kept = []
            if file:
                kept = [Kept(name, db["kind"], db["path"], self.release(state.installed).version, {"reset"}, file)]
            return Outcome({DONE}, after, kept)

        return explore(predict)

    def clean(self, state, op):
        found = Outcome({DONE}, state.copy())
        if op.get("older"):
            found.removed = {name for name, kept in state.sets.items() if kept.kind == "cache"}
        return [found]

    def salvage(self, state, op):
        return [Outcome({DONE, REFUSED, BUSY}, state.copy())]

    def hold(self, state, op):
        after = state.copy()
        version = op["v"] if op["v"] == "*" else f"{op['v'] + 1}.0.0"
        after.holds.pop(version, None)
        after.holds[version] = True
        return [Outcome({DONE}, after)]

    def unhold(self, state, op):
        after = state.copy()
        after.holds = {}
        return [Outcome({DONE, REFUSED}, after)]


class Switch:
    """An update or a rollback from the installed release to another."""

    def __init__(self, oracle, state, index, op, choose, purpose):
        self.oracle, self.state, self.op, self.choose, self.purpose = oracle, state, op, choose, purpose
        self.index = index
        self.target = oracle.release(index)
        self.before = oracle.release(state.installed) if state.installed is not None else None
        self.after = state.copy()
        self.kept, self.rejected, self.rows = [], {}, {}
        self.loose = None
        self.busy = False

    def outcome(self):
        if self.state.installed == self.index and self.purpose == "rollback":
            raise Refused("the same release")
        if self.state.copied and self.choose("a copied store", False, True):
            # The contract does not say that a copy behaves like the original.
            raise Refused("a copied store")
        self.refuse_stuck()
        self.refuse_moves()
        for db in self.target.databases.values():
            file = self.after.files.get(db["path"])
            before = self.before.at(db["path"]) if self.before else None
            if file and file.link and self.choose("a symbolic link is refused", False, True):
                raise Refused("link")
            getattr(self, db["kind"])(db, file, before)
        if self.busy:
            raise Busy()
        version = self.before.version if self.before else None
        if self.state.installed != self.index:
            self.after.before.append((self.state.installed, self.index))
            self.after.installed = self.index
            if self.index not in self.after.generations:
                self.after.generations.append(self.index)
            if self.purpose == "rollback" and version:
                self.after.holds.pop(version, None)
                self.after.holds[version] = True
        if self.loose:
            found = Outcome({DONE, REFUSED} | ({BUSY} if self.state.opened else set()), None, loose=self.loose)
            found.leads_to = self.index
            found.purpose = self.purpose
            return found
        found = Outcome({DONE}, self.after, self.kept, self.rejected, rows=self.rows)
        found.migrated = {kept.database for kept in self.kept if "migrated" in kept.reasons}
        return found

    def refuse_stuck(self):
        """Applies rules 8 and 9: files that must not be taken from a user, and files that must not be recreated."""
        if any(name not in self.target.databases for name in self.op.get("take", ())):
            raise Refused("no database to take over")
        if not self.before:
            return
        for db in self.target.databases.values():
            before = self.before.at(db["path"])
            owner = before or self.earlier_owner(db["path"])
            if owner and db["path"] in self.state.files and owner["kind"] != db["kind"]:
                if owner["kind"] == "user" or owner["kind"] == "shared" and db["kind"] in ("reference", "cache"):
                    if db["name"] not in self.op.get("take", ()):
                        raise Refused("take over")
                    if self.purpose == "rollback" or not before:
                        self.loose = "take-over by a rollback, or from an earlier release"
            if owner and not before and db["kind"] != "reference" and db["path"] not in self.state.files:
                raise Refused("missing")
            earlier = self.before.databases.get(db["name"])
            if earlier and earlier["kind"] == db["kind"] and db["kind"] in ("user", "shared") and earlier["path"] not in self.state.files:
                raise Refused("missing")
            if before and before["kind"] in ("user", "shared") and db["path"] not in self.state.files:
                if db["kind"] != "reference" or self.choose("missing, and of another kind", True, False):
                    raise Refused("missing")
            for which in (before, earlier):
                file = which and self.state.files.get(which["path"])
                if file and file.content is None and which["kind"] in ("user", "shared"):
                    again = self.state.installed == self.index
                    if db["kind"] == "shared" and not again or self.choose("damaged database", True, False):
                        raise Refused("damaged")

    def earlier_owner(self, path):
        """Returns the database with app data that a kept release has at a path which the installed release does not have."""
        found = [self.oracle.release(index).at(path) for index in sorted(self.state.generations, reverse=True)]
        found = [db for db in found if db and db["kind"] in ("user", "shared")]
        return next((db for db in found if db["kind"] == "user"), found[0] if found else None)

    def refuse_moves(self):
        """Applies rule 10: the path of a database with app data does not change."""
        if not self.before:
            return
        for db in self.target.databases.values():
            earlier = self.before.databases.get(db["name"])
            if not earlier or earlier["path"] == db["path"] or earlier["kind"] not in ("user", "shared"):
                continue
            if db["kind"] in ("user", "shared"):
                raise Refused("another path")
            # The app would no longer use its data.
            if self.purpose == "update" and earlier["path"] in self.state.files:
                raise Refused("another kind at another path")

    def version(self, db):
        """Returns the release whose content a file has; empty if the installed release does not list the database, and None
        if the release is not predicted."""
        if not self.before:
            return None
        return self.before.version if db["name"] in self.before.databases else ""

    def create(self, db, wal=False):
        content = self.oracle.shipped_content(db)
        self.after.files[db["path"]] = File(content, name=db["name"], kind=db["kind"], wal=wal)

    def reference(self, db, file, before):
        if not file:
            return
        if file.link:
            raise Refused("link")
        if before and before["kind"] == "user" or before and before["kind"] == "shared":
            self.take(db, file, before)
        elif before and before["kind"] == "cache":
            self.hold(db, file)
            self.keep_cache(db, file)
        else:
            self.keep_foreign(db, file)
        del self.after.files[db["path"]]

    def take(self, db, file, before):
        self.hold(db, file)
        if db["kind"] != "shared" and file.link:
            raise Refused("link")
        rows = {table: (0, len(file.content.rows(table))) for table in file.content.tables} if file.content else {}
        self.kept.append(Kept(db["name"], before["kind"], db["path"], self.version(db), {"taken-over"}, file, rows))
        self.rows[db["name"]] = rows

    def keep_foreign(self, db, file, rows=None):
        """Keeps a file that was at the path before moult, or that no installed release has there."""
        self.hold(db, file)
        if rows is None:
            rows = {table: (0, count) for table, count in file.content.row_counts().items()} if file.content else {}
        self.kept.append(Kept(db["name"], "user", db["path"], "", {"foreign"}, file, rows))

    def keep_cache(self, db, file):
        self.kept.append(Kept(db["name"], "cache", db["path"], self.version(db), {"unfit-cache"}, file))

    def replace(self, db, file):
        """Replaces the whole content: in place, or by another file if SQLite cannot open it."""
        self.hold(db, file)
        self.create(db, wal=file.wal and file.content is not None)

    def cache(self, db, file, before):
        if not file:
            self.create(db)
            return
        if before and before["kind"] in ("user", "shared"):
            self.take(db, file, before)
            self.replace(db, file)
            return
        shipped = self.oracle.shipped_content(db)
        fits = file.content is not None and file.content.objects == shipped.objects
        if fits:
            if file.link or before:
                return
            # A cache of an earlier release stays as long as that release is kept; anything else is kept.
            if file.plain or self.choose("a fitting file at a new cache", False, True):
                self.keep_foreign(db, file)
                self.replace(db, file)
            return
        if file.link and not (before and before["kind"] == "cache"):
            # The target of the link may be data of an app.
            raise Refused("link")
        if self.state.installed == self.index and self.choose("a damaged cache and the installed release", True, False):
            # The contract does not say that applying a release again repairs the cache.
            return
        if file.content is None and file.readable and self.choose("a cache with a sound schema and damaged rows", False, True):
            return
        if (file.plain or not before) and self.choose(f"a file at a cache: {db['name']}", file.plain, not file.plain):
            self.keep_foreign(db, file)
        elif self.state.is_locked(db["path"]):
            # A later update replaces it.
            return
        else:
            self.keep_cache(db, file)
        self.replace(db, file)

    def user(self, db, file, before):
        if not file:
            self.create(db)
            return
        if before and before["kind"] == "cache" and not file.link:
            self.keep_cache(db, file)
            self.replace(db, file)
            return
        if before and before["kind"] in ("cache", "reference"):
            self.loose = f"{before['kind']} becomes user"
            return
        if file.content is None:
            if not (before and before["kind"] == "user") and self.choose("a damaged file that no installed release has as the user's", True, False):
                raise Refused("damaged")
            return
        if before and before["kind"] == "shared" and self.purpose == "rollback":
            self.loose = "shared becomes user by a rollback"
            return
        template = self.oracle.shipped_content(db)
        known, there = len(db["migrations"]) + 1, file.content.user_version
        if there > known:
            raise Refused("newer than the release")
        pending = [] if self.purpose == "rollback" else db["migrations"][max(there - 1, 0):]
        if not pending:
            if self.purpose == "update" and lacks(file.content, template):
                raise Refused("the schema does not fit")
            return
        if file.restored and self.choose("a restored file", False, True):
            self.loose = "a restored file is migrated"
        made = file.content.copy()
        shrinks = False
        for sql in pending:
            counts = {t: len(Content(made.db).rows(t)) for t in Content(made.db).tables}
            try:
                made.db.executescript("BEGIN;" + sql + "COMMIT;")
            except sqlite3.Error:
                raise Refused("a migration fails")
            now = Content(made.db)
            shrinks |= any(len(now.rows(t)) < count for t, count in counts.items() if t in now.tables)
        made = Content(made.db)
        if shrinks and not db.get("shrinks"):
            raise Refused("a migration loses rows")
        if lacks(made, template):
            raise Refused("the schema does not fit")
        self.hold(db, file)
        losses = lost_by_migration(file.content, made, self.choose)
        if losses:
            kind = self.before.databases.get(db["name"], db)["kind"] if self.before else "user"
            self.kept.append(Kept(db["name"], kind, db["path"], self.version(db), {"migrated"}, file, losses))
            self.rows[db["name"]] = losses
        self.after.files[db["path"]] = file.but(content=made, kind="user")

    def shared(self, db, file, before):
        shipped = self.oracle.shipped_content(db)
        if not file:
            self.create(db)
            return
        if before and before["kind"] == "user":
            self.take(db, file, before)
            self.replace(db, file)
            if file.content is not None:
                # The whole file is kept; rows that the release preserves are also carried over, if the file has its tables.
                moved = carry(file.content, None, shipped, None, db, self.choose, self.purpose, accept=True)
                self.replaced(db, file, moved)
            return
        if file.link and not (before and before["kind"] == "shared"):
            raise Refused("link")
        if before and before["kind"] == "cache":
            self.keep_cache(db, file)
            self.replace(db, file)
            return
        if before and before["kind"] == "reference":
            self.loose = "reference becomes shared"
            return
        earlier = self.before.databases.get(db["name"]) if self.before else None
        if earlier is None or earlier["kind"] != "shared":
            earlier = before
        if file.content is None:
            if earlier is None and self.choose("a damaged file that no installed release has", True, False):
                self.keep_foreign(db, file)
                self.replace(db, file)
            return
        if file.content.marker == db["sha256"] and (
                earlier is None or not self.choose("the same content, and another preserve", False, True)):
            return
        if file.restored:
            self.loose = "a restored file"
            return
        self.hold(db, file)
        if earlier is None:
            self.take_up(db, file, shipped)
            return
        moved = carry(file.content, self.oracle.shipped_content(earlier), shipped, earlier, db, self.choose, self.purpose,
                      accept=self.op.get("accept", False), back=self.state.installed > self.index)
        self.replaced(db, file, moved)
        if moved.keeps:
            reason = "rolled-back" if self.purpose == "rollback" else "replaced"
            self.kept.append(Kept(db["name"], "shared", db["path"], self.version(db), {reason}, file, moved.kept))
            self.rows[db["name"]] = moved.kept

    def replaced(self, db, file, moved):
        if getattr(moved, "clash", False):
            # Either of the two rows may win, but neither may be lost.
            self.loose = "rows that exclude each other"
        self.rejected[db["path"]] = moved.rejected
        moved.content.earlier = file.content.rejected
        self.after.files[db["path"]] = file.but(content=moved.content, plain=False, name=db["name"], kind="shared")

    def take_up(self, db, file, shipped):
        """Predicts what happens to a file that the installed release does not have: an app's file, or one of an earlier
        release."""
        moved = carry(file.content, None, shipped, None, db, self.choose, self.purpose, adopting=True)
        self.replaced(db, file, moved)
        # Values of dropped columns are still in the kept file, so the plan may or may not count their rows as dropped.
        self.rows[db["name"]] = {table: (0, most) for table, (_, most) in moved.kept.items()}
        if file.plain or self.choose("the file of a dropped database", True, False):
            self.keep_foreign(db, file, self.rows[db["name"]])
        else:
            self.loose = "the file of a dropped database comes back"

    def hold(self, db, file):
        """Applies rule 11: a replacement waits for writers, and in rollback mode also for readers. A file that is set aside must not
        be open."""
        if self.state.is_locked(db["path"]) or db["path"] in self.state.opened and (db["kind"] == "reference" or file.content is None):
            self.busy = True


def lacks(content, template):
    """Returns what a user's database lacks compared with a release's, or has in a different form. Additional content does
    not matter."""
    for name, (kind, _, sql) in template.objects.items():
        if name not in content.objects or content.objects[name][0] != kind:
            return f"{kind} {name} is missing"
        if kind != "table":
            if content.objects[name][2] != sql:
                return f"{kind} {name} is different"
            continue
        wanted = [tuple(row[1:]) for row in template.all(f"PRAGMA table_info({quoted(name)})")]
        there = [tuple(row[1:]) for row in content.all(f"PRAGMA table_info({quoted(name)})")]
        if [column for column in there if column in wanted] != wanted:
            return f"the columns of {name} are different"
    return None


def lost_by_migration(old, new, choose):
    """Returns, by table, the least and the greatest count of losses that may be reported; empty if no value is lost."""
    found = {}
    for table in old.tables:
        rows = old.rows(table)
        if not rows:
            continue
        if table not in new.tables:
            found[table] = (0, len(rows))
            continue
        before, after = old.columns(table), new.columns(table)
        common = [c for c in before if c in after]
        gone = [i for i, c in enumerate(before) if c not in after]
        at = [before.index(c) for c in common]
        to = [after.index(c) for c in common]
        here = collections.Counter(tuple(row[i] for i in at) for row in rows)
        there = collections.Counter(tuple(row[i] for i in to) for row in new.rows(table))
        changed = sum((here - there).values())
        dropped = sum(any(row[i] != "NULL" for i in gone) for row in rows)
        if changed or dropped:
            found[table] = (1, len(rows) * len(before))
        elif gone and choose("empty columns are dropped", False, True):
            found[table] = (0, len(rows))
    return found
