"""Attacks on time by an author who has not read the code: copies in the middle of an update, processes at once, clocks, limits, kills, full disks."""
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import time

from kit import LIBC, Failed, all_values, attack, harmless, refused, works
from outsider_judges import can_fail

ROW, NOTE = "row of the app", "note of the user"


def updated(arena, **more):
    """Creates a store with release 1.0.0 and rows of the app, and returns the manifest of release 2.0.0."""
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0", **more)
    arena.store(first)
    arena.database("store/shop.db", f"INSERT INTO item VALUES(7, '{ROW}', 1)")
    arena.database("store/notes.db", f"INSERT INTO note VALUES(1, '{NOTE}')")
    arena.holds("store", ROW, NOTE)
    return second


def complete(arena, store):
    """Every database of a store is whole and has the rows of the app, and the read-only ones are from one release."""
    for name, sql, expected in (("shop", "SELECT name FROM item WHERE own = 1", ROW), ("notes", "SELECT text FROM note", NOTE)):
        try:
            found = arena.rows(f"{store}/{name}.db", sql)
        except sqlite3.Error as error:
            found = error
        arena.check(found == [(expected,)], f"rows: {store}/{name}.db: {found}")
        arena.check(arena.rows(f"{store}/{name}.db", "PRAGMA integrity_check") == [("ok",)], f"rows: {store}/{name}.db is damaged")


@attack("a store is copied at many moments of an update, and each copy is used", harmless(), needs=("strace",), limit=60)
def copied_in_the_middle(arena):
    second = updated(arena)
    arena.sh("cp -a store before; cp -a store planted; sqlite3 planted/shop.db 'DELETE FROM item WHERE own = 1'")
    can_fail(arena, complete, "planted")
    arena.sh("rm -rf planted")
    for call, count in (("fsync", 9), ("renameat2", 2), ("symlinkat", 1), ("pwrite64", 20)):
        arena.sh("rm -rf store copy; cp -a before store")

        def copy(process):
            time.sleep(0.7)  # The call waits for longer.
            arena.sh("cp -a store copy")

        arena.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:delay_enter=1200000:when={count}", arena.command, "apply", "-q", "--store",
                   "store", second], during=copy, limit=8)
        for words in (["sql", "SELECT 1"], ["apply", "-q", second], ["verify", "-q", "--deep"]):
            arena.attack(*words, "--store", "copy", allowed=["copy"], expects=works())
        complete(arena, "copy")
        arena.attack("recover", "-q", "--store", "store", allowed=["store"], expects=works())
        complete(arena, "store")


@attack("six commands that write run in one store at the same time, again and again", harmless("another|running|hold|older|generation|nothing|changed|busy|kept|installed"), limit=60)
def all_at_once(arena):
    second = updated(arena)
    third = arena.shop("3.0.0")
    commands = [["apply", "-q", "--allow-downgrade", second], ["apply", "-q", third], ["rollback", "-q"], ["clean", "-q", "--keep", "1"], ["unhold", "-q", "--all"],
                ["recover", "-q"], ["reset", "-q", "shop", "--set-user-data-aside"], ["quarantine", "-q", "--restore", "shop"], ["apply", "-q", "--allow-downgrade", "releases/app-1.0.0.json"]]
    random.seed(47)
    for _ in range(8):
        running = [subprocess.Popen([arena.command, *words, "--store", "store", "--wait", "5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=arena.env)
                   for words in random.sample(commands, 6)]
        for process in running:
            try:
                _, said = process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                arena.effect(f"time: {process.args} did not end")
                continue
            arena.check(process.returncode in (0, 1, 3, 5, 75), f"status: {process.args} ended with {process.returncode}: {said[-300:]}")
    # A restored database may have the content of another release, until a release is applied.
    arena.attack("verify", "-q", "--store", "store", expects=works("", 0, 1))
    arena.attack("unhold", "-q", "--all", "--store", "store", expects=works("", 0, 1, 3), allowed=["store"])
    arena.attack("apply", "-q", third, "--store", "store", expects=works(), allowed=["store"])
    arena.attack("verify", "-q", "--store", "store", expects=works())
    arena.attack("status", "--json", "--store", "store", expects=works())


@attack("SIGTERM, SIGINT, SIGHUP and SIGKILL reach the whole process group of an update at random moments", harmless(), limit=60)
def signals_at_random(arena):
    second = updated(arena)
    random.seed(11)
    for number in range(24):
        which = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT, signal.SIGPIPE)[number % 6]
        words = [["apply", "-q", second], ["rollback", "-q"]][number % 2]

        def hit(process):
            time.sleep(random.random() * 0.12)
            try:
                os.killpg(process.pid, which)
            except ProcessLookupError:
                pass
        arena.run([arena.command, *words, "--store", "store"], during=hit, limit=10)
        arena.moult("unhold", "-q", "--all", "--store", "store", fine=(0, 1, 3))
    arena.attack("recover", "-q", "--store", "store", allowed=["store"], expects=works())
    arena.attack("apply", "-q", "--store", "store", second, allowed=["store"], expects=works())
    complete(arena, "store")
    arena.check(not [name for name in os.listdir("tmp")], f"file: left in TMPDIR: {os.listdir('tmp')}")


def limited(arena, which, value, words, expects, **options):
    """Runs a command under a limit of the kernel, which its parent sets."""
    return arena.attack("-c", f"ulimit -{which} {value}; exec moult \"$@\"", "sh", *words, program="/bin/bash", expects=expects, **options)


@attack("limits of the parent: few descriptors, no memory, no processor time, no file size, no processes", harmless(), limit=60)
def limits_of_parent(arena):
    second = updated(arena)
    for which, value in (("n", 12), ("n", 20), ("n", 5), ("v", 300000), ("v", 60000), ("f", 1), ("f", 16), ("f", 0), ("s", 64), ("c", 0), ("l", 0), ("t", 1)):
        limited(arena, which, value, ["apply", "-q", "--store", "store", second], works("", 0, 1, 3, 5, 6, 75, 127, 134, 139, 159, -9, -11, -24, -25, -6, 126),
                allowed=["store"])
        arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("sentence: no error is shown")]
        arena.attack("recover", "-q", "--store", "store", allowed=["store"], expects=works())
        complete(arena, "store")
        arena.moult("rollback", "-q", "--store", "store", fine=(0, 1, 3))
        arena.moult("unhold", "-q", "--all", "--store", "store", fine=(0, 1, 3))


@attack("the user may start no more processes, and a damaged release must not be installed unchecked", harmless(), root=True)
def no_processes(arena):
    arena.directory("mine", 0o755, 4713)
    content = bytearray(arena.content("CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT); "
                                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60) INSERT INTO food SELECT i, hex(randomblob(400)) FROM n"))
    for at in range(8192, 8292):
        content[at] = 0x5A
    release = arena.forge("1.0.0", {"food": ("reference", bytes(content))})
    arena.moult("init", "-q", "mine/store", "--product", "org.example.app", user=4713)
    for shell in ("ulimit -u 0", "ulimit -u 1", "trap '' CHLD", "trap '' CHLD PIPE XCPU XFSZ"):
        ended = arena.attack("-c", f'{shell}; exec moult "$@"', "sh", "apply", "-q", "--store", "mine/store", release, program="/bin/bash", user=4713,
                             allowed=["mine"], expects=refused("", 1, 3))
        arena.check(not os.path.lexists("mine/store/food.db"), f"rows: a damaged database was installed under {shell}: {ended}")


@attack("signals are blocked or ignored by the parent, children are reaped by the kernel", works(), limit=40)
def inherited_signals(arena):
    second = updated(arena)
    script = ("import os, signal, sys\nhow = sys.argv[1]\n"
              "if how == 'ignored': [signal.signal(s, signal.SIG_IGN) for s in range(1, 65) if s not in (9, 19, 32, 33)]\n"
              "if how == 'blocked': signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
              "if how == 'child': signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
              "if how == 'orphan':\n    if os.fork() == 0: os._exit(7)\n"
              "os.execvp(sys.argv[2], sys.argv[2:])\n")
    for how in ("ignored", "blocked", "child", "orphan"):
        for words in (["apply", "-q", second], ["verify", "-q", "--deep"], ["plan", "--deep", second], ["rollback", "-q"], ["unhold", "-q", "--all"]):
            arena.attack("-c", script, how, arena.command, *words, "--store", "store", program="/usr/bin/python3", allowed=["store"], expects=works("", 0, 2))
        complete(arena, "store")


@attack("the parent waits for a command with blocked signals: SIGTERM must still end an update that waits", works("", 75, 1, 143, -15), limit=30)
def blocked_term(arena):
    second = updated(arena)
    # In a process of its own: the judge reads the file, which would release the locks of this process.
    script = "import sqlite3, time\nc = sqlite3.connect('store/shop.db', isolation_level=None)\nc.execute('BEGIN EXCLUSIVE')\nprint('locked', flush=True)\ntime.sleep(60)"
    holder = subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE)
    holder.stdout.readline()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        ended = arena.attack("apply", "--retry", "60", "--store", "store", second, limit=6, allowed=["store"],
                             during=lambda process, number=number: (time.sleep(0.8), os.kill(process.pid, number)), expects=works("", 0, 1, 75, 130, 143, -15, -2, -1, 129))
        arena.check(ended.status != 0, f"status: an update that was ended by signal {number} ended with 0")
        arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("sentence: no error is shown")]
    holder.kill()
    holder.wait()
    complete(arena, "store")


def small(arena, path, size, inodes=0):
    """Mounts a small file system, in a mount namespace of this process."""
    if LIBC.unshare(0x00020000) != 0 or subprocess.run(["mount", "--make-rprivate", "/"]).returncode != 0:
        raise Failed("no mount namespace")
    arena.directory(path)
    options = f"size={size}k" + (f",nr_inodes={inodes}" if inodes else "")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", arena.path(path)]).returncode != 0:
        raise Failed("no tmpfs")


@attack("the disk of a store is full to different degrees, and each command runs", harmless("space|full|No space|disk"), root=True, limit=100)
def full_disk(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    small(arena, "small", 1200)
    arena.store(first, name="small/store")
    arena.database("small/store/shop.db", f"INSERT INTO item VALUES(7, '{ROW}', 1)")
    arena.database("small/store/notes.db", f"INSERT INTO note VALUES(1, '{NOTE}')")
    arena.sh("cp -a small/store outside")
    commands = [["apply", "-q", second], ["reset", "-q", "shop", "--set-user-data-aside"], ["hold", "-q", "9.0.0", "--reason", "x"], ["rollback", "-q"], ["recover", "-q"],
                ["quarantine", "--restore", "shop"], ["unhold", "--all"], ["reset", "-q", "notes", "--set-user-data-aside"]]
    for left in (0, 4, 12, 24, 40, 72, 120):
        arena.sh("rm -rf small/*; cp -a outside small/store")
        free = os.statvfs("small")
        fill = free.f_bavail * free.f_frsize // 1024 - left
        if fill > 0:
            arena.sh(f"dd if=/dev/zero of=small/fill bs=1024 count={fill} 2>/dev/null || true")
        for words in commands:
            ended = arena.attack(*words, "--store", "small/store", allowed=["small"], expects=harmless())
            arena.check(ended.status != 6 or words[0] == "recover", f"status: {words} with {left} KiB: {ended}")
            values = arena.rows("small/store/shop.db", "SELECT count(*) FROM item") if os.path.exists("small/store/shop.db") else "missing"
            arena.check(values != "missing", f"rows: shop.db is missing after {words} with {left} KiB")
        arena.sh("rm -f small/fill")
        arena.attack("recover", "-q", "--store", "small/store", allowed=["small"], expects=works())
        arena.attack("verify", "-q", "--store", "small/store", expects=works())
        missing = {ROW, NOTE} - all_values("small/store", {ROW, NOTE})
        arena.check(not missing, f"rows: {missing} are lost with {left} KiB")


@attack("the file system of a store has no inodes left", harmless(), root=True, limit=60)
def no_inodes(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    small(arena, "small", 4000, 200)
    arena.store(first, name="small/store")
    arena.database("small/store/shop.db", f"INSERT INTO item VALUES(7, '{ROW}', 1)")
    arena.database("small/store/notes.db", f"INSERT INTO note VALUES(1, '{NOTE}')")
    for left in (0, 1, 3, 6, 10, 14):
        arena.sh(f"rm -f small/f-*; i=0; while touch small/f-$i 2>/dev/null; do i=$((i+1)); done; i=0; while [ $i -lt {left} ]; do rm small/f-$i; i=$((i+1)); done")
        for words in (["apply", "-q", second], ["reset", "-q", "shop", "--set-user-data-aside"], ["rollback", "-q"], ["unhold", "-q", "--all"]):
            ended = arena.attack(*words, "--store", "small/store", allowed=["small"], expects=harmless())
            arena.check(ended.status != 6, f"status: {words} with {left} inodes: {ended}")
        arena.sh("rm -f small/f-*")
        arena.attack("recover", "-q", "--store", "small/store", allowed=["small"], expects=works())
        arena.attack("verify", "-q", "--store", "small/store", expects=works())
        arena.holds("small/store", ROW, NOTE)


@attack("a database of a store is mounted alone, as in containers, and each command that replaces it runs", harmless(), root=True, limit=40)
def mounted_file(arena):
    second = updated(arena)
    if LIBC.unshare(0x00020000) != 0 or subprocess.run(["mount", "--make-rprivate", "/"]).returncode != 0:
        raise Failed("no mount namespace")
    for name in ("shop.db", "notes.db"):
        arena.sh(f"cp store/{name} outside-{name}; mount --bind outside-{name} store/{name}")
    for words in (["apply", "-q", second], ["rollback", "-q"], ["reset", "-q", "shop", "--set-user-data-aside"], ["recover", "-q"],
                  ["reset", "-q", "notes", "--set-user-data-aside"], ["apply", "-q", second]):
        ended = arena.attack(*words, "--store", "store", allowed=["store", "outside-*"], expects=harmless())
        arena.check(ended.status != 6, f"status: {words}: {ended}")
    arena.attack("recover", "-q", "--store", "store", allowed=["store", "outside-*"], expects=works())
    arena.sh("umount store/shop.db; umount store/notes.db")
    arena.held[:] = [(arena.root, (ROW, NOTE))]


@attack("directories of a store are other file systems: renames fail with EXDEV", harmless(), root=True, limit=60)
def mounted_directories(arena):
    second = updated(arena)
    if LIBC.unshare(0x00020000) != 0 or subprocess.run(["mount", "--make-rprivate", "/"]).returncode != 0:
        raise Failed("no mount namespace")
    for name in ("generations", "transactions", "quarantine", "leases", ""):
        path = f"store/.moult/{name}".rstrip("/")
        os.makedirs(path, exist_ok=True)
        arena.sh(f"rm -rf kept; cp -a {path} kept; mount -t tmpfs -o mode=755 none {path}; cp -a kept/. {path}/")
        for words in (["apply", "-q", second], ["rollback", "-q"], ["reset", "-q", "shop", "--set-user-data-aside"], ["quarantine", "--restore", "shop"]):
            ended = arena.attack(*words, "--store", "store", allowed=["store", "kept"], expects=harmless())
            arena.check(ended.status != 6, f"status: {words} with {path} mounted: {ended}")
        arena.attack("recover", "-q", "--store", "store", allowed=["store"], expects=works())
        arena.attack("unhold", "-q", "--all", "--store", "store", allowed=["store"], expects=works("", 0, 1, 3))
        arena.sh(f"rm -rf kept; cp -a {path} kept; umount {path}; rm -rf {path}; cp -a kept {path}")


@attack("root changes a read-only database and sets its times back; monitoring must not be green", works("", 1, 2), root=True)
def times_set_back(arena):
    arena.store(arena.shop("1.0.0"))
    path = os.path.realpath("store/food.db")
    facts = os.stat(path)
    data = bytearray(pathlib.Path(path).read_bytes())
    at = data.index(b"1.0.0")
    os.chmod(path, 0o644)
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"6.6.6")
    os.chmod(path, facts.st_mode & 0o7777)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    arena.attack("status", "--nagios", "--store", "store")
    arena.attack("verify", "--store", "store")
    arena.attack("verify", "--deep", "--store", "store")
    arena.attack("status", "--deep", "--store", "store")


@attack("times of files are far in the past and in the future, and nothing in use is removed", works(), limit=30)
def odd_times(arena):
    second = updated(arena)
    arena.moult("apply", "-q", "--store", "store", second)
    for seconds in (-(1 << 31), -1, (1 << 33), (1 << 31) + 5, 253402300800):
        for directory, names, files in os.walk("store/.moult"):
            for name in [*names, *files]:
                path = os.path.join(directory, name)
                try:
                    os.utime(path, (seconds, seconds), follow_symlinks=False)
                except (OSError, OverflowError):
                    pass
        for words in (["status"], ["status", "--json"], ["status", "--nagios"], ["history"], ["clean", "--quarantine-older-than", "1"], ["quarantine"], ["verify"],
                      ["status", "--deep"], ["status", "--prometheus"]):
            arena.attack(*words, "--store", "store", allowed=["store"], expects=works("", 0, 1, 2))
        arena.attack("apply", "-q", "--store", "store", second, allowed=["store"], expects=works())
        complete(arena, "store")
        arena.check(os.path.exists("store/food.db"), "rows: food.db is missing")
