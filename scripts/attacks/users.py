"""Another user of the machine attacks commands of root, and of a third user."""
import fcntl
import json
import os
import pathlib
import subprocess
import stat
import time

from kit import attack, harmless, refused, works, OTHER, THIRD

OWNER = "belongs to|owner|other users?|another user|can change|can write|user "
LOOP = "while True: exchange('shared/out', 'shared/link')"


def shared(arena):
    """Creates a directory in which every user may create files, with a directory and a link of the attacker, whose target is root's.
    The directory of the attacker has a file `public`, too."""
    arena.directory("shared", 0o1777)
    arena.other("sh", "-c", f"mkdir -m 777 shared/out; echo x > shared/out/public; chmod 666 shared/out/public; ln -s {arena.victim} shared/link")


def race(arena, *words, rounds=30, **options):
    """Runs the command while the attacker exchanges the directory `shared/out` and the link again and again."""
    with arena.racing(LOOP):
        for number in range(rounds):
            arena.attack(*[word.replace("%", str(number)) for word in words], allowed=["shared"], **options)


@attack("exchanges the output directory of `build` for a link to a directory of root", harmless(), root=True, limit=60)
def race_build(arena):
    shared(arena)
    arena.write("make.sql", "CREATE TABLE t(x);")
    race(arena, "build", "-q", "make.sql", "-o", "shared/out/out.db", rounds=60)


@attack("exchanges the output directory of `pack` for a link to a directory of root", harmless(), root=True, limit=60)
def race_pack(arena):
    shared(arena)
    arena.database("food.db", "CREATE TABLE food(x)")
    race(arena, "pack", "-q", "food.db", "--product", "org.example.app", "-o", "shared/out")


@attack("exchanges the directory of a feed for a link to a directory of root", harmless(), root=True, limit=60)
def race_publish(arena):
    shared(arena)
    release, key = arena.shop("1.0.0"), arena.key()
    race(arena, "publish", "-q", "shared/out", release, "--key", key)


@attack("exchanges the output directory of `delta`, `keygen`, `sign` and `export` for a link to a directory of root", harmless(), root=True, limit=90)
def race_other_outputs(arena):
    shared(arena)
    arena.key()
    arena.database("old.db", "CREATE TABLE t(x)")
    arena.database("new.db", "CREATE TABLE t(x); INSERT INTO t VALUES(1)")
    arena.store(arena.shop("1.0.0"))
    for words in (["delta", "old.db", "new.db", "-o", "shared/out/public"], ["keygen", "--no-password", "shared/out/k%"], ["sign", "shared/out/public", "-k", "k.key"],
                  ["export", "1.0.0", "shared/out", "--store", "store"], ["history", "--html", "shared/out/public", "--store", "store"],
                  ["diff", "old.db", "new.db", "--html", "shared/out/public"], ["completions", "man", "shared/out"]):
        race(arena, *words, rounds=12)


@attack("exchanges the directory of a cache, and of a database to replace, for a link to a directory of root", harmless(), root=True, limit=60)
def race_replace(arena):
    shared(arena)
    arena.database("new.db", "CREATE TABLE t(x)")
    arena.write("s.sql", "CREATE TABLE c(x);")
    arena.sh("cp victim/out.db shared/out/; chmod 666 shared/out/out.db")
    race(arena, "replace", "-q", "shared/out/out.db", "new.db", rounds=20)
    race(arena, "cache", "shared/out/out.db", "--schema", "s.sql", rounds=20)
    race(arena, "cache", "shared/out/new%.db", "--schema", "s.sql", rounds=20)


@attack("exchanges the directory of a new store for a link to a directory of root", harmless(), root=True, limit=60)
def race_init(arena):
    shared(arena)
    release = arena.shop("1.0.0")
    race(arena, "init", "-q", "shared/out/s%", "--product", "org.example.app", rounds=15)
    race(arena, "apply", "-q", "--create", "--store", "shared/out/t%", release, rounds=15)


@attack("exchanges a saved plan, a draft and a manifest for files of another content between check and use", harmless(), root=True, limit=60)
def race_inputs(arena):
    arena.directory("shared", 0o1777)
    arena.database("food.db", "CREATE TABLE food(x)")
    arena.write("good.sql", "CREATE TABLE t(x);")
    arena.other("sh", "-c", f"cp good.sql shared/a.sql; printf '.shell {arena.path('trap')}\\n' > shared/b.sql; cp food.db shared/a.db; ln -s {arena.victim}/private shared/b.db")
    arena.trap()
    with arena.racing("while True: exchange('shared/a.sql', 'shared/b.sql'); exchange('shared/a.db', 'shared/b.db')"):
        for _ in range(20):
            arena.attack("build", "-q", "shared/a.sql", "-o", "out.db", allowed=["out.db", "shared"])
            arena.attack("pack", "-q", "shared/a.db", "--product", "org.example.a", "-o", "rel", allowed=["rel", "shared"])


@attack("plants a link in place of the output file, its work directory, and its temporary file", harmless(), root=True, limit=60)
def planted_work_files(arena):
    arena.directory("shared", 0o1777)
    arena.key()
    arena.database("food.db", "CREATE TABLE food(x)")
    arena.write("make.sql", "CREATE TABLE t(x);")
    release = arena.shop("1.0.0")
    for name in (".moult-pack.0", ".out.db.moult-new", ".out.db.building.0", "out.db", ".moult-publish", "feed.json", "out.db-journal"):
        for target in ("public", "."):
            arena.sh("find shared -mindepth 1 -delete; rm -rf shared/.??*")
            arena.other("ln", "-s", f"{arena.victim}/{target}", f"shared/{name}")
            arena.attack("build", "-q", "make.sql", "-o", "shared/out.db", allowed="shared")
            arena.attack("pack", "-q", "food.db", "--product", "org.example.a", "-o", "shared", allowed="shared")
            arena.attack("publish", "-q", "shared", release, "--key", "k.key", allowed="shared")


@attack("plants a link to root's store in place of the store next to a database in a sticky directory", harmless("link|belongs"), root=True)
def planted_replace_store(arena):
    arena.directory("shared", 0o1777)
    arena.database("shared/app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('of the owner')", owner=OTHER)
    arena.database("new.db", "CREATE TABLE t(x)")
    arena.database("home/own.db", "CREATE TABLE t(x)")
    arena.moult("replace", "-q", "home/own.db", "new.db")
    for target in ("home/.own.db.moult", "victim", "home"):
        arena.other("ln", "-sfn", arena.path(target), "shared/.app.db.moult")
        arena.attack("replace", "-q", "shared/app.db", "new.db", allowed="shared")
        arena.attack("replace", "-q", "--undo", "shared/app.db", allowed="shared")
    # The owner of a file in a sticky directory puts links into root's store next to it.
    os.unlink("shared/.app.db.moult")
    arena.attack("replace", "-q", "shared/app.db", "new.db", allowed="shared", expects=harmless())
    if os.path.isdir("shared/.app.db.moult"):
        found = [path for path in pathlib.Path("shared/.app.db.moult").rglob("*") if path.is_symlink() and path.lstat().st_uid == OTHER]
        arena.check(not found, f"file: root's store has links of the attacker: {found}")


@attack("a file in a sticky directory is exchanged for a link of its owner while root replaces it", harmless(), root=True, limit=60)
def race_sticky_file(arena):
    arena.directory("shared", 0o1777)
    arena.database("new.db", "CREATE TABLE t(x)")
    arena.other("sh", "-c", f"cp victim/out.db shared/app.db; ln -s {arena.victim}/out.db shared/link")
    with arena.racing("while True: exchange('shared/app.db', 'shared/link')"):
        for _ in range(25):
            arena.attack("replace", "-q", "shared/app.db", "new.db", allowed="shared")
    for path in pathlib.Path("shared").glob(".app.db.moult/**/*"):
        arena.check(not path.is_symlink() or not os.readlink(path).startswith(arena.victim), f"file: {path} leads to {os.readlink(path) if path.is_symlink() else ''}")


@attack("a store whose settings, records or directories another user can change names a program", refused(OWNER), root=True, limit=60)
def store_of_other_user(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    trap = arena.trap()
    consumers = {"consumers": [{"name": "c", "command": {"release": [trap], "reload": [trap]}}]}
    for number, change in enumerate(("chown 65534 S/moult.json", "chmod 666 S/moult.json", "chown 65534 S", "chmod 777 S", "chown 65534 S/.moult", "chmod 777 S/.moult",
                                     "chown -h 65534 S/.moult/current", "chown 65534 S/.moult/generations", "chmod 777 S/.moult/transactions", "chown 65534 S/.moult/history.jsonl",
                                     "mkdir -m 777 open; mv S open/S; ln -s open/S S", "chmod 664 S/moult.json; chgrp 65534 S/moult.json")):
        name = f"store{number}"
        arena.store(release, name=name)
        arena.settings(consumers, name)
        arena.sh(change.replace("S", name))
        arena.attack("apply", "--store", name, second)
        arena.sh(f"rm -rf open {name}")


@attack("a link of another user leads to a store that root lists as trusted", refused(OWNER), root=True, needs=("unshare",))
def link_to_trusted_store(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(release)
    arena.sh("chown -R 65534 store; mkdir etc")
    arena.write("etc/trusted-stores", f"{arena.root}/store\n")
    arena.directory("shared", 0o1777)
    arena.other("ln", "-s", arena.path("store"), "shared/link")
    script = "mkdir -p /etc/moult; mount --bind \"$0\" /etc/moult; shift 0; exec \"$@\""
    arena.attack("-m", "sh", "-c", script, arena.path("etc"), arena.command, "apply", "--store", "shared/link", second, program="/usr/bin/unshare", expects=refused(OWNER, 1, 3, 32))


@attack("the program of a consumer, a step and an upload belongs to another user, or may be written by one", refused(OWNER + "|program"), root=True, limit=60)
def program_of_other_user(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    for number, change in enumerate(("chown 65534 D/trap", "chmod 777 D/trap", "chown 65534 D", "chmod 777 D", "mkdir real; mv D/trap real; chmod 777 real; ln -s ../real/trap D/trap")):
        arena.sh(f"rm -rf real; mkdir d{number}")
        trap = arena.trap(f"d{number}/trap")
        arena.sh(change.replace("D", f"d{number}"))
        name = f"store{number}"
        arena.store(release, name=name)
        arena.settings({"consumers": [{"name": "c", "command": {"release": [trap], "reload": [trap]}}]}, name)
        arena.attack("apply", "--store", name, second, allowed=name, expects=harmless(OWNER + "|program"))
        arena.settings({"consumers": [], "steps": {"test.step": {"executable": trap, "after": "copy"}}}, name)
        # The digest of a trusted program is recorded, so its directory does not matter.
        arena.attack("steps", "trust", "test.step", "--store", name, allowed=f"{name}/.moult", expects=None if number < 2 else harmless())


@attack("the PID file of a consumer belongs to another user, and names a process of root", harmless(), root=True)
def pid_file_of_other_user(arena):
    victim = subprocess.Popen(["sleep", "60"])
    try:
        arena.directory("shared", 0o1777)
        arena.other("sh", "-c", f"echo {victim.pid} > shared/pid")
        arena.store(arena.shop("1.0.0"), settings={"consumers": [{"name": "c", "signal": {"pidFile": arena.path("shared/pid"), "release": "TERM", "reload": "TERM"}, "timeout": 1}]})
        arena.attack("apply", "--store", "store", arena.shop("2.0.0"), allowed="store")
        arena.other("ln", "-sf", arena.write("root.pid", f"{victim.pid}\n"), "shared/pid")
        arena.attack("apply", "--store", "store", arena.shop("3.0.0"), allowed="store")
        arena.check(victim.poll() is None, "process: a signal ended a process of root")
    finally:
        victim.kill()
        victim.wait()


@attack("locks every file of a store that another user may read", works(), root=True, limit=60)
def locks_of_other_user(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(release, settings={"waitForApps": 2})
    script = """
import fcntl, struct, time
held = []
for directory, names, files in os.walk('store'):
    for name in [directory, *[os.path.join(directory, file) for file in files]]:
        if name.endswith(('shop.db', 'notes.db')): continue  # documented: a reader of a writable database can delay updates
        try: descriptor = os.open(name, os.O_RDONLY)
        except OSError: continue
        held.append(descriptor)
        for lock in (lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)):
            try: lock()
            except OSError: pass
open('shared/ready', 'w').close()
time.sleep(60)
"""
    arena.directory("shared", 0o1777)
    with arena.racing(script):
        while not os.path.exists("shared/ready"):
            time.sleep(0.02)
        for words in (["apply", second], ["status"], ["verify"], ["sql", "SELECT count(*) FROM food.food"], ["rollback"], ["clean"], ["recover"]):
            arena.attack(*words, "--store", "store", allowed="store", limit=8)


@attack("a sidecar of the attacker is next to root's database in a sticky directory", harmless("belongs|journal|wal|link"), root=True, limit=40)
def sidecars_of_other_user(arena):
    arena.directory("shared", 0o1777)
    arena.database("new.db", "CREATE TABLE t(x)")
    arena.database("shared/app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('of root')")
    arena.database("wal.db", "CREATE TABLE t(x)")
    arena.sh("sqlite3 wal.db 'PRAGMA journal_mode = WAL' \"INSERT INTO t VALUES('planted')\" '.system cp wal.db-wal planted' > /dev/null")
    arena.sh("chmod 644 planted")
    for name in ("app.db-wal", "app.db-journal", "app.db-shm"):
        for plant in (f"cp planted shared/{name}", f"ln -s {arena.victim}/public shared/{name}", f"mkfifo shared/{name}", f"mkdir shared/{name}", f"ln -s {arena.victim}/missing shared/{name}"):
            arena.other("sh", "-c", plant)
            arena.attack("replace", "-q", "shared/app.db", "new.db", allowed=["shared/.app.db.moult", f"shared/{name}"], expects=refused("belongs|journal|wal|shm|link|sidecar"))
            arena.sh(f"rm -rf shared/{name} shared/.app.db.moult")
    arena.keeps("shared/app.db", "SELECT x FROM t", [("of root",)])


@attack("reads what commands of root create: keys, staged files, work files, quarantine, with the most open umask", harmless(), root=True, limit=40)
def private_files_with_open_umask(arena):
    arena.database("app.db", f"CREATE TABLE t(x); INSERT INTO t VALUES('{arena.secret}')")
    os.chmod("app.db", 0o600)
    arena.database("new.db", "CREATE TABLE t(x)")
    release = arena.shop("1.0.0")
    key = arena.path("k.key")
    os.umask(0)
    try:
        arena.attack("keygen", "-q", "--no-password", "k", allowed=["k.key", "k.pub"])
        arena.attack("init", "-q", "store", "--product", "org.example.app", "--feed", f"https://example.org/feed.json?token={arena.secret}", "--allow-unsigned", allowed="store",
                     expects=harmless())
        arena.attack("replace", "-q", "app.db", "new.db", allowed=["app.db", ".app.db.moult"])
        arena.attack("apply", "-q", "--create", "--store", "s2", release, allowed="s2")
    finally:
        os.umask(0o022)
    arena.check(not os.path.exists(key) or os.stat(key).st_mode & 0o77 == 0, "secret: the key is readable by others")
    for path in pathlib.Path(".").rglob("*"):
        if path.parts[0] in ("victim", "tmp", "shared") or path.is_symlink():
            continue
        arena.check(not path.lstat().st_mode & 0o022, f"file: {path} may be written by others: {path.lstat().st_mode:o}")
    found = arena.run(["grep", "-rlF", arena.secret, "."], user=THIRD).out
    arena.check(not found, f"secret: another user can read {found}")


@attack("root updates a store with databases of mode 0664 and numeric groups", works(), root=True)
def numeric_groups(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(release)
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
    os.chown("store/shop.db", 0, 54321)
    os.chmod("store/shop.db", 0o664)
    arena.holds("store", "row of the app")
    arena.attack("apply", "-q", "--store", "store", second, allowed="store")
    facts = os.stat("store/shop.db")
    arena.check((facts.st_gid, stat.S_IMODE(facts.st_mode)) == (54321, 0o664), f"file: shop.db has group {facts.st_gid} and mode {facts.st_mode:o}")


@attack("a netrc file, a plan and a list of keys that another user can read or change are used", harmless(OWNER), root=True)
def inputs_of_other_user(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(release)
    arena.moult("plan", second, "--store", "store", "--output", "saved.plan")
    arena.sh("chmod 666 saved.plan")
    arena.attack("apply", "--plan", "saved.plan", "--store", "store", expects=refused(OWNER))
    arena.sh("chmod 600 saved.plan; mkdir -m 777 open; mv saved.plan open/")
    arena.attack("apply", "--plan", "open/saved.plan", "--store", "store", expects=refused(OWNER))
    arena.directory("shared", 0o1777)
    arena.sh("cp open/saved.plan shared/x.plan; chown 65534 shared/x.plan")
    arena.attack("apply", "--plan", "shared/x.plan", "--store", "store", expects=refused(OWNER))


@attack("root uses a directory for caches that another user can change", refused(OWNER), root=True)
def cache_root_of_other_user(arena):
    release = arena.release("1.0.0", {"idx": ("cache", "CREATE TABLE idx(x)"), "food": ("reference", "CREATE TABLE t(x)")})
    for number, change in enumerate(("mkdir -m 777 C", "mkdir C; chown 65534 C", "mkdir -m 777 P; mkdir P/real; ln -s P/real C", "ln -s victim C; chown -h 65534 C")):
        arena.sh(change.replace("C", f"c{number}").replace("P", f"p{number}"))
        arena.store(name=f"s{number}", settings={"cacheRoot": arena.path(f"c{number}")})
        arena.attack("apply", "--store", f"s{number}", release)


@attack("an ordinary user's output goes through a link of another user, and his store is below that user's directory", harmless(OWNER + "|link"), root=True)
def attack_on_ordinary_user(arena):
    arena.directory("shared", 0o1777)
    arena.directory("mine", 0o755, THIRD)
    arena.write("mine/make.sql", "CREATE TABLE t(x);", owner=THIRD)
    arena.database("mine/out.db", "CREATE TABLE t(x)", owner=THIRD)
    arena.database("mine/new.db", "CREATE TABLE t(x)", owner=THIRD)
    arena.other("ln", "-s", arena.path("mine"), "shared/link")
    arena.other("sh", "-c", f"mkdir -m 777 shared/out; ln -s {arena.path('mine')} shared/again")
    for words in (["build", "-q", "mine/make.sql", "-o", "shared/link/out.db"], ["keygen", "-q", "--no-password", "shared/link/k"], ["replace", "-q", "shared/link/out.db", "mine/new.db"],
                  ["cache", "shared/link/c.db", "--schema", "mine/make.sql"]):
        arena.attack(*words, user=THIRD)
    with arena.racing("while True: exchange('shared/out', 'shared/again')"):
        for _ in range(30):
            arena.attack("build", "-q", "mine/make.sql", "-o", "shared/out/out.db", user=THIRD, allowed="shared", expects=harmless())
