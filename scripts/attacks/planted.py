#!/usr/bin/env python3
"""For `run --self-test`: a command whose effects are planted, and the attacks that must find them.

Each attack names the kind of effect that the judges must find, and no other; the last ones plant nothing.
"""
import os, sqlite3, subprocess, sys, time

REFUSAL = "moult: error: nothing happens: the planted command refuses\n  Do nothing.\n"


def command(effect, *words):
    """What the planted command does; it returns its exit status."""
    message = REFUSAL
    if effect == "status":
        return 0
    if effect == "crash":
        os.kill(os.getpid(), 11)
    if effect == "silent":
        return 3
    if effect == "sentence":
        message = "moult: error: another cause\n"
    if effect == "write":
        open("victim/public", "a").write("more")
    if effect == "owner":
        os.chown("victim/public", 1, 1)
    if effect == "mode":
        os.chmod("victim/out.db", 0o4755)
    if effect == "leftover":
        os.mkdir("tmp/left")
    if effect == "link":
        os.unlink("victim/public")
        os.symlink("private", "victim/public")
    if effect == "program":
        subprocess.run([words[0]], stderr=subprocess.DEVNULL)
    if effect == "confined program":
        message += subprocess.run([words[0]], stderr=subprocess.PIPE, env={"HOME": "/nonexistent"}, text=True).stderr
    if effect == "secret":
        message += open("victim/private").read()
    if effect == "escape":
        message += "\x1b]0;title\x07"
    if effect == "direction":
        message += "\u202egnp.exe"
    if effect == "bytes":
        sys.stderr.flush()
        sys.stderr.buffer.write(b"\xff\n")
    if effect == "memory":
        assert len(bytearray(os.urandom(1 << 20)) * 300) > 0
    if effect in ("time", "slow"):
        time.sleep(30)
    if effect in ("row", "value"):
        with sqlite3.connect("app.db") as database:
            database.execute("DELETE FROM t WHERE x = 'two'")
    if effect == "process":
        subprocess.Popen(["sleep", "20"], start_new_session=True)
    sys.stderr.write(message)
    return 3


if __name__ == "__main__":
    sys.exit(command(*sys.argv[1:]))

from kit import attack, refused  # noqa: E402

EXPECTED = refused("the planted command refuses", 3)


def plant(name, kind, spec_limit=20, **options):
    def attacked(arena):
        arena.database("app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('one'), ('two')")
        if kind == "rows":
            arena.keeps("app.db", "SELECT count(*) FROM t", [(2,)]) if name == "row" else arena.holds(".", "two")
        arena.attack(name, arena.trap(), allowed="app.db", **options)
    attacked.plants, attacked.__name__ = kind, name.replace(" ", "_")
    attack(f"plants {name}", EXPECTED, limit=spec_limit, root=name == "owner")(attacked)


for name, kind in {
    "status": "status", "crash": "status", "silent": "sentence", "sentence": "sentence", "write": "file", "owner": "file", "mode": "file",
    "leftover": "file", "link": "file", "program": "program", "confined program": "program", "secret": "secret", "escape": "characters",
    "direction": "characters", "bytes": "characters", "row": "rows", "value": "rows", "process": "process", "nothing": None,
}.items():
    plant(name, kind)
plant("memory", "memory", memory=200)
plant("time", "time", spec_limit=2)
plant("slow", "time", limit=1)


@attack("never ends", EXPECTED, limit=1)
def endless(arena):
    while True:
        pass


@attack("cannot be prepared", EXPECTED)
def unprepared(arena):
    arena.sh("exit 1")


@attack("runs no command", EXPECTED)
def idle(arena):
    arena.moult("nothing", fine=(3,))


endless.plants, unprepared.plants, idle.plants = "time", "preparation", "preparation"
