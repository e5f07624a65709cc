"""Runs a story with the real command and SQLite, and compares each result with the prediction of the oracle."""
import base64, collections, glob, hashlib, json, os, pickle, random, shlex, shutil, signal, sqlite3, stat, subprocess, sys, time

from harness import files, releases
from harness.files import digest
from harness.tools import struck as report_of

from app import Writer, connect, own_schema
from beside import Beside
from catalogue import BESIDE, PRODUCT, PackRefused
from content import Content, line, shown
from oracle import BUSY, DONE, REFUSED, CHANGES, File, Kept, Oracle, Outcome, State, explore

HERE = os.path.dirname(os.path.abspath(__file__))
SIDECARS = ("-wal", "-shm", "-journal")
FEATURES = ("take-over", "accept", "unpreserved", "quarantine")
# Each check can be disabled, so that a binary that lacks some features can still be tested.
CHECKS = {
    "exit": "the exit status is as predicted",
    "rows": "every row of every writable database is as predicted",
    "schema": "tables, indexes, triggers and views are as predicted",
    "sequence": "AUTOINCREMENT does not reuse a number",
    "rejected": "moult_rejected has the predicted rows",
    "values": "moult_rejected has the exact values of these rows",
    "quarantine": "quarantine has exactly the predicted sets, with their complete content",
    "record": "set.json names database, kind, path, release, reason and owner",
    "adopted": "the kept copies of a replaced single file are as predicted",
    "plan": "the plan counts the rows that do not survive",
    "migration-plan": "the plan counts the rows of a user database that a migration changes",
    "deep": "an update does what a deep plan has said, and refuses what it has refused",
    "result": "the result counts the rows that do not survive",
    "message": "an error names databases by their paths in the store",
    "files": "the store has exactly the predicted files",
    "integrity": "integrity_check",
    "search": "full-text search finds every row",
    "owner": "owner and mode of a file stay the same",
    "mode": "the journal mode stays the same",
    "unchanged": "a refused command, or one that only reads, changes no byte",
    "app": "no app that writes beside a command fails",
    "lost": "every row of the app is in some place with its values",
    "returned": "no deleted row is in a database again",
    "status": "moult status agrees with the files",
    "tag": "quarantine and transactions have no CACHEDIR.TAG",
    "left": "no unfinished transaction and no empty set is left",
    "pack": "pack accepts sound drafts and refuses misspelled ones",
    "restore": "sets in quarantine can be exported and restored",
    "version": "the installed release is as predicted",
}


class Failed(Exception):
    """The faults after an operation: pairs of a check and a text."""

    def __init__(self, found, op):
        super().__init__(f"{len(found)} checks failed")
        self.found, self.op = found, op


class CutShort(Exception):
    """A disabled check would have failed, so the rest of the story cannot be predicted."""


class Ended:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def told(self):
        """The message of an error."""
        found = [e["error"] for e in self.events if isinstance(e, dict) and "error" in e]
        return "; ".join(f"{e.get('what')}: {e.get('why')}" for e in found) or self.err.strip()

    @property
    def events(self):
        found = []
        for text in self.out.splitlines():
            if '"event":"' in text[:40] and not any(f'"event":"{name}"' in text[:40] for name in ("plan", "result")):
                continue
            try:
                found.append(json.loads(text))
            except ValueError:
                pass
        return found


class World:
    def __init__(self, story, catalogue, options, directory):
        self.story, self.catalogue, self.options = story, catalogue, options
        self.directory = directory
        self.store = os.path.join(directory, "store")
        self.features = options.features
        self.checks = options.checks
        self.state = State()
        self.oracle = Oracle(lambda index: self.release(index))
        self.counts = collections.Counter()
        self.number = 0
        self.alive, self.deleted, self.destroyed = {}, {}, {}
        self.log, self.used = [], {}
        self.open, self.copies, self.owners, self.modes = {}, {}, {}, {}
        self.last = None
        self.names = 0
        self.companions, self.beside, self.ranges, self.is_recovering = 0, None, [], False
        self.environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": directory, "TMPDIR": directory}
        self.outfile, self.errfile = os.path.join(directory, "out"), os.path.join(directory, "err")

    def release(self, index):
        release = self.catalogue.get(self.story, index)
        self.used[index] = release
        return release

    # Running commands

    def moult(self, *words, before=(), note=""):
        # The output of a command that may be killed goes to a file, because writes to it count as calls.
        if self.beside and self.beside.app:
            before = [*self.beside.app.around_command, *before]
            note = note or (shlex.join(self.beside.app.around_command) + " ").lstrip()
        into = ' > "$W/out" 2> "$W/err"' if "$STRIKE" in note else ""
        self.log.append(f"{note}$MOULT {self.shell(words)} --store \"$S\"{into}; echo \"exit $?\"" + ('; cat "$W/report"' if into else ""))
        begun = time.monotonic_ns()
        ended = self.spawn([*before, self.catalogue.moult, *words, "--store", self.store])
        self.ranges.append((begun, time.monotonic_ns()))
        if self.beside and not self.is_recovering:
            self.beside.end()
        return ended

    def shell(self, words):
        shown = []
        for word in words:
            for index, release in self.used.items():
                word = word.replace(release.manifest, f"$R/{release.version}/ledger-{release.version}.json")
            word = word.replace(self.store, "$S").replace(self.directory, "$W")
            shown.append(f'"{word}"' if "$" in word or " " in word or "*" in word else word)
        return " ".join(shown)

    def spawn(self, argv):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, self.outfile, flags, 0o600),
                   (os.POSIX_SPAWN_OPEN, 2, self.errfile, flags, 0o600)]
        pid = os.posix_spawnp(argv[0], argv, self.environment, file_actions=actions)
        signal.alarm(120)
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            status = "not finished after 120 s"
        finally:
            signal.alarm(0)
        with open(self.outfile, errors="replace") as out, open(self.errfile, errors="replace") as err:
            return Ended(status, out.read(), err.read())

    # The story

    def begin(self):
        os.makedirs(self.directory, exist_ok=True)
        self.spawn([self.catalogue.moult, "init", "-q", self.store, "--product", PRODUCT])
        releases.set_settings(self.store, **{"keep": 30} | self.story.get("settings", {}))

    def tell(self, op):
        """Runs one operation; raises Failed if a check fails."""
        self.counts["operations"] += 1
        name = op["op"]
        self.log.append(f"# {json.dumps(op)}")
        self.ranges, self.wrote_meanwhile, done = [], False, None
        self.beside = Beside(self, op["beside"]) if "beside" in op else None
        try:
            done = getattr(self, "do_" + name)(op)
            if self.beside:
                self.beside.end()
                self.judge(self.beside.faults(), op)
                self.refresh(self.beside.path)
        finally:
            if self.beside:
                self.beside.kill()
            self.counts["commands"] += len(self.ranges)
            self.counts["commands beside a commit"] += sum(
                self.wrote_meanwhile or bool(self.beside and self.beside.committed_between(*range)) for range in self.ranges)
        self.counts[f"op {name}{' skipped' if done is False else ''}"] += 1

    def refresh(self, path):
        """Reads a file that a companion has written to; everything else in it was compared before."""
        file = self.state.files.get(path)
        if file and file.content is not None and os.path.exists(self.full(path)):
            self.state.files[path] = file.but(content=self.read(self.full(path)).content or file.content, wal=self.is_wal(path))

    def end(self):
        self.close_all()
        found = self.accounted()
        self.judge(found, {"op": "end"})
        self.counts["stories"] += 1

    def judge(self, found, op):
        found = [(check, text) for check, text in found if check in self.checks]
        if found:
            raise Failed(found, op)

    # Operations of the app

    def path_of(self, name):
        """Returns the path of a database in the installed release, or in the newest release that had it."""
        indexes = [self.state.installed] if self.state.installed is not None else []
        for index in indexes + [went for _, went in reversed(self.state.before)]:
            db = self.release(index).databases.get(name)
            if db and db["path"] in self.state.files:
                return db["path"]
        return next((path for path, file in self.state.files.items() if file.name == name), None)

    def file_of(self, op):
        path = self.path_of(op["db"])
        file = path and self.state.files.get(path)
        return (path, file) if file and file.content is not None else (None, None)

    def full(self, path):
        return os.path.join(self.store, path)

    def do_write(self, op):
        path, file = self.file_of(op)
        if not path or self.state.opened.get(path) in ("write",) or self.state.opened.get(path) == "read" and not file.wal:
            return False
        rng = random.Random(op.get("seed", 0))
        connection = connect(self.full(path))
        done = []
        try:
            keys = rng.random() < 0.5
            connection.execute(f"PRAGMA foreign_keys = {'ON' if keys else 'OFF'}")
            writer = Writer(connection, rng, self.number)
            crash = op.get("crash") and path not in self.open and not file.link
            if crash:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN")
            for sql in self.statements(op, writer):
                try:
                    changed = connection.execute(sql).rowcount
                except (sqlite3.IntegrityError, sqlite3.OperationalError):
                    continue
                if changed > 0:
                    done.append(sql)
                    self.counts["app " + sql.split()[0].lower()] += 1
            connection.execute("COMMIT")
            self.number = writer.number
            content = Content.of_connection(connection)
            head = f"PRAGMA foreign_keys = {'ON' if keys else 'OFF'};\n"
            if crash:
                self.crash(connection, path)
                head += "PRAGMA journal_mode = WAL;\n"
            self.log_sql(path, head + "".join(sql + ";\n" for sql in done)
                         + (".shell cp \"$S\"/%s* \"$W\"\n" % path if crash else ""))
            if crash:
                self.log.append(f"cp \"$W\"/{path} \"$W\"/{path}-wal \"$S\"/")
            self.wrote(path, file, content, wal=True if crash else file.wal)
        finally:
            connection.close()
            if op.get("crash") and hasattr(self, "crashed"):
                self.put_crashed(path)
        return None if done else False

    def statements(self, op, writer):
        """Yields the statements that the app runs now; a hand-written story contains its statements and the numbers of its
        rows."""
        if "sql" in op:
            writer.number = max(writer.number, op["number"])
            yield from op["sql"]
        else:
            for _ in range(op["n"]):
                sql = writer.statement()
                if sql:
                    yield sql

    def log_sql(self, path, sql):
        self.log.append(f"sqlite3 \"$S/{path}\" <<'SQL'\n{sql}SQL")

    def crash(self, connection, path):
        """Copies the files as they would be if the app were killed now."""
        self.crashed = {}
        for suffix in ("", "-wal"):
            copy = os.path.join(self.directory, "crash" + suffix)
            # A separate process copies the file: closing a descriptor here would drop SQLite's locks.
            subprocess.run(["cp", self.full(path) + suffix, copy], check=True)
            self.crashed[suffix] = copy

    def put_crashed(self, path):
        crashed = self.crashed
        del self.crashed
        for suffix, copy in crashed.items():
            with open(copy, "rb") as source, open(self.full(path) + suffix, "wb") as out:
                out.write(source.read())

    def wrote(self, path, file, content, **changes):
        """Records that the app has changed the content of a file."""
        before, now = file.content.numbered, content.numbered
        for number in now:
            if number not in before:
                self.counts["acknowledged"] += 1
                self.alive[number] = now[number][0]
                self.deleted.pop(number, None)
        for number in before:
            if number not in now:
                self.alive.pop(number, None)
                self.deleted[number] = path
        self.state.files[path] = file.but(content=content, **changes)

    def do_schema(self, op):
        path, file = self.file_of(op)
        kind = self.kind(path)
        if not path or path in self.open or kind == "cache":
            return False
        self.names += 1
        connection = connect(self.full(path))
        try:
            sql = own_schema(random.Random(op["seed"]), connection, f"app{self.names}")
            connection.execute(sql)
            self.log_sql(path, sql + ";\n")
            self.wrote(path, file, Content.of_connection(connection))
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()

    def kind(self, path):
        db = self.release(self.state.installed).at(path) if self.state.installed is not None else None
        return db["kind"] if db else None

    def do_mode(self, op):
        path, file = self.file_of(op)
        if not path or path in self.open:
            return False
        mode = "WAL" if op["wal"] else "DELETE"
        connection = connect(self.full(path))
        connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()
        connection.close()
        self.log_sql(path, f"PRAGMA journal_mode = {mode};\n")
        self.state.files[path] = file.but(wal=op["wal"])

    def do_open(self, op):
        path, file = self.file_of(op)
        if not path or path in self.open:
            return False
        connection = connect(self.full(path))
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        begin = {"idle": "SELECT 1", "read": "BEGIN; SELECT count(*) FROM sqlite_schema", "write": "BEGIN IMMEDIATE"}[op["how"]]
        for sql in begin.split("; "):
            connection.execute(sql).fetchall()
        self.open[path] = connection
        self.state.opened[path] = op["how"]
        self.log.append(f"(echo 'SELECT count(*) FROM sqlite_schema; {begin};'; sleep 60) | sqlite3 \"$S/{path}\" & sleep 0.3")

    def close_all(self):
        for connection in self.open.values():
            if connection.in_transaction:
                connection.rollback()
            connection.close()
        if self.open:
            self.log.append("kill $(jobs -p); wait 2> /dev/null")
        self.open, self.state.opened = {}, {}

    def do_owner(self, op):
        path, file = self.file_of(op)
        if not path or file.link or path in self.open or os.geteuid():
            return False
        os.chown(self.full(path), op["uid"], op["uid"])
        os.chmod(self.full(path), op["mode"])
        self.owners[path] = (op["uid"], op["mode"])
        self.log.append(f"chown {op['uid']}:{op['uid']} \"$S/{path}\"; chmod {op['mode']:o} \"$S/{path}\"")

    def do_link(self, op):
        path, file = self.file_of(op)
        if not path or file.link or path in self.open or self.kind(path) not in ("shared", "user"):
            return False
        self.settle_sidecars(path)
        outside = os.path.join(self.directory, "data")
        os.makedirs(outside, exist_ok=True)
        self.names += 1
        target = os.path.join(outside, f"{self.names}-{path}")
        os.rename(self.full(path), target)
        os.symlink(target, self.full(path))
        self.log.append(f"mkdir -p \"$W/data\"; mv \"$S/{path}\" \"$W/data/{self.names}-{path}\"; ln -s \"$W/data/{self.names}-{path}\" \"$S/{path}\"")
        self.state.files[path] = file.but(link=True)

    def settle_sidecars(self, path):
        """Copies the WAL into the file, as when an app closes the file."""
        connection = connect(self.full(path))
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        connection.close()
        self.log_sql(path, "SELECT count(*) FROM sqlite_schema;\n")

    def do_plain(self, op):
        """Puts a database that moult did not create at the path of a database in a later release."""
        db = self.release(op["like"]).databases.get(op["db"])
        if not db or os.path.lexists(self.full(db["path"])) or db["path"] in self.state.files:
            return False
        if self.kind(db["path"]):
            return False
        rng = random.Random(op.get("seed", 0))
        path = self.full(db["path"])
        with open(path, "wb") as out:
            out.write(db["bytes"])
        connection = connect(path)
        if rng.random() < 0.3:
            connection.execute("PRAGMA journal_mode = WAL")
        wal = connection.execute("PRAGMA journal_mode").fetchone()[0] == b"wal"
        writer = Writer(connection, rng, self.number)
        done = []
        for sql in self.statements(op, writer):
            try:
                if connection.execute(sql).rowcount > 0:
                    done.append(sql + ";\n")
            except (sqlite3.IntegrityError, sqlite3.OperationalError):
                pass
        self.number = writer.number
        content = Content.of_connection(connection)
        connection.close()
        self.log.append(f"cp $R/{self.release(op['like']).version}/{db['name']}.db \"$S/{db['path']}\"")
        self.log_sql(db["path"], ("PRAGMA journal_mode = WAL;\n" if wal else "") + "".join(done))
        for number, places in content.numbered.items():
            self.counts["acknowledged"] += 1
            self.alive[number] = places[0]
        self.state.files[db["path"]] = File(content, name=db["name"], plain=True, wal=wal, kind=db["kind"])
        facts = os.stat(path)
        self.owners[db["path"]] = (facts.st_uid, stat.S_IMODE(facts.st_mode))

    def do_damage(self, op):
        path, file = self.file_of(op)
        if not path or path in self.open or file.link:
            return False
        full = self.full(path)
        self.settle_sidecars(path)
        size = os.path.getsize(full)
        how = op["how"]
        # The schema of a user database cannot be read; the schema of other databases can, but rows are missing.
        half = 1000 if self.kind(path) == "user" else size // 2 + 100
        with open(full, "r+b") as out:
            if how == "truncate":
                out.truncate(half)
                self.log.append(f"truncate -s {half} \"$S/{path}\"")
            elif how == "zero":
                out.write(bytes(100))
                self.log.append(f"dd if=/dev/zero of=\"$S/{path}\" bs=100 count=1 conv=notrunc status=none")
            else:
                out.write(b"this is not a database " * 20)
                self.log.append(f"for i in $(seq 20); do printf 'this is not a database '; done | dd of=\"$S/{path}\" conv=notrunc status=none")
        for suffix in SIDECARS:
            if os.path.exists(full + suffix):
                os.remove(full + suffix)
        self.destroy(path, file)
        self.state.files[path] = File(None, name=file.name, digest=digest(full), kind=file.kind, readable=how == "truncate" and half > 1000)
        self.state.files[path].rest = rest(full, half)

    def destroy(self, path, file):
        gone = set(file.content.numbered)
        for row in file.content.rejected:
            gone |= numbers_of(row, file.content.rejected_columns)
        for number in gone:
            self.alive.pop(number, None)
            self.destroyed[number] = path

    def do_remove(self, op):
        path, file = self.file_of(op)
        if not path or path in self.open or file.link:
            return False
        self.settle_sidecars(path)
        for suffix in ("",) + SIDECARS:
            if os.path.exists(self.full(path) + suffix):
                os.remove(self.full(path) + suffix)
        self.log.append(f"rm \"$S/{path}\"")
        self.destroy(path, file)
        del self.state.files[path]
        self.owners.pop(path, None)

    def do_keepcopy(self, op):
        path, file = self.file_of(op)
        if not path or path in self.open or file.link:
            return False
        self.settle_sidecars(path)
        shutil.copyfile(self.full(path), os.path.join(self.directory, "copy-" + path))
        self.log.append(f"cp \"$S/{path}\" \"$W/copy-{path}\"")
        self.copies[path] = file

    def do_restorecopy(self, op):
        path, file = self.file_of(op)
        if not path or path in self.open or path not in self.copies or file.link or self.kind(path) not in ("shared", "cache"):
            return False
        self.settle_sidecars(path)
        for suffix in SIDECARS:
            if os.path.exists(self.full(path) + suffix):
                os.remove(self.full(path) + suffix)
        shutil.copyfile(os.path.join(self.directory, "copy-" + path), self.full(path))
        self.log.append(f"cp \"$W/copy-{path}\" \"$S/{path}\"")
        old = self.copies[path]
        self.destroy(path, file)
        for number, places in old.content.numbered.items():
            self.alive[number] = places[0]
            self.deleted.pop(number, None)
        same = old.content.marker == file.content.marker
        self.state.files[path] = old.but(restored=file.restored or not same, plain=file.plain)

    def do_copy(self, op):
        if self.open:
            return False
        self.names += 1
        new = os.path.join(self.directory, f"store{self.names}")
        subprocess.run(["cp", "-a", self.store, new], check=True)
        shutil.rmtree(self.store)
        os.rename(new, self.store)
        self.state.copied = True
        self.log.append('cp -a "$S" "$S.copy"; rm -r "$S"; mv "$S.copy" "$S"')

    # Operations of the command

    def words(self, op):
        name = op["op"]
        if name == "apply":
            words = ["apply", "--json", self.release(op["to"]).manifest]
            if op.get("downgrade"):
                words.append("--allow-downgrade")
            for taken in op.get("take", ()):
                words += ["--take-over", taken]
            if op.get("accept"):
                words.append("--accept-unpreserved")
        elif name == "rollback":
            words = ["rollback", "--json"]
            if op.get("to") is not None:
                words += ["--to", f"{op['to'] + 1}.0.0"]
            for taken in op.get("take", ()):
                words += ["--take-over", taken]
        elif name == "reset":
            words = ["reset", op["db"], "--json"] + ["--set-user-data-aside"] * bool(op.get("aside"))
        elif name == "clean":
            words = ["clean", "-q"] + (["--quarantine-older-than", "0"] if op.get("older") else []) + (["--keep", "1"] if op.get("keep") else [])
        elif name == "salvage":
            words = ["reset", op["db"], "--salvage-again", "-q"]
        elif name == "hold":
            words = ["hold", "-q", "--reason", "story"] + ([] if op["v"] == "*" else [f"{op['v'] + 1}.0.0"])
        elif name == "unhold":
            words = ["unhold", "--all", "-q"]
        else:
            words = [name, "-q"]
        return words

    def usable(self, op):
        """Returns the operation without the features that this binary lacks."""
        op = dict(op)
        if "take-over" not in self.features:
            op.pop("take", None)
        if "accept" not in self.features:
            op.pop("accept", None)
        if op["op"] == "apply" and "take" in op:
            # A shrunk story may have fewer databases.
            op["take"] = [name for name in op["take"] if name in self.release(op["to"]).databases]
        return op

    def command(self, op):
        op = self.usable(op)
        if op["op"] == "reset" and self.state.installed is None:
            return False
        if self.options.without & {"downgrade"}:
            op.pop("downgrade", None)
        outcomes = getattr(self.oracle, op["op"])(self.state, op)
        deep = self.deep_plan(op) if op["op"] == "apply" and not self.beside else None
        ended = self.moult(*self.words(op))
        if op["op"] == "apply":
            self.last = op
        if deep:
            self.judge(deep_faults(deep, ended), op)
        self.conclude(op, ended, outcomes)

    def deep_plan(self, op):
        """Runs `plan --deep` before an update; None if recovery would change the store between the two."""
        if glob.glob(f"{self.store}/.moult/transactions/*"):
            return None
        before = self.bytes()
        self.counts["deep plans compared"] += 1
        planned = self.moult("plan", "--deep", "--json", *self.words(op)[2:])
        self.judge([("unchanged", f"plan --deep changed {name}") for name in differing(before, self.bytes())], op)
        return planned

    do_apply = do_rollback = do_reset = do_hold = do_unhold = do_clean = command

    def do_salvage(self, op):
        if "quarantine" not in self.features or self.state.installed is None:
            return False
        return self.command(op)

    def do_saved(self, op):
        """Saves a plan, lets the app continue, and applies exactly that plan, or nothing."""
        inner = self.usable(op["cmd"])
        saved = os.path.join(self.directory, "saved.plan")
        if os.path.exists(saved):
            os.remove(saved)
        planned = self.moult("plan", "-q", "-o", saved, *self.words(inner)[2:])
        if op.get("write"):
            self.do_write(op["write"])
        if planned.status != CHANGES:
            return False
        outcomes = [Outcome({4}, self.state, same=True)] + list(self.oracle.apply(self.state, inner))
        self.conclude(inner, self.moult("apply", "--json", "--plan", saved), outcomes)

    def do_again(self, op):
        """Applies the installed release again, which repairs the release or changes nothing."""
        if self.state.installed is None:
            return False
        return self.command({"op": "apply", "to": self.state.installed})

    def conclude(self, op, ended, outcomes):
        there = self.look()
        tried = []
        if self.beside and self.beside.app:
            # A command may find the database in use, or a sidecar of another user.
            refused = {BUSY, REFUSED} if self.beside.app.kind.runs == "other user" else {BUSY}
            outcomes = [*outcomes, Outcome(refused, self.state, same=True)]
        for outcome in outcomes:
            everything = self.compare(outcome, op, ended, there)
            found = [(check, text) for check, text in everything if check in self.checks]
            if not found:
                if any(check in ("exit", "version", "schema") for check, _ in everything):
                    # The next state cannot be predicted.
                    raise CutShort()
                self.accept(outcome, op, ended, there)
                self.close_all()
                return
            tried.append((exit_differs(found), len(found), len(tried), found, outcome))
        _, _, _, found, outcome = min(tried, key=lambda t: t[:3])
        why = getattr(outcome, "why", None)
        note = f"exit {sorted(outcome.exits)}" + (f" ({why})" if why else "") + (f", {len(tried)} outcomes" if len(tried) > 1 else "")
        raise Failed(found[:1] + [("predicted", note), ("ended", f"exit {ended.status}: {ended.told[:600]}")] + found[1:], op)

    def do_kill(self, op):
        return self.strike(op, ["-a", "kill" if not op.get("torn") else "torn"])

    def do_full(self, op):
        return self.strike(op, ["-a", "ENOSPC", "-g"])

    def do_meanwhile(self, op):
        """Makes the app write at some moment during a command."""
        path, file = self.file_of(op["write"])
        inner = self.usable(op["cmd"])
        if not path or self.open or self.options.tools.strike is None:
            return False
        report, program = os.path.join(self.directory, "strike"), self.writer(path, op["write"]["seed"])
        moment = ["-n", str(op["at"]), *(["-c", op["call"]] if "call" in op else [])]
        before = [self.options.tools.strike, "-o", report, "-a", "run", *moment, "-x", program, "--"]
        outcomes = list(getattr(self.oracle, inner["op"])(self.state, inner))
        ended = self.moult(*self.words(inner), before=before, note=f"$STRIKE -o $W/report -a run {' '.join(moment)} -x '{self.shell([program])}' -- ")
        facts = report_of(report)
        ended.status = facts["ending"]
        if not facts["struck"]:
            self.counts["strikes that missed"] += 1
            self.conclude(inner, ended, outcomes)
            return
        self.struck = True
        try:
            self.counts["rows written meanwhile"] += (wrote := self.acknowledge())
            self.wrote_meanwhile = wrote > 0
            self.conclude(inner, ended, [Outcome({DONE, REFUSED, BUSY, 1}, None, loose="the app wrote meanwhile")])
        finally:
            self.struck = False

    def writer(self, path, seed):
        """Returns the command line of a program that writes rows, and reports the rows that it has committed."""
        out = os.path.join(self.directory, "committed")
        if os.path.exists(out):
            os.remove(out)
        self.number += 40
        return f"{sys.executable} {os.path.join(HERE, 'app.py')} {self.full(path)} {seed} {self.number - 40} {out}"

    def acknowledge(self):
        try:
            with open(os.path.join(self.directory, "committed"), "rb") as file:
                statements, rows = pickle.load(file)
        except FileNotFoundError:
            return 0
        self.counts["acknowledged"] += len(rows)
        self.alive.update(rows)
        return statements

    def strike(self, op, how):
        inner = self.usable(op["cmd"])
        if self.open or self.options.tools.strike is None or inner["op"] == "reset" and self.state.installed is None:
            return False
        report = os.path.join(self.directory, "strike")
        before = [self.options.tools.strike, "-o", report, *how, "-n", str(op["at"]), "--"]
        outcomes = list(getattr(self.oracle, inner["op"])(self.state, inner))
        self.is_recovering = True
        ended = self.moult(*self.words(inner), before=before, note=f"$STRIKE -o $W/report {' '.join(how)} -n {op['at']} -- ")
        facts = report_of(report)
        ending = facts["ending"]
        if not facts["struck"]:
            ended.status = ending
            self.counts["strikes that missed"] += 1
            self.is_recovering = False
            if self.beside:
                self.beside.end()
            self.conclude(inner, ended, outcomes)
            return
        self.counts["strikes"] += 1
        if op["op"] == "full" and ending == 6:
            self.counts["exit 6 on a full disk"] += 1
        wrote = 0
        if "write" in op and self.file_of(op["write"])[0]:
            program = self.writer(self.file_of(op["write"])[0], op["write"]["seed"])
            self.log.append(self.shell([program]).strip('"'))
            subprocess.run(program, shell=True, stderr=subprocess.DEVNULL)
            wrote = self.acknowledge()
            self.counts["rows written before recovery"] += wrote
        if op.get("undo"):
            self.moult("recover", "--undo", "-q")
        if self.beside and self.beside.app:
            # The app goes on while the command is recovered.
            busy = self.moult("recover", "-q")
            if busy.status not in (DONE, BUSY):
                self.judge([("exit", f"beside an app, recover exited with {busy.status}: {busy.err.strip()[:400]}")], op)
            self.beside.end()
            wrote += len(self.beside.rows)
        self.is_recovering = False
        settled = self.moult("recover", "-q")
        if settled.status not in (0,):
            self.judge([("exit", f"after a strike at call {op['at']} ({facts['at']}) of {inner['op']}, recover exited with {settled.status}: "
                                 f"{settled.err.strip()[:400]}")], op)
        if inner["op"] == "rollback":
            # Whether the hold exists after a kill is not predicted.
            self.moult("unhold", "--all", "-q")
            self.state = self.state.copy()
            self.state.holds = {}
            for outcome in outcomes:
                if outcome.state:
                    outcome.state = outcome.state.copy()
                    outcome.state.holds = {}
        unchanged = self.state.copy()
        if inner["op"] == "rollback":
            unchanged.holds = {}
        both = [Outcome({ending}, unchanged)]
        for outcome in outcomes:
            if not outcome.same:
                made = Outcome({ending}, outcome.state, outcome.kept, outcome.rejected, loose=outcome.loose)
                made.__dict__.update({k: v for k, v in outcome.__dict__.items() if k in ("leads_to", "purpose")})
                both.append(made)
        ended.status = ending
        if wrote:
            both = [Outcome({ending}, None, loose="the app wrote before recovery")]
        self.struck = True
        try:
            self.conclude(inner, ended, both)
        finally:
            self.struck = False

    struck = False

    def do_plan(self, op):
        """Runs `plan` twice, and checks that it changes nothing and has the same result both times."""
        op = self.usable(op)
        before = self.bytes()
        words = ["plan", "--json", self.release(op["to"]).manifest] + ["--deep"] * bool(op.get("deep"))
        for taken in op.get("take", ()):
            words += ["--take-over", taken]
        if op.get("accept"):
            words.append("--accept-unpreserved")
        if op.get("downgrade"):
            words.append("--allow-downgrade")
        ended = self.moult(*words)
        found = [("unchanged", f"plan changed {name}") for name in differing(before, self.bytes())]
        outcomes = list(self.oracle.apply(self.state, op))
        allowed = set()
        for outcome in outcomes:
            for status in outcome.exits:
                if status == DONE:
                    allowed |= {CHANGES, DONE}
                elif status == BUSY:
                    allowed |= {CHANGES, BUSY}
                elif status == REFUSED and getattr(outcome, "why", "") in LATE:
                    # Only --deep checks whether rows and schemas fit, and runs migrations.
                    allowed |= {REFUSED, CHANGES}
                else:
                    allowed.add(status)
        if ended.status not in allowed:
            found.append(("exit", f"plan exited with {ended.status}, expected {sorted(allowed)}: {ended.told[:300]}"))
        if ended.status == CHANGES and ended.events:
            per = [[] if o.loose else plan_faults(o, ended.events[-1]) for o in outcomes if o.loose or DONE in o.exits]
            if per and all(per):
                found += min(per, key=len)
        self.judge(found, op)

    def do_status(self, op):
        before = self.bytes()
        ended = self.moult("status", "--json")
        found = [("unchanged", f"status changed {name}") for name in differing(before, self.bytes())]
        try:
            told = json.loads(ended.out)
        except ValueError:
            told = {}
            found.append(("status", f"exit {ended.status}: {ended.told[:200]}"))
        installed = self.state.installed
        if installed is not None and told:
            if told.get("installed") != self.release(installed).version:
                found.append(("status", f"status says that {told.get('installed')} is installed, but it is {self.release(installed).version}"))
            for db in told.get("databases", []):
                spec = self.release(installed).databases.get(db["name"])
                if spec and spec["kind"] != "reference" and (db["state"] == "missing") != (spec["path"] not in self.state.files):
                    found.append(("status", f"{db['name']} is {db['state']}, but the file {'exists' if spec['path'] in self.state.files else 'does not exist'}"))
        self.judge(found, op)

    def do_pack(self, op):
        """Packs a release with a misspelled preserve entry, which must be refused."""
        import catalogue as making
        index = op["like"]
        spec = self.release(index)
        names = [n for n, db in sorted(spec.databases.items()) if db["kind"] == "shared" and db["preserve"]]
        if not names:
            return False
        work = os.path.join(self.directory, "misspelled")
        shutil.copytree(spec.directory, work, ignore=shutil.ignore_patterns("out"))
        draft = json.load(open(os.path.join(work, "draft.json")))
        entry = draft["databases"][names[0]]["preserve"][0]
        if op["how"] == "table":
            entry["table"] = entry["table"][:-1] + "q"
        elif op["how"] == "columns":
            entry["columns"] = {"v": "nosuch"}
        else:
            entry["where"] = {"string": '"edtable" = 1', "column": "edtable = 1", "random": "random() % 2 = 0", "syntax": "own = = 1",
                              "time": "n < strftime('%s', 'now')", "subquery": "n IN (SELECT n FROM nosuch)"}[op["how"]]
        with open(os.path.join(work, "draft.json"), "w") as out:
            json.dump(draft, out)
        ended = self.spawn([self.catalogue.moult, "pack", "-q", os.path.join(work, "draft.json"), "-o", os.path.join(work, "out")])
        self.log.append(f"# pack of release {spec.version} with \"preserve\": {json.dumps(entry)} for {names[0]}: exit {ended.status}")
        shutil.rmtree(work)
        if ended.status not in (1, 3, 64):
            self.judge([("pack", f"pack accepts a wrong preserve ({op['how']}): {json.dumps(entry)}, exit {ended.status}")], op)

    def do_quarantine(self, op):
        if "quarantine" not in self.features:
            return False
        what = op["what"]
        sets = sorted(name for name, kept in self.state.sets.items() if what != "foreign" or kept.reasons == {"foreign"})
        if not sets:
            return False
        chosen = sets[op["pick"] % len(sets)]
        kept = self.state.sets[chosen]
        if what == "list":
            ended = self.moult("quarantine", "--json")
            told = {one.get("id"): one for one in (ended.events[0].get("quarantine", []) if ended.events else [])}
            found = [("restore", f"moult quarantine does not list {name}") for name in sets if name not in told]
            found += [("restore", f"moult quarantine lists {name}, which does not exist") for name in told if name not in sets]
            for name, one in told.items():
                mine = self.state.sets.get(name)
                if mine and (one.get("database"), one.get("kind"), one.get("release") or None) != (mine.database, mine.kind, mine.release or None):
                    found.append(("restore", f"moult quarantine says of {name}: {one}"))
            self.judge(found, op)
        elif what == "export":
            return self.export(op, chosen, kept)
        elif what == "remove":
            outcome = Outcome({DONE}, self.state)
            outcome.removed = {chosen}
            self.conclude(op, self.moult("quarantine", "--remove", chosen), iter([outcome]))
        elif what == "age":
            # A file from before moult is never removed by its age, unless its set is named.
            named = [chosen] if kept.reasons == {"foreign"} else []
            outcome = Outcome({DONE}, self.state)
            outcome.removed = set(named) or {name for name, kept in self.state.sets.items() if kept.reasons != {"foreign"}}
            ended = self.moult("quarantine", "--remove", "--older-than", "0", "--user-data", *named)
            self.conclude(op, ended, iter([outcome]))
        elif what in ("restore", "table", "foreign"):
            if self.state.installed is None:
                return False
            words = ["quarantine", "--restore", chosen]
            table = None
            if what == "table":
                tables = kept.file.content.tables if kept.file.content else []
                if not tables:
                    return False
                table = tables[op["pick"] % len(tables)]
                words += ["--table", table]
            present = self.restorable(kept)
            ended = self.moult(*words)
            exits = {DONE, REFUSED} | ({BUSY} if self.open else set()) | ({1} if kept.file.content is None or any(f.content is None for f in self.state.files.values()) else set())
            outcome = Outcome(exits, None, loose="restore from quarantine")
            outcome.restores = kept
            if present and not table:
                locked = self.state.is_locked(kept.path)
                outcome.exits, outcome.whole = ({BUSY}, None) if locked else ({DONE}, present)
            self.conclude({"op": "restore", "set": chosen, "table": table}, ended, iter([outcome]))
            if ended.status == DONE:
                self.counts["restored"] += 1
            elif what == "foreign" and ended.status == REFUSED:
                return self.export(op, chosen, kept)

    def restorable(self, kept):
        """Returns the file whose whole content a set can replace; None if that is not certain."""
        db = self.release(self.state.installed).at(kept.path)
        present = self.state.files.get(kept.path)
        is_certain = db and present and db["name"] == kept.database and db["kind"] in ("user", "shared") and kept.file.content is not None \
            and not kept.is_rows
        return present if is_certain and present.content is not None and not present.link else None

    def export(self, op, chosen, kept):
        if kept.file.content is None:
            return False
        target = os.path.join(self.directory, f"export-{self.counts['exports']}.db")
        self.counts["exports"] += 1
        ended = self.moult("quarantine", "--export", target, chosen)
        if ended.status != 0:
            self.judge([("restore", f"export of {chosen} exited with {ended.status}: {ended.told[:300]}")], op)
        exported = Content.of_file(target)
        found = [("restore", f"export of {chosen}: {text}") for _, text in exported.differences(kept.file.content)]
        if sorted(exported.rejected) != sorted(kept.file.content.rejected):
            found.append(("restore", f"export of {chosen}: moult_rejected differs"))
        self.judge(found, op)

    def removed(self, kept):
        """Stops expecting the rows and values that were only in a removed set."""
        left = [f for f in self.state.files.values()] + [k.file for k in self.state.sets.values()]
        for number in kept.file.content.numbered if kept.file.content else ():
            if number not in self.alive:
                continue
            places = [place for f in left if f.content for place in f.content.numbered.get(number, ())]
            if not places:
                self.destroyed[number] = self.alive.pop(number)
            else:
                # Only values that still exist somewhere must be kept.
                whole = [place for place in places if is_in(self.alive[number][1], place[1])]
                self.alive[number] = max(whole, key=lambda place: len(place[1])) if whole else places[0]

    # Contents

    def look(self):
        """Returns the contents of the store, read without the command."""
        there = There()
        for name in os.listdir(self.store):
            if name in ("moult.json", ".moult") or name.endswith(SIDECARS):
                continue
            full = self.full(name)
            if os.path.islink(full) and os.readlink(full).startswith(".moult/"):
                there.links[name] = full
                continue
            there.files[name] = self.read(full)
        moult = os.path.join(self.store, ".moult")
        try:
            with open(os.path.join(moult, "current/manifest.json")) as file:
                there.version = json.load(file)["version"]
        except FileNotFoundError:
            pass
        for shelf in ("quarantine", "transactions"):
            directory = os.path.join(moult, shelf)
            if os.path.isdir(directory):
                names = os.listdir(directory)
                if "CACHEDIR.TAG" in names:
                    there.tags.append(f".moult/{shelf}/CACHEDIR.TAG")
                names = [n for n in names if os.path.isdir(os.path.join(directory, n))]
                if shelf == "quarantine":
                    there.sets = {n: os.path.join(directory, n) for n in names}
                else:
                    there.transactions = names
        generations = os.path.join(moult, "generations")
        if os.path.isdir(generations):
            names = os.listdir(generations)
            there.generations = sorted(int(n.split(".")[0]) - 1 for n in names)
        return there

    def read(self, full):
        facts = os.stat(full) if os.path.exists(full) else None
        found = File(None)
        found.facts = facts
        found.fault = None
        if facts is None or not stat.S_ISREG(facts.st_mode):
            found.fault = "no file"
            return found
        try:
            found.content = Content.of_file(full)
            found.content.objects
        except sqlite3.DatabaseError as error:
            found.content, found.fault = None, str(error)
            if full not in {self.full(p) for p in self.open}:
                found.digest = digest(full)
        return found

    def read_set(self, directory, path):
        """Returns the record and the content of a set in quarantine."""
        name = os.path.basename(path)
        return record_in(directory), self.read_still(os.path.join(directory, name))

    def read_still(self, full):
        """Reads a file that must not change by a single byte."""
        scratch = os.path.join(self.directory, "still.db")
        for suffix in ("",) + SIDECARS:
            if os.path.exists(scratch + suffix):
                os.remove(scratch + suffix)
        files.copy(full, scratch)
        if not os.path.exists(scratch):
            found = File(None)
            found.fault, found.facts = "no file", None
            return found
        found = self.read(scratch)
        found.facts, found.digest = os.stat(full), digest(full)
        return found

    def bytes(self):
        """Returns a digest of every file, except files that SQLite may write next to a database that is read, and the record of the
        last attempt to update."""
        found = {}
        for directory, below, plain in os.walk(self.store):
            for name in plain:
                full = os.path.join(directory, name)
                relative = os.path.relpath(full, self.store)
                if name.endswith("-shm") or os.path.islink(full) or relative == ".moult/attempt.json":
                    continue
                if any(relative.startswith(path) for path in [*self.open, self.beside and self.beside.path] if path):
                    continue
                found[relative] = digest(full)
        return found

    # Comparing

    def compare(self, outcome, op, ended, there):
        if outcome.loose:
            return self.compare_loosely(outcome, op, ended, there)
        found = self.message_faults(ended)
        if ended.status not in outcome.exits:
            found.append(("exit", f"{op['op']} exited with {ended.status}, expected {sorted(outcome.exits)}"))
        state = outcome.state
        found += self.compare_version(state, there)
        for path in sorted(set(state.files) | set(there.files)):
            if path not in there.files:
                found.append(("files", f"{path} is missing"))
            elif path not in state.files:
                found.append(("files", f"{path} exists, but was not expected"))
            else:
                found += self.compare_file(path, state.files[path], there.files[path], outcome.rejected.get(path))
        found += self.compare_links(state, there)
        found += self.compare_kept(outcome, there)
        found += [("tag", f"{path} exists") for path in there.tags]
        if self.beside and self.beside.app:
            # Rows that the operation removes are still expected here, except those of the companion.
            mine = tuple(f"row {number} of " for number in self.beside.rows)
            found += [(check, f"{text} (beside an app: {self.beside.app.kind.name})") for check, text in self.accounted(there)
                      if check == "lost" and text.startswith(mine)]
        if there.transactions:
            found.append(("left", f"left over in transactions: {there.transactions}"))
        if not self.struck and not outcome.same and ended.status == DONE and op["op"] in ("apply", "rollback"):
            found += plan_faults(outcome, next((e["plan"] for e in ended.events if e.get("event") == "plan"), None))
            found += result_faults(outcome, next((e for e in ended.events if e.get("event") == "result"), {}))
        return found

    def message_faults(self, ended):
        """Checks that an error does not name staged files of an update, which may be removed before the error is read;
        returns the faults."""
        inside = os.path.join(self.store, ".moult/transactions")
        return [("message", f"the error names a file of the update: {ended.told[:300]}")] if inside in ended.told else []

    def compare_version(self, state, there):
        wanted = self.release(state.installed).version if state.installed is not None else None
        return [] if there.version == wanted else [("version", f"{there.version} is installed, expected {wanted}")]

    def compare_file(self, path, wanted, found, rejected):
        name = f"{path}: "
        if wanted.content is None:
            same = digest(self.full(path)) == wanted.digest
            return [] if same else [("rows", name + "the damaged file has changed")]
        if found.content is None:
            return [("integrity", name + (found.fault or "cannot be read"))]
        faults = [(check, name + text) for check, text in found.content.differences(wanted.content)]
        faults += [(check, name + text) for check, text in found.content.faults()]
        if found.content.all("SELECT 1 FROM sqlite_schema WHERE name = 'moult_transaction'") and not glob.glob(f"{self.store}/.moult/transactions/*/*ed.json"):
            faults.append(("rows", name + "the marker of an update that is over is still there"))
        faults += [(check, name + text) for check, text in rejected_faults(found.content, wanted.content, rejected)]
        if path in self.state.files and path in self.owners and path not in self.open:
            uid, mode = self.owners[path]
            if (found.facts.st_uid, stat.S_IMODE(found.facts.st_mode)) != (uid, mode):
                faults.append(("owner", name + f"uid {found.facts.st_uid} mode {stat.S_IMODE(found.facts.st_mode):o}, was {uid} {mode:o}"))
        if "mode" in self.checks:
            wal = self.is_wal(path)
            if wanted.wal is not None and wal != wanted.wal and not (self.beside and self.beside.may_have(path, wal)):
                faults.append(("mode", name + f"journal mode is {'wal' if wal else 'delete'}, was {'wal' if wanted.wal else 'delete'}"))
        return faults

    def is_wal(self, path):
        connection = self.open.get(path)
        if connection:
            return connection.execute("PRAGMA journal_mode").fetchone()[0] == b"wal"
        with open(self.full(path), "rb") as file:
            return file.read(20)[18:20] == b"\2\2"

    def compare_links(self, state, there):
        found = []
        if state.installed is not None:
            wanted = {db["path"]: db for db in self.release(state.installed).databases.values() if db["kind"] == "reference"}
            for path in sorted(set(wanted) | set(there.links)):
                if path not in there.links:
                    found.append(("files", f"{path} is not a link"))
                elif path not in wanted:
                    found.append(("files", f"{path} is a link, but the release has no link there"))
                elif not os.path.exists(there.links[path]) or digest(there.links[path]) != wanted[path]["sha256"]:
                    found.append(("rows", f"{path}: the read-only database differs from the shipped one"))
        return found

    def compare_kept(self, outcome, there):
        found, new = [], {n: d for n, d in there.sets.items() if n not in self.state.sets}
        found += [("quarantine", f"the set {n} is missing") for n, kept in self.state.sets.items()
                  if n not in there.sets and n not in outcome.removed and not self.is_collected(kept, outcome, n)]
        found += [("quarantine", f"the set {n} should have been removed") for n in outcome.removed if n in there.sets]
        outcome.matched = {}
        for kept in outcome.kept:
            name = next((n for n in sorted(new) if n not in outcome.matched and n.endswith("-" + kept.database)), None)
            if name is None:
                found.append(("quarantine", f"{kept.path} was not kept: expected a set of {kept.database}, reason {'/'.join(sorted(kept.reasons))}"
                              + (f", rows {kept.rows}" if kept.rows else "")))
                continue
            outcome.matched[name] = kept
            record, copy = self.read_set(new[name], kept.path)
            if kept.earlier and os.path.basename(record.get("path", "")) == kept.earlier:
                # If the database was moved and replaced at the same time, either path is correct.
                kept.path = kept.earlier
                record, copy = self.read_set(new[name], kept.path)
            found += self.compare_set(name, kept, record, copy)
        for name in sorted(new):
            if name not in outcome.matched:
                if os.listdir(new[name]):
                    found.append(("quarantine", f"the set {name} was not expected"))
                else:
                    found.append(("left", f"an empty directory is left in quarantine: {name}"))
        return found

    def compare_set(self, name, kept, record, copy):
        found = []
        if kept.file.content is None:
            if copy.digest != kept.file.digest:
                found.append(("quarantine", f"{name} does not have the unchanged damaged file"))
        elif copy.content is None:
            found.append(("quarantine", f"{name}: {copy.fault}"))
        elif record.get("rowsOnly"):
            found += [("quarantine", f"{name}: {text}") for text in row_faults(copy.content, kept)]
        else:
            found += [("quarantine", f"{name}: {text}") for _, text in copy.content.differences(kept.file.content)]
            if sorted(copy.content.rejected) != sorted(kept.file.content.rejected):
                found.append(("quarantine", f"{name}: moult_rejected differs"))
        wanted = {"quarantine": 1, "database": kept.database, "kind": kept.kind, "path": self.full(kept.path), "release": kept.release}
        for field, value in wanted.items():
            if field == "release" and value is None:
                continue
            if record.get(field) != value:
                found.append(("record", f"{name}: {field} is {record.get(field)!r}, expected {value!r}"))
        if record.get("reason") not in kept.reasons:
            found.append(("record", f"{name}: reason is {record.get('reason')!r}, expected {'/'.join(sorted(kept.reasons))}"))
        for field in ("why", "time"):
            if not isinstance(record.get(field), str):
                found.append(("record", f"{name}: {field} is missing"))
        if kept.path in self.owners:
            uid, mode = self.owners[kept.path]
            owner = record.get("owner") or {}
            if (owner.get("uid"), str(owner.get("mode", "")).lstrip("0")) != (uid, f"{mode:o}"):
                found.append(("record", f"{name}: owner is {owner}, expected uid {uid}, mode {mode:04o}"))
        if kept.reasons <= {"reset", "unfit-cache"}:
            # All rows of the database were set aside. Rows of a damaged database are counted as far as they can be read, and
            # rows of a cache with another schema are not counted.
            if kept.file.content is not None and (record.get("rows") or kept.reasons == {"reset"}):
                rows = {table: (count, count) for table, count in kept.file.content.row_counts().items()}
                found += [("record", f"{name}: " + text) for text in count_faults(rows, record.get("rows", {}))]
        elif kept.reasons != {"taken-over"}:
            found += [("record", f"{name}: " + text) for text in count_faults(kept.rows, record.get("rows", {}))]
        return found

    def compare_loosely(self, outcome, op, ended, there):
        """Compares an outcome that is not predicted completely: each row may be in several places, but must be in one."""
        found = []
        if ended.status not in outcome.exits:
            found.append(("exit", f"{op['op']} exited with {ended.status}, expected {sorted(outcome.exits)} ({outcome.loose})"))
        if ended.status in (REFUSED, BUSY, 1) and not self.struck:
            same = Outcome(outcome.exits, self.state, same=True)
            return found + self.compare(same, op, ended, there)
        found += self.message_faults(ended)
        self.places = None
        restored = [outcome.restores.file] if hasattr(outcome, "restores") else []
        found += self.accounted(there, restored)
        for path, file in there.files.items():
            before = self.state.files.get(path)
            # A cache that the story has damaged may stay as long as its schema can be read.
            if file.content is not None and not (before and before.content is None):
                found += [(check, f"{path}: {text}") for check, text in file.content.faults()]
        if getattr(outcome, "whole", None) and not (self.beside and self.beside.app):
            path = outcome.restores.path
            found += self.compare_file(path, outcome.whole.but(content=outcome.restores.file.content), there.files[path], None)
        if hasattr(outcome, "leads_to"):
            expected = State()
            expected.installed = outcome.leads_to
            found += self.compare_version(expected, there)
        return found

    def accounted(self, there=None, restored=()):
        """Checks that every row of the app that was not deleted is in some place with its values; returns the faults."""
        there = there or self.look()
        found = []
        places = collections.defaultdict(list)
        rejected = set()
        live = set()
        for path, file in there.files.items():
            if file.content is None:
                continue
            for number, rows in file.content.numbered.items():
                places[number] += [row for _, row in rows]
                live.add(number)
            for row in file.content.rejected:
                rejected |= numbers_of(row, file.content.rejected_columns)
        shelves = [self.state.sets[n].file for n in there.sets if n in self.state.sets]
        for name, directory in there.sets.items():
            if name not in self.state.sets:
                record = record_in(directory)
                if "path" not in record:
                    found.append(("record", f"{name}: no record"))
                else:
                    shelves.append(self.read_set(directory, record["path"])[1])
        for file in shelves:
            if file.content is None:
                continue
            for number, rows in file.content.numbered.items():
                places[number] += [row for _, row in rows]
            for row in file.content.rejected:
                rejected |= numbers_of(row, file.content.rejected_columns)
        for number, (table, row) in self.alive.items():
            if number in rejected:
                continue
            if not any(is_in(row, other) for other in places[number]):
                what = "lost" if not places[number] else f"only as {places[number][0]}"
                found.append(("lost", f"row {number} of {table} {line(row, row.values())} is {what}"))
        allowed = {number for file in restored if file.content for number in file.content.numbered}
        # A file that does not belong to a database of the release may still have a row that was deleted elsewhere: this
        # row did not come back.
        before = {number for file in self.state.files.values() if file.content for number in file.content.numbered}
        for number in sorted(live & set(self.deleted) - allowed - before):
            found.append(("returned", f"row {number} was deleted, but is in a database"))
        for number in live & allowed & set(self.deleted):
            self.deleted.pop(number)
        return found

    def accept(self, outcome, op, ended, there):
        """Accepts the current state as the start of the next operation."""
        if outcome.loose:
            self.counts["loose"] += 1
            self.counts[f"loose: {outcome.loose}"] += 1
            if ended.status in (REFUSED, BUSY, 1) and not self.struck:
                return
        for name, kept in getattr(outcome, "matched", {}).items():
            kept.is_rows = bool(record_in(there.sets[name]).get("rowsOnly"))
            if kept.file.content is not None and (kept.is_rows or self.beside and self.beside.app):
                kept.file = kept.file.but(content=self.read_set(there.sets[name], kept.path)[1].content)
        refused = ended.status == REFUSED
        self.counts["refused" if refused else "busy" if ended.status == BUSY else "commands that were done"] += 1
        state = outcome.state.copy() if outcome.state else self.state.copy()
        if outcome.loose:
            self.adopt_all(state, outcome, there)
        else:
            for name, kept in outcome.matched.items():
                state.sets[name] = kept
                self.counts["sets in quarantine"] += 1
                self.counts["foreign sets"] += kept.reasons == {"foreign"}
                self.counts["rows in quarantine"] += sum(most for _, most in kept.rows.values()) if kept.rows else (
                    len(kept.file.content.numbered) if kept.file.content else 0)
            for path, rows in outcome.rejected.items():
                self.counts["rows rejected"] += sum(whose == "user" for *_, whose in rows)
                self.counts["shipped rows rejected"] += sum(whose == "shipped" for *_, whose in rows)
            for path, file in there.files.items():
                # If a check is disabled, the actual state is used.
                known = state.files.setdefault(path, file)
                if known.content is not None:
                    state.files[path] = known.but(content=file.content, wal=self.is_wal(path))
            state.files = {path: file for path, file in state.files.items() if path in there.files}
        for path, file in there.files.items():
            if file.facts:
                self.owners[path] = (file.facts.st_uid, stat.S_IMODE(file.facts.st_mode))
        self.counts["rows kept in their databases"] += sum(len(f.content.numbered) for f in state.files.values() if f.content)
        for path in list(self.copies):
            if path not in state.files:
                del self.copies[path]
        state.opened = self.state.opened
        gone = [state.sets.pop(n) for n in list(state.sets) if n not in there.sets and not self.is_collected(state.sets[n], outcome, n)]
        for name in [n for n in state.sets if n not in there.sets]:
            # Its rows are in another set now.
            database = state.sets.pop(name).database
            for other, kept in state.sets.items():
                if kept.is_rows and kept.database == database and other in there.sets:
                    kept.file = kept.file.but(content=self.read_set(there.sets[other], kept.path)[1].content)
        self.state = state
        for kept in gone:
            self.removed(kept)
        # The oracle does not predict which old releases are removed.
        state.generations = there.generations

    def is_collected(self, kept, outcome, name):
        """Returns whether the rows of a missing set may be in an older set of the database: only the newest sets stay separate."""
        return kept.is_rows and name not in outcome.removed and sum(
            k.is_rows and k.database == kept.database for k in self.state.sets.values()) >= 16

    def is_left(self, path, damaged):
        """Returns whether a damaged file is unchanged, apart from SQLite's header."""
        return damaged.readable and rest(self.full(path), damaged.rest[0]) == damaged.rest

    def adopt_all(self, state, outcome, there):
        for name, directory in there.sets.items():
            if name not in state.sets:
                record, copy = self.read_set(directory, record_in(directory).get("path", name.split("-", 2)[-1] + ".db"))
                state.sets[name] = Kept(record.get("database"), record.get("kind"), os.path.basename(record.get("path", "")), record.get("release"),
                                         {record.get("reason")}, copy)
                state.sets[name].is_rows = bool(record.get("rowsOnly"))
        old = state.files
        state.files = {}
        for path, file in there.files.items():
            # A damaged cache may stay.
            if path in old and old[path].content is None and self.is_left(path, old[path]):
                state.files[path] = old[path].but(digest=digest(self.full(path)))
                continue
            state.files[path] = old[path].but(content=file.content, digest=file.digest) if path in old else File(
                file.content, digest=file.digest, name=path.split(".")[0].split("-")[0])
            state.files[path].wal = file.content is not None and self.is_wal(path)
            state.files[path].link = os.path.islink(self.full(path))
            state.files[path].restored = hasattr(outcome, "restores") or state.files[path].restored
        if hasattr(outcome, "leads_to") and self.struck is False:
            went = outcome.leads_to
            if state.installed != went:
                state.before.append((state.installed, went))
                if getattr(outcome, "purpose", "") == "rollback" and state.installed is not None:
                    state.holds[self.release(state.installed).version] = True
                state.installed = went
                if went not in state.generations:
                    state.generations.append(went)
        if there.version:
            index = int(there.version.split(".")[0]) - 1
            if state.installed != index:
                state.before.append((state.installed, index))
                state.installed = index
                if index not in state.generations:
                    state.generations.append(index)
        for number, places in ((n, p) for f in state.files.values() if f.content for n, p in f.content.numbered.items()):
            self.alive.setdefault(number, places[0])


def is_in(row, other):
    """Returns whether two rows have the same values in all common columns."""
    return all(other.get(c) == v for c, v in row.items() if c in other)


LATE = ("does not fit", "the schema does not fit", "conflict", "clash", "foreign key", "a migration fails", "a migration loses rows")


class There:
    def __init__(self):
        self.files, self.links, self.sets = {}, {}, {}
        self.version = None
        self.tags, self.transactions, self.generations = [], [], []


def record_in(directory):
    try:
        with open(os.path.join(directory, "set.json")) as file:
            return json.load(file)
    except (FileNotFoundError, ValueError) as error:
        return {"fault": str(error)}


def exit_differs(found):
    return any(check == "exit" for check, _ in found)


def rest(path, size):
    """Returns the content of a file up to a size, without SQLite's header."""
    with open(path, "rb") as file:
        return size, hashlib.sha256(file.read(size)[100:]).hexdigest()


def differing(before, after):
    return sorted(name for name in set(before) | set(after) if before.get(name) != after.get(name) and not name.endswith("-wal"))


def row_of(raw, columns):
    """Returns the table and the values by column of a row in moult_rejected; None if they cannot be read."""
    named = dict(zip(columns, raw))
    table, row = named.get("table", "NULL"), named.get("row", "NULL")
    if table[0] not in "tb" or row[0] not in "tb":
        return None, None
    try:
        parsed = json.loads(bytes.fromhex(row[1:]).decode(errors="surrogateescape"))
    except ValueError:
        return bytes.fromhex(table[1:]).decode(errors="replace"), None
    return bytes.fromhex(table[1:]).decode(errors="replace"), parsed if isinstance(parsed, dict) else None


def numbers_of(raw, columns):
    _, row = row_of(raw, columns)
    number = row.get("n") if row else None
    if isinstance(number, str) and number.isdigit():
        number = int(number)
    return {number} if isinstance(number, int) else set()


def says(told, value):
    """Returns whether a JSON value in moult_rejected is exactly this value."""
    text = json.dumps(told) if not isinstance(told, str) else told
    if value == "NULL":
        return told is None
    if value[0] == "f":
        number = float.fromhex(value[1:])
        try:
            return float(told) == number and not isinstance(told, bool)
        except (TypeError, ValueError):
            return "inf" in text.lower() and number in (float("inf"), float("-inf"))
    if value[0] == "b":
        return value[1:].lower() in text.lower().replace(" ", "") or base64.b64encode(bytes.fromhex(value[1:])).decode() in text
    if value[0] == "t":
        raw = bytes.fromhex(value[1:])
        if value[1:].lower() in text.lower() and value[1:]:
            return True
        try:
            decoded = raw.decode()
        except UnicodeDecodeError:
            return base64.b64encode(raw).decode() in text
        return told == decoded or text == "'" + decoded.replace("'", "''") + "'"
    return str(told) == value or text == value


def rejected_faults(content, wanted, expected):
    """Compares moult_rejected, which must have all earlier rows, and one row for each newly rejected row."""
    columns = content.rejected_columns
    before = collections.Counter(getattr(wanted, "earlier", None) if hasattr(wanted, "earlier") else wanted.rejected)
    now = collections.Counter(content.rejected)
    found = [("rejected", f"a row of moult_rejected is missing: {line(columns, row)}") for row in (before - now)]
    new = list((now - before).elements())
    known = {(t, json.dumps(r, sort_keys=True)) for t, r in (row_of(raw, columns) for raw in before) if t}
    for table, names, row, whose in expected or ():
        value = dict(zip(names, row))
        match = None
        for raw in new:
            told_table, told = row_of(raw, columns)
            if told_table and told_table.lower() == table.lower() and told is not None and \
                    all(says(told[c], value[c]) for c in ("n", "k") if c in told and c in value) and ("n" in told or "k" in told):
                match = raw
                break
        if match is None:
            again = any(t and t.lower() == table.lower() and all(says(r.get(c), v) for c, v in value.items()) for t, r in
                        (row_of(raw, columns) for raw in before) if r is not None)
            if not (whose == "shipped" and again):
                found.append(("rejected", f"not in moult_rejected: {whose} row of {table} {line(names, row)}"))
            continue
        new.remove(match)
        told = row_of(match, columns)[1]
        for name, exactly in value.items():
            if name not in told:
                found.append(("values", f"moult_rejected has no {name} of the row of {table} {line(names, row)}"))
            elif not says(told[name], exactly):
                found.append(("values", f"moult_rejected has {told[name]!r} for {name} = {shown(exactly)} of {table}"))
    found += [("rejected", f"not expected in moult_rejected: {line(columns, raw)}") for raw in new]
    return found


def row_faults(content, kept):
    """Compares a set that has only rows with the old content, of which it must have the rows that are left behind."""
    found = []
    for table in content.tables:
        rows, old = collections.Counter(content.rows(table)), collections.Counter(kept.file.content.rows(table))
        least, most = kept.rows.get(table, (0, 0))
        if rows - old:
            found.append(f"{table} has rows that were not in the old content: {list(rows - old)[:3]}")
        if table != BESIDE.table and not least <= sum(rows.values()) <= most:
            found.append(f"{table} has {sum(rows.values())} rows, expected {least} to {most}")
    found += [f"{table} is missing, with {least} rows" for table, (least, _) in kept.rows.items() if least and table not in content.tables]
    return found


def count_faults(wanted, told):
    found = []
    for table, (least, most) in wanted.items():
        if table != BESIDE.table and not least <= (told or {}).get(table, 0) <= most:
            found.append(f"{(told or {}).get(table, 0)} rows of {table} are counted, expected {least if least == most else f'{least} to {most}'}")
    for table, count in (told or {}).items():
        if count and table not in wanted and table != BESIDE.table:
            found.append(f"{count} rows of {table} are counted, expected none")
    return found


def plan_faults(outcome, plan):
    """Checks that the plan says for each table how many rows will not survive; returns the faults."""
    rows = outcome.rows
    if plan is None:
        return [("plan", "no plan was printed")] if rows else []
    told = collections.defaultdict(dict)
    for effect in plan.get("effects", []):
        if effect.get("change", {}).get("do") == "migrate" and not effect["change"].get("rows"):
            # `moult plan` tries migrations, but `apply` prints its plan before it runs them.
            rows = {name: counts for name, counts in rows.items() if name != effect.get("database")}
        for row in effect.get("change", {}).get("rows") or []:
            told[effect.get("database")][row["table"]] = row.get("kept", 0)
    found = []
    for database in sorted(set(rows) | set(told)):
        check = "migration-plan" if database in outcome.migrated else "plan"
        found += [(check, f"{database}: " + text) for text in count_faults(rows.get(database, {}), told.get(database, {}))]
    return found


def counts_by_table(rows):
    """Returns the counts of each table that are not all 0."""
    names = ("carried", "rejected", "kept", "incomplete", "displaced")
    counts = {(row.get("database"), row["table"]): tuple(row.get(name, 0) for name in names) for row in rows}
    return {table: numbers for table, numbers in counts.items() if any(numbers)}


def deep_faults(deep, ended):
    """Compares what a deep plan has said with what the update did next."""
    if BUSY in (deep.status, ended.status):
        return []
    if deep.status not in (DONE, CHANGES) or ended.status != DONE:
        if (deep.status, deep.told) == (ended.status, ended.told):
            return []
        return [("deep", f"plan --deep exited with {deep.status} ({deep.told[:300]}), apply with {ended.status} ({ended.told[:300]})")]
    planned = counts_by_table(
        {"database": effect.get("database"), **row} for effect in deep.events[-1].get("effects", [])
        for row in effect.get("change", {}).get("rows") or [])
    result = next((e for e in ended.events if e.get("event") == "result"), {})
    made = counts_by_table(result.get("rows") or [])
    return [("deep", f"{table}: the deep plan says {planned.get(table)}, the update did {made.get(table)}")
            for table in sorted(set(planned) | set(made), key=str) if planned.get(table) != made.get(table)]


def result_faults(outcome, result):
    told = collections.defaultdict(dict)
    for row in result.get("rows") or []:
        told[row.get("database")][row["table"]] = row.get("kept", 0)
    found = []
    for database in sorted(set(outcome.rows) | set(told)):
        found += [("result", f"{database}: " + text) for text in count_faults(outcome.rows.get(database, {}), told.get(database, {}))]
    kept = {one.get("id"): one for one in result.get("kept") or []}
    for name, wanted in getattr(outcome, "matched", {}).items():
        if name not in kept:
            found.append(("result", f"the result does not name the kept set {name}"))
        elif kept[name].get("reason") not in wanted.reasons or kept[name].get("database") != wanted.database:
            found.append(("result", f"the result says of {name}: {kept[name]}"))
    for name in kept:
        if name not in getattr(outcome, "matched", {}):
            found.append(("result", f"the result names {name}, which is not in quarantine"))
    return found
