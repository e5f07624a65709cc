"""Scratch directories, and reading databases without changing them."""
import contextlib, functools, hashlib, os, shutil, sqlite3, stat, subprocess, sys, tempfile

SIDECARS = ("-wal", "-journal")


def scratch(name):
    """Makes a scratch directory in memory, where possible: power failures are tested on separate file systems."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    # Copies of databases are made there, too.
    tempfile.tempdir = tempfile.mkdtemp(prefix=f"moult-{name}-", dir=memory)
    return tempfile.tempdir


def alone(mark):
    """Restarts the script with mounts of its own, which end with it, if root runs it."""
    words = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() == 0 and mark not in os.environ and subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.environ[mark] = "1"
        os.execvp(words[0], [*words, sys.executable, *sys.argv])


def remove(path):
    """Removes a tree with read-only directories, after making them writable."""
    for directory, names, _ in os.walk(path):
        for name in names:
            below = os.path.join(directory, name)
            if not os.path.islink(below):
                os.chmod(below, stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=False)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def copy(path, target):
    """Copies a database with its sidecars, as a crash would leave them."""
    for suffix in ("",) + SIDECARS:
        if os.path.isfile(path + suffix):
            shutil.copyfile(path + suffix, target + suffix)


@contextlib.contextmanager
def opened(path):
    """Opens a copy of a database as an app would find it; SQLite changes nothing beside the original."""
    with tempfile.TemporaryDirectory() as directory:
        whole = os.path.join(directory, "x.db")
        copy(path, whole)
        connection = sqlite3.connect(whole, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()


def once(read):
    """Lets a function of the path of a database run once for the same bytes of the file and its sidecars."""
    known = {}

    @functools.wraps(read)
    def cached(path, *more):
        key = tuple(digest(path + suffix) if os.path.isfile(path + suffix) else None for suffix in ("",) + SIDECARS) + more
        if key not in known:
            if len(known) > 1000:
                known.clear()
            known[key] = read(path, *more)
        return known[key]
    return cached


def is_sound(connection):
    return [row[0] for row in connection.execute("PRAGMA integrity_check")] in (["ok"], [b"ok"])
