"""The flows of publishers, which are struck at each of their calls, and the readers of the results. To add a flow, add an entry
to `FLOWS`.

Before the flow, between any two calls, after the strike and after the command has run again, two stores that trust the
publisher's key follow the feed: a new store, and a store that has installed the older release.
"""
import hashlib, json, os, re, shutil, subprocess, sys, tempfile
from dataclasses import dataclass
from typing import Callable

import beside, look
from harness import files
from harness.tools import Runner, Wrong
from states import MARKS, Trace
from trial import KILLED, Missed, Result, how, trying

# The exit statuses after which the new content is public, or the old content. After 6, files of the new content are missing.
NEW, OLD = {0, 6}, {1, 3, 75}
DIGEST = re.compile(r"^feed\.json\.[0-9a-f]{16}\.")
OF_KEY = re.compile(r"\.[0-9A-F]{1,16}\.minisig$")
# A trial installation changes nothing outside its own store, so only some of its calls are struck.
TRIAL, OF_TRIAL = re.compile(r"/moult-\w{6}/store"), 60


@dataclass(frozen=True)
class Flow:
    name: str
    # Creates a new directory in the state where the flow starts.
    begin: Callable
    # The arguments of `moult`, run in that directory.
    command: list
    # The directory that the command writes to.
    output: str
    # Returns the public part of the output, which differs before and after.
    public: Callable
    # Raises an error unless readers can use the output; the last argument says whether the flow is complete.
    read: Callable
    # The exit status of the command when it runs again after it has completed.
    again: int = 0
    between: tuple = ()
    # The confined reader of the bundle sends bytes in varying pieces, so the last writes of one run may not occur in
    # another.
    varies: bool = False


class Place(Runner):
    """A directory with a publisher's files."""

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def content(self, directory):
        """Returns a digest of all files that readers can find; they ignore names that begin with a dot."""
        found = []
        for above, below, plain in os.walk(self.path(directory)):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(name for name in plain if not name.startswith(".")):
                with open(os.path.join(above, name), "rb") as file:
                    found.append((os.path.relpath(os.path.join(above, name), self.path(directory)), hashlib.sha256(file.read()).digest()))
        return hashlib.sha256(repr(found).encode()).digest()

    def names(self, directory):
        """Returns every name below the output. Digests in the names of signatures are replaced by a placeholder, and the
        store of a replaced file is left out, because each replacement adds names to it."""
        found = []
        for above, below, plain in os.walk(self.path(directory)):
            below[:] = [name for name in below if not name.endswith(".db.moult")]
            found += [os.path.relpath(os.path.join(above, name), self.path(directory)) for name in below + plain]
        return sorted({DIGEST.sub("feed.json.DIGEST.", name) for name in found})


# MARK: initial states

def release(place, name):
    """Copies a release to `rel`."""
    os.makedirs(place.path("rel"), exist_ok=True)
    source = os.path.dirname(place.tools.releases.manifest(name))
    for file in os.listdir(source):
        shutil.copy(os.path.join(source, file), place.path("rel"))


def manifest(version):
    return f"rel/proof-{version}.json"


def keys(place):
    for name in "ab":
        place.must("keygen", "-q", "--no-password", name)


def stores(place):
    """Creates three stores that trust the first key; only the command uses the third."""
    with open(place.path("a.pub")) as file:
        key = file.read().splitlines()[1]
    for name in ("fresh", "seen", "operator"):
        place.must("init", name, "--product", place.tools.releases.product, "--key", key, "-q")


def follow(place, store, directory="public"):
    """Makes a copy of a store follow the feed, and returns the version that it installs. Each check uses a new copy."""
    copy = tempfile.mkdtemp(dir=place.directory, prefix="look-")
    try:
        shutil.copytree(place.path(store), os.path.join(copy, "store"), symlinks=True)
        place.must("apply", "-q", "--feed", place.path(directory, "feed.json"), MOULT_STORE=os.path.join(copy, "store"))
        with open(os.path.join(copy, "store/.moult/current/manifest.json")) as file:
            return json.load(file)["version"]
    finally:
        files.remove(copy)


def publishing(*versions):
    """Returns a function that makes a feed with releases, and a store that has installed the newest release."""
    def begin(place):
        release(place, "published-1.0.0")
        release(place, "published-2.0.0")
        keys(place)
        stores(place)
        for version in versions:
            place.must("publish", "-q", "public", manifest(version), "-k", "a.key")
        if versions:
            place.must("apply", "-q", "--feed", place.path("public/feed.json"), MOULT_STORE=place.path("seen"))
    return begin


def exporting(place):
    """Exports the older release, and publishes the newer release in the feed of the store."""
    publishing("1.0.0")(place)
    place.must("export", "-q", "1.0.0", "stick", "--feed", place.path("public/feed.json"), MOULT_STORE=place.path("operator"))
    place.must("publish", "-q", "public", manifest("2.0.0"), "-k", "a.key")


def packing(place):
    """Packs an older release with the same name."""
    publishing("1.0.0")(place)
    for version in ("1.0.0", "2.0.0"):
        shutil.copytree(os.path.join(place.tools.releases.directory, f"published-{version}.draft"), place.path(version))
    place.must("pack", "-q", "--level", "1", "1.0.0/draft.json", "--name", "app", "-o", "out")


# MARK: readers

def feed(place, directory):
    try:
        with open(place.path(directory, "feed.json")) as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    return [(entry["version"], entry.get("withdrawn")) for entry in found["releases"]]


def serial(place, directory):
    try:
        with open(place.path(directory, "feed.json")) as file:
            return json.load(file)["serial"]
    except FileNotFoundError:
        return None


def following(*versions):
    """Returns a check that both stores follow the feed and then have one of these versions; when the flow is complete, the
    new store has the last one."""
    def read(place, directory, is_over):
        if feed(place, directory) is None:
            if is_over:
                raise Wrong("no feed")
            return
        for store in ("fresh", "seen"):
            if not os.path.exists(place.path(store)):
                continue
            found = follow(place, store, directory)
            if found not in (versions[-1:] if is_over and store == "fresh" else versions):
                raise Wrong(f"{store} has {found}")
        if is_over and shutil.which("minisign"):
            for name in ["feed.json"]:
                signed = subprocess.run(["minisign", "-V", "-q", "-p", place.path("b.pub" if "b" in versions else "a.pub"), "-m", place.path(directory, name)], capture_output=True)
                if signed.returncode:
                    raise Wrong(f"minisign refuses {name}")
    return read


def rotated(place, directory, is_over):
    """Checks that, when the flow is complete, only the new key can sign the next feed, and stores accept that feed."""
    following("1.0.0")(place, directory, False)
    if is_over:
        if not os.path.exists(place.path(directory, "keys-1.json")):
            raise Wrong("no key list")
        copy = tempfile.mkdtemp(dir=place.directory, prefix="next-")
        shutil.copytree(place.path(directory), os.path.join(copy, "public"))
        place.must("publish", "-q", os.path.join(copy, "public"), "-k", "b.key")
        for store in ("fresh", "seen"):
            follow(place, store, os.path.join(copy, "public"))
        if not place.run("publish", "-q", os.path.join(copy, "public"), "-k", "a.key"):
            raise Wrong("the replaced key can still sign the feed")
        shutil.rmtree(copy)


def key_list(place, directory):
    return serial(place, directory)


def packed(place, directory, is_over):
    """Checks that a manifest has its bundle next to it, and that the release can be installed."""
    if not os.path.exists(place.path(directory, "app.json")):
        if is_over:
            raise Wrong("no release")
        return
    with open(place.path(directory, "app.json")) as file:
        bundle = json.load(file)["bundle"]
    with open(place.path(directory, bundle["file"]), "rb") as file:
        if hashlib.sha256(file.read()).hexdigest() != bundle["sha256"]:
            raise Wrong("a manifest is next to the bundle of another release")


def version_of(name):
    def read(place, directory):
        try:
            with open(place.path(directory, name)) as file:
                return json.load(file)["version"]
        except FileNotFoundError:
            return None
    return read


def key_pair(place, directory):
    return [os.path.exists(place.path(directory, name)) for name in ("release.key", "release.pub")] == [True, True]


def whole_keys(place, directory, is_over):
    """Checks that both keys exist and are a pair, or that the secret key is missing."""
    if not os.path.exists(place.path(directory, "release.key")):
        if is_over:
            raise Wrong("no key")
        return
    with open(place.path("text"), "w") as out:
        out.write("text")
    place.must("sign", "-q", "-k", place.path(directory, "release.key"), "text")
    if shutil.which("minisign") and subprocess.run(
            ["minisign", "-V", "-q", "-p", place.path(directory, "release.pub"), "-m", place.path("text")], capture_output=True).returncode:
        raise Wrong("the keys are not a pair")


# A database file with a row of the app, and the file that replaces it.
OLD_FILE = "CREATE TABLE price(item PRIMARY KEY, cents); INSERT INTO price VALUES('bread', 320);" \
    "CREATE TABLE note(id INTEGER PRIMARY KEY, text); INSERT INTO note VALUES(7, 'mine');"
NEW_FILE = "CREATE TABLE price(item PRIMARY KEY, cents); INSERT INTO price VALUES('bread', 350), ('milk', 150);" \
    "CREATE TABLE note(id INTEGER PRIMARY KEY, text);"


def two_files(place):
    """Makes both files; the newest row of the old file is only in its -wal, as after a kill of the app."""
    os.mkdir(place.path("files"))
    for name, sql in (("app.db", "PRAGMA journal_mode = WAL;" + OLD_FILE), ("new.db", NEW_FILE)):
        code = "import os, signal, sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2]); os.kill(os.getpid(), signal.SIGKILL)"
        subprocess.run([sys.executable, "-c", code, place.path("files", name), sql])


def replaced(place):
    two_files(place)
    place.must("replace", "-q", "files/app.db", "files/new.db", "--preserve", "note")


def rows_of(place, directory):
    """Returns the rows that an app would find in the file, read from a copy, without those of an app beside the command; None if
    the file is missing."""
    if not os.path.exists(place.path(directory, "app.db")):
        return None
    with files.opened(place.path(directory, "app.db")) as app:
        if not files.is_sound(app):
            raise Wrong("the file is damaged")
        notes = app.execute("SELECT id, text FROM note WHERE id < ?", [beside.FIRST_OF_APP]).fetchall()
        return app.execute("SELECT item, cents FROM price").fetchall(), notes


PRICES = {"old": [("bread", 320)], "new": [("bread", 350), ("milk", 150)]}


def one_file(end):
    """Returns a check that the file has the complete old or the complete new content, always with the row of the app. When
    the flow is complete, the file must have the content that the flow installs, and after an undo the other content."""
    def read(place, directory, is_over):
        allowed = [end] if is_over else list(PRICES)
        found = rows_of(place, directory)
        if found not in [(PRICES[name], [(7, "mine")]) for name in allowed]:
            raise Wrong(f"the file has {found}")
        if is_over and end == "new":
            copy = tempfile.mkdtemp(dir=place.directory, prefix="undo-")
            shutil.copytree(place.path(directory), os.path.join(copy, "files"), symlinks=True)
            below = os.path.relpath(os.path.join(copy, "files"), place.directory)
            for _ in range(2):
                place.must("replace", "-q", "--undo", os.path.join(below, "app.db"))
                if rows_of(place, below) == (PRICES["old"], [(7, "mine")]):
                    break
            else:
                raise Wrong(f"after the undo, the file has {rows_of(place, below)}")
            files.remove(copy)
    return read


FLOWS = [
    Flow("replace a file", two_files, ["replace", "-q", "--yes", "files/app.db", "files/new.db", "--preserve", "note"], "files", rows_of,
         one_file("new"), varies=True),
    Flow("undo the replacement of a file", replaced, ["replace", "-q", "--undo", "files/app.db"], "files", rows_of,
         one_file("old"), again=3, varies=True),
    Flow("first publish", publishing(), ["publish", "-q", "public", manifest("1.0.0"), "-k", "a.key"], "public", serial,
         following("1.0.0")),
    Flow("publish the next release", publishing("1.0.0"), ["publish", "-q", "public", manifest("2.0.0"), "-k", "a.key"],
         "public", serial, following("1.0.0", "2.0.0")),
    Flow("withdraw", publishing("1.0.0", "2.0.0"),
         ["publish", "-q", "public", "--withdraw", "2.0.0", "--reason", "proof", "-k", "a.key"], "public", serial,
         following("2.0.0", "1.0.0")),
    Flow("renew", publishing("1.0.0"), ["publish", "-q", "public", "-k", "a.key"], "public", serial, following("1.0.0")),
    Flow("publish --trust", publishing("1.0.0"), ["publish", "-q", "public", "-k", "a.key", "-k", "b.key", "--trust", "b.pub"],
         "public", serial, rotated),
    Flow("pack over an older release", packing, ["pack", "-q", "--level", "1", "2.0.0/draft.json", "--name", "app", "-o", "out"],
         "out", version_of("app.json"), packed),
    Flow("export over an older release", exporting, ["export", "-q", "2.0.0", "stick", "--feed", "public/feed.json"], "stick",
         serial, following("1.0.0", "2.0.0")),
    Flow("keygen", lambda place: os.mkdir(place.path("keys")), ["keygen", "-q", "--no-password", "keys/release"], "keys",
         key_pair, whole_keys, again=3),
]


class Baseline:
    """A flow without a fault: its initial state, its calls, its result, and a reader between any two calls."""

    def __init__(self, flow, tools, place):
        self.flow = flow
        self.template = Place(tools, tempfile.mkdtemp(dir=place.path, prefix="template-"))
        flow.begin(self.template)
        self.before = flow.public(self.template, flow.output)
        if self.before is not None:
            flow.read(self.template, flow.output, False)
        self.counts, self.traces = {}, {}
        self.count(flow, None, tools, place)
        self.ended(tools, place)
        self.between(tools, place)

    def fresh(self, tools, place):
        copy = Place(tools, tempfile.mkdtemp(dir=place.path, prefix="strike-"))
        shutil.copytree(self.template.directory, copy.directory, symlinks=True, dirs_exist_ok=True)
        copy.environment["MOULT_STORE"] = copy.path("operator")
        return copy

    def ended(self, tools, place):
        world = self.fresh(tools, place)
        world.must(*self.flow.command)
        self.flow.read(world, self.flow.output, True)
        self.after, self.names = self.flow.public(world, self.flow.output), world.names(self.flow.output)
        if self.after == self.before:
            raise Wrong(f"{self.flow.name} changes no public file")
        files.remove(world.directory)

    def count(self, flow, kind, tools, place):
        """Returns the calls of the command on this file system, with their kinds and paths."""
        if kind not in self.counts:
            world = self.fresh(tools, place)
            self.counts[kind] = found = world.strike(flow.command, "-l", "-s", world.directory)
            if found["ending"]:
                raise Wrong(f"{flow.name} exits with {found['ending']} without any fault: {world.log}")
            self.traces[kind] = Trace(found["list"], world.directory)
            files.remove(world.directory)
        return self.counts[kind]

    def trace(self, flow, kind, tools, place):
        self.count(flow, kind, tools, place)
        return self.traces[kind]

    def between(self, tools, place):
        """Before each call, copies the output as a reader would find it, and reads each copy that differs."""
        world = self.fresh(tools, place)
        output, shots = world.path(self.flow.output), world.path("shots")
        os.mkdir(shots)
        program = f'n=$(ls {shots} | wc -l); [ -d {output} ] && cp -a {output} {shots}/$(printf %05d $n); true'
        world.strike(self.flow.command, "-a", "run", "-n", "1", "-g", "-x", program)
        # States that readers have accepted are not read again after each kill.
        self.known = set()
        for shot in sorted(os.listdir(shots)):
            content = world.content(f"shots/{shot}")
            if content in self.known:
                continue
            self.known.add(content)
            try:
                self.flow.read(world, f"shots/{shot}", False)
            except Wrong as error:
                raise Wrong(f"a reader between two calls, at call {shot}: {error}") from error
        files.remove(world.directory)

    def points(self, fault, counted):
        """Returns the calls to strike at: all, except that only some calls of trial installations fail with an error."""
        calls = [line for line in counted["list"] if line[0].isdigit() and MARKS[fault.counts] in line.split(" ")[2:-1] + [""]]
        return [number for number, line in enumerate(calls, 1)
                if fault.action not in ("EIO", "ENOSPC") or not TRIAL.search(line) or number % OF_TRIAL == 0]


class Start:
    """What has been found out about a flow; each trial gets a new copy of the template."""

    def __init__(self, flow, tools, place, is_copied=True):
        self.ends = {}


def strike(flow, baseline, fault, number, tools, place, attempt=0, start=None):
    """Tries one point; says whether readers find the old or the new content afterwards."""
    world = baseline.fresh(tools, place)
    with trying(world):
        place.sync()
        apps = beside.on_file(world, number) if fault.beside else None
        struck = world.strike(flow.command, *how(fault, number, place), *(beside.watching(apps) if apps else ()))
        if not struck["struck"]:
            raise Missed(f"{flow.name} has no call {number}")
        if fault.cuts:
            place.restart()
        ending = struck["ending"]
        if apps:
            beside.check_file(world, fault, apps, ending)
        key = (look.fingerprint(world.path(flow.output)), ending) if start and not apps and fault.action in ("EIO", "ENOSPC") else None
        if key and key in start.ends:
            return Result(start.ends[key], False, key)
        public = flow.public(world, flow.output)
        content = world.content(flow.output)
        if os.path.isdir(world.path(flow.output)) and content not in baseline.known:
            flow.read(world, flow.output, False)
            baseline.known.add(content)
        if ending != KILLED and not apps:
            if ending not in NEW | OLD | {6}:
                raise Wrong(f"the command exited with {ending}")
            fits = [baseline.after] if ending in NEW else [baseline.before]
            if ending == 6:
                fits = [baseline.after, None] if flow.name.startswith("pack") else [baseline.before, baseline.after]
            if public not in fits:
                raise Wrong(f"the command exited with {ending}, but {public} is public")
        # If the output is already the complete new content, the second run may exit with `again`.
        is_over = public == baseline.after and flow.again
        status = world.run(*flow.command)
        if status not in ({0, flow.again} if is_over else {0}):
            raise Wrong(f"run again, the command exited with {status}")
        flow.read(world, flow.output, True)
        if apps:
            beside.check_rows_of_file(world, apps)
            return Result("new" if public == baseline.after else "old")
        names = set(world.names(flow.output))
        if flow.output == "files" and (fault.cuts or not os.path.exists(world.path("files/app.db-wal")) or not os.path.getsize(world.path("files/app.db-wal"))):
            # The -wal of an app that a power cut has ended belongs to the app. SQLite leaves empty ones if it is killed in its last close;
            # the next program that writes removes them.
            names -= {"app.db-wal", "app.db-shm"}
        # When keys change, the command signs with the new key alone when it is run again.
        missing = {name for name in set(baseline.names) - names if not OF_KEY.search(name)}
        if missing or names - set(baseline.names):
            raise Wrong(f"left over: {sorted(names - set(baseline.names))}, missing: {sorted(missing)}")
        outcome = "new" if public == baseline.after else "old"
        if key:
            start.ends[key] = outcome
        return Result(outcome, key=key)
