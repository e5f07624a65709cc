"""Attacks by other users, by an author who has not read the code: access lists, traps next to databases, process ids, leases, temporary directories."""
import os
import pathlib
import struct
import subprocess
import time

from kit import OTHER, Failed, attack, harmless, refused, works

USER = 1  # `daemon`, whose group has no other members
OWNED = refused(r"belong|own|other user|another user|change|write|writable|read|access|trust|permission|ACL|acl|not used|warning", 1, 3)


def access(path, user=OTHER, mode=6, default=False):
    """Gives a user access to a file with a POSIX access control list. The group bits of the mode show its mask."""
    own = os.stat(path).st_mode
    entries = [(1, own >> 6 & 7, 0xFFFFFFFF), (2, mode, user), (4, own >> 3 & 7, 0xFFFFFFFF), (16, mode | own >> 3 & 7, 0xFFFFFFFF), (32, own & 7, 0xFFFFFFFF)]
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, f"system.posix_acl_{'default' if default else 'access'}", content)
    except OSError as error:
        raise Failed(f"no access lists: {error}") from error


@attack("an access list lets another user write to moult.json of a user whose group has no other members", OWNED, root=True, limit=40)
def access_list_on_settings(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.directory("mine", 0o755, USER)
    arena.store(first, name="mine/store", user=USER)
    access("mine/store/moult.json")
    trap = arena.trap()
    script = f"""import json
path = 'mine/store/moult.json'
settings = json.load(open(path))
settings['consumers'] = [{{'name': 'c', 'command': {{'reload': ['{trap}']}}}}]
open(path, 'w').write(json.dumps(settings))"""
    arena.other("/usr/bin/python3", "-c", script)
    arena.attack("apply", "--store", "mine/store", second, user=USER, allowed=["mine"])
    arena.check(not os.path.exists(f"home-{USER}/sprung"), "program: the program of another user has run")


@attack("an access list lets another user exchange the program of a step, a consumer, a saved plan or a secret key", harmless(), root=True, limit=40)
def access_list_on_programs(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.directory("mine", 0o755, USER)
    arena.store(first, name="mine/store", user=USER)
    trap = arena.write("mine/program", "#!/bin/sh\nexit 0\n", 0o755, USER)
    access(trap, mode=7)
    arena.settings({"consumers": [{"name": "c", "command": {"reload": [trap]}}]}, name="mine/store")
    os.chown("mine/store/moult.json", USER, USER)
    arena.other("/bin/sh", "-c", f"cat > {trap} <<'X'\n{pathlib.Path(arena.trap()).read_text()}\nX")
    arena.attack("apply", "--store", "mine/store", second, user=USER, allowed=["mine"])
    arena.check(not os.path.exists(f"home-{USER}/sprung"), "program: the program of another user has run")
    arena.moult("keygen", "-q", "--no-password", "mine/k", user=USER)
    access("mine/k.key", mode=4)
    arena.attack("sign", second, "--key", "mine/k.key", user=0, expects=works("read|warning"), allowed=["releases"])


@attack("an access list lets another user write to directories of a store", OWNED, root=True, limit=40)
def access_list_on_directories(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first, name="store")
    for path in ("store", "store/.moult", "store/.moult/generations", "store/.moult/transactions", "store/moult.json"):
        facts = os.stat(path)
        access(path, mode=7)
        arena.attack("apply", "--store", "store", second, allowed=["store"])
        arena.attack("rollback", "--store", "store", allowed=["store"])
        os.removexattr(path, "system.posix_acl_access")
        os.chmod(path, facts.st_mode & 0o7777)


@attack("next to a database in a directory for all users, another user has put the names that `replace` and SQLite use", harmless(), root=True, limit=40)
def traps_next_to_database(arena):
    for number, name in enumerate((".app.db.moult", "app.db-journal", "app.db-wal", "app.db-shm", ".app.db.moult-new", "app.db.old", ".app.db.moult.lock")):
        for kind in ("directory", "link", "file", "pipe", "store") if number == 0 else ("link", "file", "pipe"):
            directory = f"tmp/shared{number}{kind}"
            arena.directory(directory, 0o1777)
            arena.database(f"{directory}/app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('one')")
            arena.database("new.db", "CREATE TABLE IF NOT EXISTS t(x); DELETE FROM t; INSERT INTO t VALUES('two')")
            path = f"{directory}/{name}"
            make = {"directory": f"mkdir {path}", "link": f"ln -s {arena.victim}/{'third' if name != '.app.db.moult' else ''} {path}", "file": f"echo text > {path}", "pipe": f"mkfifo {path}",
                    "store": f"mkdir -p {path}/.moult {path}/release.0; printf '{{\"moult\": 1, \"product\": \"local.replace\", \"consumers\": [{{\"name\": \"c\", \"command\": {{\"reload\": [\"{arena.path('trap')}\"]}}}}]}}' > {path}/moult.json"}[kind]
            arena.trap()
            arena.other("/bin/sh", "-c", make)
            for words in (["replace", "-q", f"{directory}/app.db", "new.db"], ["inspect", f"{directory}/app.db"], ["replace", "-q", "--undo", f"{directory}/app.db"], ["cache", f"{directory}/app.db", "--schema", "none.sql"]):
                arena.attack(*words, allowed=[directory], limit=6)
            arena.check(not os.path.exists(f"{directory}/app.db") or os.stat(f"{directory}/app.db").st_uid == 0, f"file: {directory}/app.db belongs to another user")


@attack("the file with a process id names processes of others, groups, and all processes", harmless(), root=True, limit=60)
def process_ids(arena):
    first = arena.shop("1.0.0")
    arena.directory("mine", 0o755, 4714)
    arena.store(first, name="mine/store", user=4714)
    innocent = subprocess.Popen(["sleep", "100"], user=4714, group=4714, extra_groups=[], start_new_session=True)
    of_root = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        for number, text in enumerate((str(-innocent.pid), "-1", "0", "4294967295", str(innocent.pid + (1 << 32)), str(of_root.pid), "9" * 400)):
            pid_file = arena.write(f"mine/pid-{number}", text, 0o644, OTHER)
            arena.settings({"consumers": [{"name": "c", "timeout": 1, "signal": {"pidFile": pid_file, "release": "TERM", "reload": "TERM"}}]}, name="mine/store")
            os.chown("mine/store/moult.json", 4714, 4714)
            release = arena.shop(f"{number + 2}.0.0")
            arena.attack("apply", "--store", "mine/store", release, user=4714, allowed=["mine"], expects=harmless())
            arena.check(innocent.poll() is None, f"process: a process was ended by the process id {text!r}")
        # As root: the file belongs to another user and names a process of root.
        arena.store(first, name="rooted")
        for owner in (OTHER, 0):
            pid_file = arena.write("of-root", str(of_root.pid), 0o644, owner)
            os.chown(pid_file, owner, owner)
            arena.settings({"consumers": [{"name": "c", "timeout": 1, "signal": {"pidFile": pid_file, "reload": "TERM"}}]}, name="rooted")
            arena.attack("apply", "--store", "rooted", f"releases/app-{2 if owner else 3}.0.0.json", allowed=["rooted"], expects=harmless())
            # The file of root works: the judge can fail.
            arena.check((of_root.poll() is None) == (owner == OTHER), f"process: the file of user {owner} has the wrong effect")
    finally:
        for process in (innocent, of_root):
            process.kill()
            process.wait()


@attack("another user exchanges each new entry of the temporary directory of root for a link to the victim", harmless(), root=True, limit=60)
def temporary_directory(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("a.db", "CREATE TABLE t(x); INSERT INTO t VALUES(1)")
    arena.database("b.db", "CREATE TABLE t(x); INSERT INTO t VALUES(2)")
    arena.directory("theirs", 0o777, OTHER)
    script = """
while True:
    for name in os.listdir('theirs'):
        if not name.startswith('l-'):
            path = 'theirs/' + name
            try:
                if not os.path.islink(path):
                    os.symlink(sys.argv[1], 'theirs/l-' + name)
                    exchange(path, 'theirs/l-' + name)
            except OSError: pass
"""
    with arena.racing(script, arena.victim):
        for _ in range(6):
            for words in (["diff", "a.db", "b.db"], ["inspect", "a.db"], ["plan", "--deep", second, "--store", "store"], ["replace", "-q", "a.db", "b.db"], ["inspect", second],
                          ["pack", "-q", "a.db", "--product", "org.example.t"]):
                arena.attack(*words, env={"TMPDIR": arena.path("theirs")}, allowed=["theirs", "a.db", ".a.db.moult", "releases"], limit=8)
    arena.keeps("victim/out.db", "SELECT x FROM v", [("victim",)])


@attack("a user who may only read holds every lock, lease and open file of a store of root, and stops", works("", 0, 1, 2, 3, 75), root=True, limit=60)
def locks_of_reader(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
    os.chmod("store/shop.db", 0o640)
    os.chmod("store/notes.db", 0o640)
    script = """
import fcntl, struct
held = []
for directory, names, files in os.walk('store'):
    for name in [*files, *names, '.']:
        path = os.path.join(directory, name)
        for flags in (os.O_RDWR | os.O_NONBLOCK, os.O_RDONLY | os.O_NONBLOCK, os.O_RDONLY | os.O_DIRECTORY):
            try: f = os.open(path, flags)
            except OSError: continue
            held.append(f)
            for lock in (lambda: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)),
                         lambda: fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0)), lambda: fcntl.fcntl(f, 1024, fcntl.F_RDLCK)):
                try: lock()
                except OSError: pass
            break
open('tmp/ready', 'w').close()
time.sleep(100)
"""
    with arena.racing(script):
        while not os.path.exists("tmp/ready"):
            time.sleep(0.05)
        for words in (["apply", "-q", second], ["rollback", "-q"], ["unhold", "-q", "--all"], ["apply", "-q", second], ["verify", "-q"], ["reset", "-q", "shop", "--set-user-data-aside"], ["clean", "-q"]):
            arena.attack(*words, "--store", "store", "--wait" if words[0] not in ("verify",) else "-q", *(["1"] if words[0] != "verify" else []), allowed=["store"], expects=works(), limit=8)
    os.unlink("tmp/ready")
    arena.after.pop("tmp/ready", None)
    arena.holds("store", "row of the app")


@attack("an output of root replaces a file that another user has created and still has open", harmless(), root=True, limit=30)
def output_over_open_file(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("a.db", "CREATE TABLE t(x)")
    arena.write("make.sql", "CREATE TABLE t(x);")
    arena.key()
    arena.directory("shared", 0o1777)
    outputs = {"out.db": ["build", "-q", "make.sql", "-o", "shared/out.db"], "a.plan": ["plan", "-q", "--store", "store", second, "-o", "shared/a.plan"], "h.html": ["history", "--store", "store", "--html", "shared/h.html"],
               "d.patch": ["delta", "a.db", "victim/out.db", "-o", "shared/d.patch"], "d.html": ["diff", "-q", "a.db", "victim/out.db", "--html", "shared/d.html"],
               "app-1.0.0.json": ["pack", "-q", "work-1.0.0/draft.json", "-o", "shared"], "feed.json": ["publish", "-q", "shared", first, "--key", "k.key"]}
    for name, words in outputs.items():
        arena.other("/bin/sh", "-c", f"echo old > shared/{name}; chmod 666 shared/{name}")
        before = os.stat(f"shared/{name}").st_ino
        ended = arena.attack(*words, allowed=["shared"])
        facts = os.stat(f"shared/{name}")
        if ended.status in (0, 2):
            arena.check(facts.st_uid == 0 and facts.st_mode & 0o22 == 0 and facts.st_ino != before, f"file: after {words[0]}, shared/{name} belongs to {facts.st_uid} with mode {facts.st_mode & 0o777:o}")
        else:
            arena.check(pathlib.Path(f"shared/{name}").read_text() == "old\n", f"file: {words[0]} failed, but has changed shared/{name}")
        arena.sh("rm -rf shared/* shared/.[!.]*")


@attack("the command of a user in another PID namespace, with an own /proc or none, updates a store in use", harmless(), root=True, needs=("unshare",), limit=60)
def other_pid_namespace(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first, settings={"waitForApps": 1})
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
    holder = subprocess.Popen(["/usr/bin/python3", "-c", "import sqlite3, time; c = sqlite3.connect('store/shop.db', isolation_level=None); c.execute('INSERT INTO item VALUES(8, \"open\", 1)'); "
                               "c.execute('BEGIN'); c.execute('SELECT * FROM item').fetchone(); print('open', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
    holder.stdout.readline()
    try:
        for words in (["--pid", "--fork", "--mount-proc"], ["--pid", "--fork", "--kill-child"], ["--mount", "sh", "-c", "mount -t tmpfs none /proc; exec \"$@\"", "sh"], ["--ipc", "--uts", "--net"]):
            for command in (["apply", "--force-after", "1", second], ["reset", "shop", "--set-user-data-aside"]):
                arena.attack(*words, arena.command, *command, "--store", "store", program="/usr/bin/unshare", allowed=["store"], expects=harmless(), limit=12)
        # Without --force-after, and from namespaces in which it cannot be seen, the process lives, unless it was named and killed.
    finally:
        holder.kill()
        holder.wait()
    arena.attack("recover", "-q", "--store", "store", allowed=["store"], expects=works())
    arena.holds("store", "row of the app", "open")
