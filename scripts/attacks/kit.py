"""Everything that an attack needs: an arena with a command to attack, other users, servers, races, and the judges.

An attack is a function with one parameter, its arena:

    @attack("names a file of root behind a link as output", expects=refused("symbolic link"), root=True)
    def link_as_output(arena):
        arena.other("ln", "-s", arena.victim, "home/link")
        arena.attack("build", "make.sql", "-o", "home/link/out.db")

`arena.moult` prepares and must succeed. `arena.attack` runs the command under attack. The arena judges every such run:

- its exit status and its message are as `expects` says (`refused`, `works`, `harmless`), and an error is explained;
- it has changed no file of the arena, except below `allowed`, and except records of the store (NOISE);
- the program of `arena.trap` was not run, and no process is left;
- `arena.secret` and control characters are in no output;
- the command uses no more memory and time than allowed (times are those of an idle machine);
- every row of `arena.keeps` is in its database, and every value of `arena.holds` is in some database of the store.

An attack that needs another user or mounts has `root=True`, one that needs a program has `needs=("strace",)`; otherwise
they are skipped and counted.
"""
import contextlib, ctypes, dataclasses, fnmatch, hashlib, http.server, inspect, io, json, os, pathlib, pty, re, select
import signal, sqlite3, stat, subprocess, sys, tarfile, threading, time

OTHER = 65534  # an ordinary user, who owns nothing else
THIRD = 4711  # another one
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
ROOT = pathlib.Path(__file__).resolve().parents[2]  # the source of this project
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 64, 75}
PRODUCT = "org.example.app"
# Every command may write these records of a store.
NOISE = ["*/.moult/lock", "*/.moult/history.jsonl", "*/.moult/checks.json", "*/.moult/leases*", "*/.moult/links.json", "*/.moult/feed*",
         "*/.moult/downloads*", "*/.moult/attempt.json"]
FINDERS = ("verify", "status", "inspect", "steps")  # These report problems with status 1, and not as an error.
ATTACKS = []
STOPPED = {-signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGTERM}
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True)
class Expected:
    """The result of a command under attack."""
    statuses: frozenset
    says: str
    name: str

    def __str__(self):
        return self.name + (f" /{self.says}/" if self.says else "")


def refused(says, *statuses):
    """An error with one of these statuses (default: 1 or 3), whose message matches `says`."""
    return Expected(frozenset(statuses or (1, 3)), says, "refused")


def works(says="", *statuses):
    """The command does its work in spite of the attack."""
    return Expected(frozenset(statuses or (0,)), says, "works")


def harmless(says=""):
    """Any documented status: the attack only must have no effect. An error must match `says`."""
    return Expected(frozenset(DOCUMENTED), says, "harmless")


def stopped():
    """The command ends after a signal."""
    return Expected(frozenset(DOCUMENTED | STOPPED), "", "harmless")


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    what: str
    expects: Expected
    function: object
    root: bool
    needs: tuple
    limit: float


def attack(what, expects, root=False, needs=(), limit=20):
    def note(function):
        module = pathlib.Path(inspect.getsourcefile(function)).stem
        ATTACKS.append(Attack(f"{module}.{function.__name__}", what, expects, function, root, tuple(needs), limit))
        return function
    return note


def slack():
    """How much longer than on an idle machine a command may take: up to four times on a busy one."""
    return min(4.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


class Failed(Exception):
    """The preparation of an attack did not work."""


@dataclasses.dataclass
class Ended:
    words: list
    status: int
    out: str
    err: str
    seconds: float
    mebibytes: float

    @property
    def text(self):
        return self.out + self.err

    def __str__(self):
        return f"{' '.join(map(str, self.words))[:300]!r} ended with {self.status}: {self.text[-600:]!r}"


class Arena:
    def __init__(self, spec, directory, moult):
        self.spec, self.root, self.command = spec, str(directory), moult
        self.bin = os.path.dirname(moult)
        self.effects, self.commands, self.closing = [], [], []
        self.after, self.allowed, self.kept, self.held = None, [], [], []
        self.secret = "s3cret" + hashlib.sha256(os.urandom(8)).hexdigest()[:24]
        self.env = {"HOME": self.path("home"), "TMPDIR": self.path("tmp"), "LC_ALL": "C.UTF-8", "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin"}
        os.makedirs(self.path("home"), 0o700)
        os.makedirs(self.path("tmp"))
        os.chmod(self.path("tmp"), 0o1777)
        # The victim: files of root and, for root, of another user, which no attack may read or change.
        self.victim = self.path("victim")
        os.makedirs(self.victim, 0o755)
        self.database("victim/out.db", "CREATE TABLE v(x); INSERT INTO v VALUES('victim')")
        self.write("victim/private", f"private {self.secret}\n", 0o600)
        self.write("victim/public", "public\n")
        if os.geteuid() == 0:
            self.write("victim/third", "of another user\n", 0o644, THIRD)
        os.chdir(self.root)

    # Preparation

    def path(self, *parts):
        return os.path.join(self.root, *map(os.fspath, parts))

    def write(self, path, content, mode=0o644, owner=None):
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        if owner is not None:
            os.chown(path, owner, owner)
        return path

    def remove(self, path):
        """Removes a store with its read-only directories."""
        self.sh(f"chmod -R u+w '{path}' 2>/dev/null || true; rm -rf '{path}'")

    def directory(self, path, mode=0o755, owner=None):
        os.makedirs(self.path(path), exist_ok=True)
        os.chmod(self.path(path), mode)
        if owner is not None:
            os.chown(self.path(path), owner, owner)
        return self.path(path)

    def database(self, path, sql, *parameters, owner=None):
        """Runs SQL on a database, which is created if it is missing, and returns its path."""
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with contextlib.closing(sqlite3.connect(self.path(path))) as connection:
            connection.execute(sql, parameters) if parameters else connection.executescript(sql)
            connection.commit()
        if owner is not None:
            os.chown(self.path(path), owner, owner)
        return self.path(path)

    def rows(self, path, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.path(path)}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()

    def run(self, words, user=None, cwd=None, env=None, limit=15, terminal=False, stdin=b"", during=None):
        """Runs a program, as another user if `user` is given, and returns how it ended; `during(process)` runs meanwhile."""
        self.after, limit = None, limit * slack()
        words, environment = [os.fspath(word) for word in words], {**self.env, **(env or {})}
        if user:
            environment["HOME"] = environment["HOME"] if env and "HOME" in env else self.path(f"home-{user}")
            os.makedirs(self.path(f"home-{user}"), exist_ok=True)
            os.chown(self.path(f"home-{user}"), user, user)
        identity = {"user": user, "group": user, "extra_groups": []} if user and os.geteuid() == 0 else {}
        begun, given = time.monotonic(), open(os.memfd_create("in"), "r+b")
        given.write(stdin)
        given.seek(0)
        if terminal:
            ours, theirs = pty.openpty()
            printed = bytearray()
            reader = threading.Thread(target=lambda: _drain(ours, printed), daemon=True)
            reader.start()
            out = err = theirs
        else:
            out, err = open(os.memfd_create("out"), "w+b"), open(os.memfd_create("err"), "w+b")
        process = subprocess.Popen(words, cwd=self.path(cwd or "."), env=environment, stdin=given, stdout=out, stderr=err,
                                   start_new_session=True, **identity)
        try:
            waiting = os.pidfd_open(process.pid)
            if during:
                during(process)
            in_time = select.select([waiting], [], [], max(0, limit - (time.monotonic() - begun)))[0]
            os.close(waiting)
            if not in_time:
                process.kill()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            raise
        seconds = time.monotonic() - begun
        if terminal:
            os.close(theirs)
            reader.join(2)
            said, errors = bytes(printed), b""
        else:
            said, errors = _read(out), _read(err)
        ended = Ended(words, process.returncode, said.decode(errors="surrogateescape"), errors.decode(errors="surrogateescape"), seconds,
                      usage.ru_maxrss / 1024)
        if not in_time:
            self.effects.append(f"time: not finished after {limit:g} s: {ended}")
        return ended

    def moult(self, *words, fine=(0, 2), **options):
        """Prepares with the real command, which must succeed."""
        ended = self.run([self.command, *words], **options)
        if ended.status not in fine:
            raise Failed(str(ended))
        return ended

    def sh(self, script, user=None, **options):
        """Prepares with a shell, which must succeed."""
        ended = self.run(["/bin/sh", "-euc", script], user=user, **options)
        if ended.status != 0:
            raise Failed(str(ended))
        return ended.out

    def other(self, *words, **options):
        """Runs a program as the attacker, an ordinary user."""
        ended = self.run(words, user=options.pop("user", OTHER), **options)
        if ended.status != 0:
            raise Failed(str(ended))
        return ended.out

    def release(self, version, databases, top=None, product=PRODUCT, out="releases", options=()):
        """Packs a release and returns its manifest. `databases` has for each name its kind, the SQL of its content, and
        optionally other fields of the draft."""
        draft = {"manifest": 1, "product": product, "version": version, "databases": {}, **(top or {})}
        for name, (kind, sql, *more) in databases.items():
            source = f"work-{version}/{name}.db"
            if isinstance(sql, bytes):
                self.write(source, sql)
            else:
                pathlib.Path(source).unlink(missing_ok=True)
                self.database(source, sql)
            draft["databases"][name] = {"kind": kind, "source": f"{name}.db", **(more[0] if more else {})}
        self.write(f"work-{version}/draft.json", json.dumps(draft))
        self.moult("pack", "-q", f"work-{version}/draft.json", "-o", out, *options)
        return self.path(out, f"{product.rsplit('.', 1)[-1]}-{version}.json")

    def forge(self, version, databases, archive=None, suffix="tar", change=None, product=PRODUCT, sequence=None, out="forged"):
        """Writes a release without `moult pack`. `databases` has for each name its kind and its bytes; `archive` is the content
        of the bundle (default: a plain tar of these files); `change(manifest)` changes the manifest."""
        members = {f"{name}.db": content for name, (_, content) in databases.items()}
        archive = tar(members) if archive is None else archive
        manifest = {"manifest": 1, "product": product, "version": version, "sequence": sequence or int(version.split(".")[0]),
                    "bundle": {"file": f"app-{version}.{suffix}", "size": len(archive), "sha256": sha256(archive)},
                    "databases": {name: {"kind": kind, "member": f"{name}.db", "size": len(content), "sha256": sha256(content)}
                                  for name, (kind, content) in databases.items()}}
        manifest = (change and change(manifest)) or manifest
        self.write(f"{out}/app-{version}.{suffix}", archive)
        return self.write(f"{out}/app-{version}.json", json.dumps(manifest))

    def content(self, sql="CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO food VALUES(1, 'rye');"):
        """Returns the bytes of a database."""
        path = self.path(f"content-{len(os.listdir(self.root))}.db")
        try:
            self.database(path, sql)
            return pathlib.Path(path).read_bytes()
        finally:
            pathlib.Path(path).unlink(missing_ok=True)

    def store(self, *manifests, name="store", product=PRODUCT, settings=None, user=None, options=()):
        """Creates a store, with these releases installed one after the other. `settings` is merged into moult.json."""
        self.moult("init", "-q", name, "--product", product, *options, user=user)
        if settings:
            self.settings(settings, name)
        for manifest in manifests:
            self.moult("apply", "-q", "--store", name, manifest, user=user)
        return self.path(name)

    def shop(self, version, **more):
        """Packs a release with a read-only database `food`, a database `shop` that keeps rows with own = 1, and a user's `notes`."""
        made = self.path(f"releases/app-{version}.json")
        return made if os.path.exists(made) and not more else self.release(version, {
            "food": ("reference", f"CREATE TABLE food(v TEXT); INSERT INTO food VALUES('{version}')"),
            "shop": ("shared", f"CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, own INT); INSERT INTO item VALUES(1, '{version}', 0)",
                     {"preserve": [{"table": "item", "where": "own = 1"}]}),
            "notes": ("user", "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)")}, **more)

    def interrupted(self, settings=None, between=None):
        """Creates a store with rows of the app, whose update to 2.0.0 was killed after its decision; `between` runs before it."""
        first, second = self.shop("1.0.0"), self.shop("2.0.0")
        self.store(first)
        self.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
        self.database("store/notes.db", "INSERT INTO note VALUES(1, 'note of the user')")
        if settings:
            self.settings(settings)
        if between:
            between()
        self.killed("apply", "-q", "--store", "store", second)
        # SQLite rolls the killed transaction back when the first program opens the database.
        self.database("store/shop.db", "SELECT count(*) FROM item")
        self.holds(".", "row of the app", "note of the user")
        return second

    def settings(self, more, name="store"):
        path = pathlib.Path(self.path(name, "moult.json"))
        path.write_text(json.dumps({**json.loads(path.read_text()), **more}))

    def key(self, name="k"):
        """Creates a key pair and returns the path of the secret key; the public key is NAME.pub."""
        self.moult("keygen", "-q", "--no-password", name)
        return self.path(f"{name}.key")

    def killed(self, *words, call="symlinkat", count=1, **options):
        """Runs the command and kills it at a system call: at `symlinkat`, the decision is made and `current` not yet switched."""
        ended = self.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={count}",
                          self.command, *words], **options)
        if ended.status not in (-9, 137):
            raise Failed(f"not killed: {ended}")

    def exchange(self, first, second):
        """Exchanges two names atomically."""
        if LIBC.renameat2(-100, os.fsencode(self.path(first)), -100, os.fsencode(self.path(second)), 2) != 0:
            raise Failed(f"cannot exchange {first} and {second}: {os.strerror(ctypes.get_errno())}")

    @contextlib.contextmanager
    def racing(self, script, *arguments, user=OTHER):
        """Runs a Python script of the attacker until the block ends. In it, `exchange(a, b)` exchanges two names."""
        prelude = ("import ctypes, os, sys, time\nlibc = ctypes.CDLL(None)\n"
                   "def exchange(a, b): return libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), 2)\n")
        identity = {"user": user, "group": user, "extra_groups": []} if user and os.geteuid() == 0 else {}
        process = subprocess.Popen([PYTHON, "-c", prelude + script, *map(str, arguments)], cwd=self.root, **identity)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def trap(self, name="trap", mode=0o755, owner=None):
        """Returns a program that must not run."""
        text = f"#!/bin/sh\necho TRAP-{self.secret[-8:]} >&2\necho ran > {self.root}/sprung\ntouch \"$HOME/sprung\" 2>/dev/null\nexit 0\n"
        return self.write(name, text, mode, owner)

    def serve(self, answers, **options):
        """Starts a web server on a loopback address."""
        server = Server(answers, **options)
        self.closing.append(server.close)
        return server

    # Judging

    def attack(self, *words, expects=None, allowed=(), memory=600, limit=15, program=None, exposes=False, **options):
        """Runs the command under attack, and judges it."""
        before = tree(self.root)
        self.allowed = [allowed] if isinstance(allowed, str) else list(allowed)
        expects = expects or self.spec.expects
        ended = self.run([program or self.command, *words], limit=limit, **options)
        self.commands.append(ended)
        if not any(effect.startswith("time: ") and str(ended) in effect for effect in self.effects):
            if ended.status not in expects.statuses:
                self.effects.append(f"status: expected {expects}, but {ended}")
            elif expects.says and not re.search(expects.says, " ".join(ended.text.split())) and (expects.name != "harmless" or ended.status not in (0, 2)):
                self.effects.append(f"sentence: expected {expects}, but {ended}")
            elif ended.status > 0 and ended.status not in (2, *([1] if words[0] in FINDERS else [])) and not re.search(r'moult: error:\s|"error"', ended.text):
                self.effects.append(f"sentence: no error is shown: {ended}")
        if ended.mebibytes > memory:
            self.effects.append(f"memory: {ended.mebibytes:.0f} MiB, at most {memory} MiB are allowed: {ended}")
        if self.secret in ended.text and not exposes:
            self.effects.append(f"secret: {ended}")
        if found := forbidden_characters(ended.text, options.get("terminal", False)):
            self.effects.append(f"characters: {found!r} in {ended}")
        if f"TRAP-{self.secret[-8:]}" in ended.text:
            self.effects.append(f"program: {ended}")
        self.after = tree(self.root)
        self._compare(before, self.after, words)
        return ended

    def _compare(self, before, after, words):
        for path in sorted({*before, *after}):
            if before.get(path) != after.get(path) and not self._is_allowed(path):
                self.effects.append(f"file: {path}: {_short(before.get(path))} -> {_short(after.get(path))} ({' '.join(map(str, words))[:80]})")

    def effect(self, text):
        self.effects.append(text)

    def check(self, condition, text):
        if not condition:
            self.effects.append(text)

    def keeps(self, path, sql, expected):
        """At the end, this query on this database must have this answer."""
        if (self.path(path), sql, expected) not in self.kept:
            self.kept.append((self.path(path), sql, expected))

    def holds(self, store, *values):
        """At the end, each of these texts must be a value in a database below this directory."""
        self.held.append((self.path(store), values))

    def judge(self):
        """Finds the effects, after the attack."""
        if not self.commands:
            raise Failed("the attack runs no command under attack")
        for name in [*os.listdir(self.root), *[f"home/{n}" for n in os.listdir(self.path("home"))]]:
            if os.path.basename(name) == "sprung":
                self.effects.append(f"program: {name}")
        for path, sql, expected in self.kept:
            try:
                found = self.rows(path, sql)
            except sqlite3.Error as error:
                found = error
            if found != expected:
                self.effects.append(f"rows: {path}: {sql}: {str(found)[:200]}, expected {str(expected)[:200]}")
        for store, values in self.held:
            missing = set(values) - all_values(store, set(values))
            if missing:
                self.effects.append(f"rows: {sorted(missing)} are in no database below {store}")
        for child in self._left():
            self.effects.append(f"process: {child} is left")
        if self.after is not None:
            self._compare(self.after, tree(self.root), ["afterwards"])
        return self.effects

    def _is_allowed(self, path):
        return (any(fnmatch.fnmatchcase(f"/{path}", noise) for noise in NOISE)
                or any(path == given or path.startswith(given + "/") or fnmatch.fnmatchcase(path, given) for given in self.allowed)
                or path.startswith(("home-", "sprung", "home/sprung")))

    def _left(self, patience=2.0):
        """Returns the processes that still run. Orphans become children of this process."""
        deadline = time.monotonic() + patience
        while True:
            left = []
            for pid in children(os.getpid()):
                try:
                    if os.waitpid(pid, os.WNOHANG)[0] == 0:
                        left.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except (OSError, ChildProcessError):
                    pass
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def close(self):
        for action in self.closing:
            action()


class Server:
    """A web server on a loopback address. `answers` has for each path bytes, or a tuple (status, headers, body), or a function
    of the request handler that returns one of these, or None if it has answered itself; or it is one function for all paths.
    `requests` has the method, the path and the headers of each request. `answers` may be replaced at any time."""

    def __init__(self, answers, address="127.0.0.1", context=None):
        self.requests, self.answers = [], answers
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                owner.requests.append((self.command, self.path, dict(self.headers)))
                answers = owner.answers
                answer = answers(self) if callable(answers) else answers.get(self.path.split("?")[0], (404, {}, b"no such file"))
                if callable(answer):
                    answer = answer(self)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_POST = do_PUT = do_GET

            def log_message(self, *_):
                pass

        class Threads(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # The command closes connections that it no longer needs.

        self.server = Threads((address, 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if context else ''}://{address}:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def files_of(directory):
    """Returns the content of the files in a directory, by their path on a server."""
    return {f"/{path.name}": path.read_bytes() for path in pathlib.Path(directory).iterdir() if path.is_file()}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def tar(members):
    """Returns a tar with regular files (name: bytes), or with members of any kind (a list of TarInfo and bytes)."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for info, content in members.items() if isinstance(members, dict) else members:
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
            if content and info.size == 0:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def tree(root):
    """Returns the kind, mode, owner and content of everything below a directory, by its path."""
    found, pending = {}, [""]
    while pending:
        directory = pending.pop()
        try:
            entries = list(os.scandir(os.fsencode(os.path.join(root, directory))))
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(directory, os.fsdecode(entry.name))
            try:
                facts, content = entry.stat(follow_symlinks=False), None
            except OSError:  # a path that is too long
                continue
            if stat.S_ISLNK(facts.st_mode):
                with contextlib.suppress(OSError):  # The attacker has exchanged it.
                    content = os.readlink(entry.path)
            elif stat.S_ISREG(facts.st_mode):
                # SQLite rewrites its shared memory even for readers.
                content = None if path.endswith("-shm") else _digest(entry.path)
            elif stat.S_ISDIR(facts.st_mode):
                pending.append(path)
            found[path] = (oct(facts.st_mode), facts.st_uid, facts.st_gid, content)
    return found


def _digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else sha256(file.read())
    except OSError as error:
        return error.strerror


def _short(facts):
    return "missing" if facts is None else f"{facts[0]} {facts[1]}:{facts[2]} {str(facts[3])[:16]}"


def all_values(root, wanted):
    """Returns those of the wanted texts that are values in a database below a directory."""
    found = set()
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            try:
                with open(path, "rb") as file:
                    if os.path.islink(path) or file.read(16) != b"SQLite format 3\0":
                        continue
                with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                    for table, in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                        quoted = '"' + table.replace('"', '""') + '"'
                        # A generated column could take hours to read, and is not in table_info.
                        columns = ['"' + name.replace('"', '""') + '"' for _, name, *_ in connection.execute(f"PRAGMA table_info({quoted})").fetchall()]
                        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {quoted}"):
                            text = "\n".join(str(value) for value in row)
                            found |= {value for value in wanted if value in text}
            except (OSError, sqlite3.Error):
                continue
    return found


def forbidden_characters(text, is_terminal):
    """Returns characters that change a terminal, or the direction of a text. A terminal may get colours and erased lines."""
    if is_terminal:
        text = re.sub(r"\x1b\[[0-9;?]*[mKJAhl]|\r", "", text)
    return sorted(set(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\udc80-\udcff]", text)))


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in task.read_text().split()]
    return found


def descendants(pid):
    return [each for child in children(pid) for each in (child, *descendants(child))]


def _read(file):
    file.seek(0)
    with file:
        return file.read(4 << 20)


def _drain(descriptor, printed):
    with contextlib.suppress(OSError):
        while part := os.read(descriptor, 65536):
            printed += part
    os.close(descriptor)
