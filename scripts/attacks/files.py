"""Links, pipes and odd names in place of the files that the command reads and writes."""
import json
import os
import pathlib

from kit import attack, harmless, refused, works

ONE, TWO = "CREATE TABLE t(x); INSERT INTO t VALUES('one')", "CREATE TABLE t(x); INSERT INTO t VALUES('two')"
UTF8 = "UTF-8|utf-8"


def of_bytes(arena):
    """Creates a directory whose name is not UTF-8, and another with U+FFFD in its name; returns the first one."""
    arena.directory("d\ufffd")
    real = os.fsdecode(os.fsencode(arena.root) + b"/d\xff")
    os.mkdir(real)
    return real


@attack("runs `replace` in a working directory that is not UTF-8, next to one with U+FFFD in its name", harmless(UTF8))
def replace_in_directory_of_bytes(arena):
    real = of_bytes(arena)
    arena.database("new.db", TWO)
    arena.database("d\ufffd/app.db", ONE)
    arena.database(f"{real}/app.db", ONE)
    arena.attack("replace", "-q", "app.db", arena.path("new.db"), cwd=real, allowed=os.path.basename(real))


@attack("runs `cache` in such a working directory", harmless(UTF8))
def cache_in_directory_of_bytes(arena):
    real = of_bytes(arena)
    arena.write("s.sql", "CREATE TABLE cache(x);")
    arena.database("d\ufffd/app.db", ONE)
    arena.attack("cache", "app.db", "--schema", arena.path("s.sql"), cwd=real, allowed=os.path.basename(real))


@attack("runs `init` in such a working directory", harmless(UTF8))
def init_in_directory_of_bytes(arena):
    real = of_bytes(arena)
    arena.attack("init", "-q", "s", "--product", "org.example.app", cwd=real, allowed=os.path.basename(real))


@attack("runs `build` in such a working directory", harmless(UTF8))
def build_in_directory_of_bytes(arena):
    real = of_bytes(arena)
    for directory in (real, "d\ufffd"):
        arena.write(f"{directory}/make.sql", "CREATE TABLE t(x);")
    arena.attack("build", "-q", "make.sql", "-o", "out.db", cwd=real, allowed=os.path.basename(real))


@attack("sets MOULT_STORE to a path that is not UTF-8, next to a store with U+FFFD in its name", harmless(UTF8))
def store_variable_of_bytes(arena):
    real = of_bytes(arena)
    release = arena.shop("1.0.0")
    arena.store(release, name="d\ufffd")
    second = arena.shop("2.0.0")
    arena.attack("apply", second, env={"MOULT_STORE": real})
    arena.attack("hold", "9.0.0", "--reason", "x", env={"MOULT_STORE": real})


@attack("passes a database name that is not UTF-8, next to one with U+FFFD in its name", harmless(UTF8))
def argument_of_bytes(arena):
    arena.database("app\ufffd.db", ONE)
    arena.database("new.db", TWO)
    real = os.fsdecode(os.fsencode(arena.root) + b"/app\xff.db")
    arena.database(real, ONE)
    arena.attack("replace", real, "new.db", allowed=[os.path.basename(real), os.fsdecode(b".app\xff.db.moult")])
    arena.attack("cache", real, "--schema", "none.sql")


@attack("a link in the path of the database leads to a directory that is not UTF-8", harmless("UTF-8|utf-8|link"))
def link_to_directory_of_bytes(arena):
    real = of_bytes(arena)
    os.symlink(real, "link")
    arena.database("new.db", TWO)
    arena.database("d\ufffd/app.db", ONE)
    arena.database(f"{real}/app.db", ONE)
    arena.attack("replace", "-q", "link/app.db", "new.db", allowed=[os.path.basename(real), "link"])


@attack("TMPDIR is a path that is not UTF-8, next to a directory with U+FFFD in its name", harmless(UTF8))
def scratch_of_bytes(arena):
    real = of_bytes(arena)
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.attack("diff", first, second, env={"TMPDIR": real}, expects=harmless(UTF8))
    arena.attack("plan", "--deep", second, "--store", arena.store(first), env={"TMPDIR": real}, allowed="store")


@attack("puts pipes in place of the files that commands read", refused("not a regular file|pipe|FIFO|fifo", 1, 3, 64), limit=60)
def pipes_to_read(arena):
    for name in ("release.json", "feed.json", "key.pub", "plan", "new.db", "make.sql", "old.patch", "draft.json"):
        os.mkfifo(name)
    arena.write("k.key", "x")
    arena.database("app.db", ONE)
    arena.store()
    arena.attack("apply", "--store", "store", "release.json", limit=4)
    arena.attack("apply", "--store", "store", "--plan", "plan", limit=4)
    arena.attack("init", "new", "--product", "org.example.x", "--key", "key.pub", limit=4)
    arena.attack("replace", "app.db", "new.db", limit=4)
    arena.attack("build", "make.sql", "-o", "out.db", limit=4)
    arena.attack("pack", "draft.json", limit=4)
    arena.attack("inspect", "new.db", limit=4)


@attack("names /dev/zero as manifest, bundle, key and settings", refused("regular file|large|device|not a|exceeds|limit", 1, 3, 64), limit=60)
def endless_device(arena):
    release = arena.shop("1.0.0")
    arena.store()
    os.symlink("/dev/zero", "zero.json")
    arena.attack("apply", "--store", "store", "zero.json", limit=6, memory=300)
    arena.attack("inspect", "zero.json", limit=6, memory=300)
    bundle = next(pathlib.Path("releases").glob("*.tar.zst"))
    bundle.unlink()
    bundle.symlink_to("/dev/zero")
    arena.attack("apply", "--store", "store", release, limit=6, memory=300)
    os.unlink("store/moult.json")
    os.symlink("/dev/zero", "store/moult.json")
    arena.attack("status", "--store", "store", limit=6, memory=300, allowed="store/moult.json")


@attack("puts links to files of the victim in place of the records of a store", harmless(), limit=40)
def links_as_records(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    for name in ("lock", "history.jsonl", "checks.json", "holds.json", "steps.json", "links.json", "feed/seen.json", "leases/2.0.0+x"):
        path = f"store/.moult/{name}"
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(arena.path("victim/public"), path)
        for words in (["apply", second], ["hold", "9.0.0", "--reason", "x"], ["rollback"], ["recover"], ["clean"]):
            arena.attack(*words, "--store", "store", allowed="store")
        os.unlink(path)


@attack("puts links to directories of the victim in place of the directories of a store", harmless(), limit=40)
def links_as_directories(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.directory("victim/transactions/20260101000000-00000000")
    arena.write("victim/transactions/20260101000000-00000000/decided.json", "{}")
    for name in ("transactions", "quarantine", "downloads", "leases", "feed", "keys", "generations"):
        path = f"store/.moult/{name}"
        if os.path.lexists(path):
            os.rename(path, f"kept-{name}")
        os.symlink(arena.victim, path)
        for words in (["apply", second], ["recover"], ["clean", "--quarantine-older-than", "0"], ["clean"], ["quarantine"], ["rollback"]):
            arena.attack(*words, "--store", "store", allowed=["store", "kept-*"])
        os.unlink(path)
        if os.path.lexists(f"kept-{name}"):
            os.rename(f"kept-{name}", path)


@attack("a hot journal next to the database names a file of the victim as its super-journal", harmless())
def super_journal(arena):
    arena.database("new.db", TWO)
    arena.database("app.db", ONE)
    target = arena.path("victim/public").encode()
    page = pathlib.Path("app.db").read_bytes()[:4096]
    # A journal header with one page, the page, and the name of the super-journal with its length, checksum and magic number.
    magic = bytes.fromhex("d9d505f920a163d7")
    journal = magic + (1).to_bytes(4, "big") + bytes(4) + (2).to_bytes(4, "big") + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    total = sum(page[4096 - 200 * step] for step in range(1, 21) if 4096 - 200 * step > 0) & 0xFFFFFFFF
    journal = journal.ljust(512, b"\0") + (1).to_bytes(4, "big") + page + total.to_bytes(4, "big")
    journal += (0x40000000 // 4096 + 1).to_bytes(4, "big") + target + len(target).to_bytes(4, "big") + sum(target).to_bytes(4, "big") + magic
    for words in (["replace", "-q", "app.db", "new.db"], ["inspect", "app.db"], ["diff", "app.db", "new.db"], ["replace", "-q", "new.db", "app.db"]):
        arena.write("app.db-journal", journal)
        arena.attack(*words, allowed=["app.db*", ".app.db.moult", "new.db*", ".new.db.moult"])


READS = (["sql", "SELECT 1"], ["status"], ["verify"], ["status", "--deep"], ["attach"], ["status", "--processes"], ["quarantine"], ["history"], ["verify", "--deep"])


def unpacked(arena, words):
    """Copies the store, as from an archive, and runs a command that reads in the copy."""
    arena.remove("got")
    arena.sh("cp -a store got")
    arena.attack(*words, "--store", "got", allowed=["got/.moult"])


@attack("a command reads in an unpacked store whose interrupted update has a consumer", harmless(), needs=("strace",))
def read_runs_consumer(arena):
    arena.interrupted({"consumers": [{"name": "c", "command": {"reload": [arena.trap()]}}]})
    for words in READS:
        unpacked(arena, words)


def link_to_own_file(arena):
    os.rename("store/shop.db", "home/app.db")
    os.symlink("../home/app.db", "store/shop.db")


@attack("a command reads in an unpacked store whose interrupted update replaces a file behind a link", harmless(), needs=("strace",))
def read_writes_behind_link(arena):
    arena.interrupted(between=lambda: link_to_own_file(arena))
    for words in READS:
        unpacked(arena, words)


@attack("a command reads in an unpacked store whose interrupted update replaces a cache in the home directory", harmless(), needs=("strace",))
def read_writes_in_cache_root(arena):
    first, second = (arena.release(version, {"idx": ("cache", f"CREATE TABLE idx{version[0]}(x)"), "food": ("reference", "CREATE TABLE t(x)")})
                     for version in ("1.0.0", "2.0.0"))
    arena.store(first, settings={"cacheRoot": arena.path("home")})
    arena.database("home/idx.db", "INSERT INTO idx1 VALUES('mine')")
    arena.killed("apply", "-q", "--store", "store", second)
    for words in READS:
        unpacked(arena, words)


@attack("a user applies a release in an unpacked store whose interrupted update replaces a file behind a link", harmless("link|recover"),
        needs=("strace",))
def apply_finishes_behind_link(arena):
    second = arena.interrupted(between=lambda: link_to_own_file(arena))
    os.unlink("home/app.db")
    arena.database("home/app.db", "CREATE TABLE mine(x); INSERT INTO mine VALUES('only copy')")
    arena.sh("cp -a store got")
    arena.attack("apply", "-q", "--store", "got", second, allowed=["got", "home/app.db"])
    arena.held = [(arena.root, ("only copy",))]


@attack("the journal of an interrupted update names files outside the store", harmless(), needs=("strace",))
def journal_names_other_files(arena):
    arena.interrupted()
    arena.held = []
    for journal in pathlib.Path("store/.moult/transactions").glob("*/decided.json"):
        text = journal.read_text()
        for path in ("shop.db", "notes.db", "food.db"):
            text = text.replace(f'"{path}"', f'"../victim/out.db"').replace(f'store/{path}"', 'victim/out.db"')
        journal.write_text(text)
    for words in (["sql", "SELECT 1"], ["recover"], ["recover", "--undo"], ["apply"]):
        arena.attack(*words, "--store", "store", allowed=["store"])


@attack("leaves 300 nested directories, and names that are not UTF-8, in the directory of an interrupted update", works(), needs=("strace",))
def names_in_transaction(arena):
    second = arena.interrupted()
    transaction = next(path for path in pathlib.Path("store/.moult/transactions").iterdir() if path.is_dir())
    os.makedirs(os.fsencode(transaction) + b"/\xff\xfe/steps")
    os.symlink(b"\xff", os.fsencode(transaction) + b"/\xfd")
    here = os.getcwd()
    os.chdir(transaction)
    for _ in range(400):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)
    os.chdir(here)
    arena.attack("recover", "--store", "store", allowed="store")
    arena.attack("apply", "--store", "store", second, allowed="store")
    arena.attack("clean", "--store", "store", allowed="store")
    arena.check(not os.listdir("store/.moult/transactions"), "file: a transaction is left")


@attack("a record in quarantine names a file outside the store", harmless("quarantine|path|name|set"))
def quarantine_record(arena):
    first = arena.shop("1.0.0")
    arena.store(first)
    arena.database("store/notes.db", "INSERT INTO note VALUES(1, 'note of the user')")
    arena.moult("reset", "notes", "--set-user-data-aside", "--store", "store")
    kept = next(pathlib.Path("store/.moult/quarantine").iterdir())
    record = json.loads((kept / "set.json").read_text())
    for key, value in list(record.items()):
        if isinstance(value, str) and value.endswith(".db"):
            record[key] = "../victim/out.db"
    (kept / "set.json").write_text(json.dumps({**record, "path": "../victim/out.db", "file": "../../../../victim/private"}))
    for words in (["quarantine"], ["quarantine", "--restore", "notes"], ["quarantine", "--restore", kept.name],
                  ["quarantine", "--export", "copy.db", "notes"]):
        arena.attack(*words, "--store", "store", allowed=["store", "copy.db"])


@attack("a database in quarantine is a link to a private database", harmless("link|quarantine|regular"))
def quarantine_link(arena):
    arena.database("victim/private.db", f"CREATE TABLE note(id, text); INSERT INTO note VALUES(1, '{arena.secret}')")
    os.chmod("victim/private.db", 0o600)
    arena.store(arena.shop("1.0.0"))
    arena.database("store/notes.db", "INSERT INTO note VALUES(1, 'note of the user')")
    arena.moult("reset", "notes", "--set-user-data-aside", "--store", "store")
    kept = next(pathlib.Path("store/.moult/quarantine").iterdir())
    for path in kept.glob("*.db"):
        path.unlink()
        path.symlink_to(arena.path("victim/private.db"))
    for words in (["quarantine", "--export", "copy.db", "notes"], ["quarantine", "--restore", "notes"], ["quarantine", "--restore", kept.name]):
        arena.attack(*words, "--store", "store", allowed=["store", "copy.db"])
    copies = [path for path in ("copy.db", "store/notes.db") if os.path.exists(path) and arena.secret.encode() in pathlib.Path(path).read_bytes()]
    arena.check(not copies, f"secret: {copies} have the private row")


@attack("fields of a draft name files outside the store or the bundle", refused("name|path"))
def paths_in_draft(arena):
    arena.database("food.db", ONE)
    for field, value in (("path", "../x.db"), ("path", "/x.db"), ("path", ".moult/x"), ("path", "moult.json"), ("member", "../x.db"), ("path", "a/b.db"),
                         ("path", ".."), ("path", "x.db\u0000"), ("member", "a\nb.db"), ("path", "x.db-wal"), ("path", "")):
        arena.write("draft.json", json.dumps({"manifest": 1, "product": "org.example.app", "version": "1.0.0",
                                              "databases": {"food": {"kind": "reference", "source": "food.db", field: value}}}))
        arena.attack("pack", "draft.json", expects=refused("", 1, 3, 64))


@attack("a patch of private databases is readable by every user", works())
def patch_of_private_files(arena):
    os.chmod(arena.database("old.db", f"CREATE TABLE t(x); INSERT INTO t VALUES('{arena.secret}')"), 0o600)
    os.chmod(arena.database("new.db", f"CREATE TABLE t(x); INSERT INTO t VALUES('{arena.secret}{arena.secret}')"), 0o600)
    arena.attack("delta", "old.db", "new.db", "-o", "d.patch", allowed="d.patch")
    arena.check(os.stat("d.patch").st_mode & 0o77 == 0, f"secret: the patch has mode {os.stat('d.patch').st_mode & 0o777:o}")


@attack("copies of private databases are readable by every user", works(), limit=40)
def copies_of_private_files(arena):
    os.chmod(arena.database("app.db", f"CREATE TABLE t(x); INSERT INTO t VALUES('{arena.secret}')"), 0o600)
    arena.database("new.db", TWO)
    arena.attack("replace", "-q", "app.db", "new.db", allowed=["app.db", ".app.db.moult"])
    arena.attack("diff", "new.db", "app.db", "--html", "page.html", allowed="page.html", expects=works("", 0, 2))
    arena.store(arena.shop("1.0.0"))
    os.chmod("store/notes.db", 0o600)
    arena.database("store/notes.db", f"INSERT INTO note VALUES(1, '{arena.secret}')")
    arena.attack("reset", "-q", "notes", "--set-user-data-aside", "--store", "store", allowed=["store"])
    arena.attack("quarantine", "--export", "out.db", "notes", "--store", "store", allowed=["store", "out.db"])
    for directory, _, names in os.walk("."):
        for name in names:
            path = pathlib.Path(directory, name)
            if not path.is_symlink() and path.is_file() and arena.secret.encode() in path.read_bytes():
                reachable = all(parent.stat().st_mode & 0o1 for parent in path.parents)
                arena.check(not (reachable and path.stat().st_mode & 0o77), f"secret: {path} has mode {path.stat().st_mode & 0o777:o}")


@attack("a key is created at the name of a link to a file of the victim, and over an existing key", refused("exist", 1, 3))
def key_over_file(arena):
    os.symlink(arena.path("victim/public"), "a.key")
    os.symlink(arena.path("victim/missing"), "b.key")
    os.symlink(arena.path("victim/missing"), "c.pub")
    arena.key("d")
    for name in "abcd":
        arena.attack("keygen", "--no-password", name, expects=harmless("exist|link"), allowed=[f"{name}.key", f"{name}.pub"] if name != "d" else [])
