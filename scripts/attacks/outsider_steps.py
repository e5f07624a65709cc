"""Steps that attack, by an author who has not read the code: links, descriptors, endless replies, many processes, locks, staged files."""
import os
import pathlib

from kit import Failed, attack, harmless, works
from steps import step

ALLOWED = ["store", "granted"]


def granted(arena, **options):
    """A step that may write to the directory `granted`."""
    directory = arena.directory("granted")
    return step(arena, writes=[directory], settings={"writable": [directory], "timeout": 5, "prepareTimeout": 5, **options.pop("settings", {})}, **options)


def installs(arena, second, **options):
    options = {"allowed": ALLOWED, "limit": 14, "memory": 400, "expects": harmless(), **options}
    ended = arena.attack("apply", "--store", "store", second, **options)
    arena.attack("recover", "-q", "--store", "store", expects=works(), allowed=ALLOWED)
    arena.attack("verify", "-q", "--store", "store", expects=works())
    arena.attack("sql", "-q", "SELECT v FROM food.food", "--store", "store", expects=works("[12].0.0"))
    return ended


@attack("a step links, renames, mounts and mirrors files of the store and of the victim into the directory that it may write to", harmless(), limit=40)
def links_into_grant(arena):
    targets = [arena.path(path) for path in ("store/moult.json", "victim/public", "store/.moult/history.jsonl", "victim/out.db", "store/food.db")]
    script = f"""for number, target in enumerate({targets!r}):
        here = {arena.path('granted')!r} + "/l%d" % number
        attempt(lambda: os.link(target, here))
        attempt(lambda: os.link(target, here, follow_symlinks=True))
        attempt(lambda: os.rename(target, here + "r"))
        attempt(lambda: os.symlink(target, here + "s"))
        attempt(lambda: open(here, "a").write("evil"))
        attempt(lambda: open(here + "s", "a").write("evil"))
        attempt(lambda: os.truncate(here + "s", 0))
        attempt(lambda: os.chmod(here + "s", 0o777))
        attempt(lambda: os.utime(here + "s", (1, 1)))
        attempt(lambda: os.setxattr(here + "s", "user.x", b"y"))
        attempt(lambda: os.rename({arena.path('granted')!r}, os.path.dirname(target) + "/moved"))
        attempt(lambda: os.symlink("x", os.path.dirname(target) + "/new"))
        attempt(lambda: os.mkdir(os.path.dirname(target) + "/new"))
        attempt(lambda: os.mkfifo(os.path.dirname(target) + "/new"))
        attempt(lambda: ctypes.CDLL(None).syscall(429, -100, target.encode(), 1))
        attempt(lambda: ctypes.CDLL(None).mount(target.encode(), here.encode(), None, 4096, None))"""
    second = granted(arena, apply=script, prepare=script, plan=script, describe=script)
    before = open("store/moult.json").read()
    installs(arena, second)
    arena.check(open("store/moult.json").read() == before, "file: moult.json has changed")


@attack("a step writes through inherited descriptors, /proc of other processes, and the memory of the command", harmless(), limit=40)
def descriptors(arena):
    script = """for pid in [p for p in os.listdir("/proc") if p.isdigit()] + ["self"]:
        for name in ["mem", "oom_score_adj", "comm", "coredump_filter", "clear_refs", "timerslack_ns", "uid_map"]:
            attempt(lambda: open("/proc/%s/%s" % (pid, name), "r+b", buffering=0).write(b"1"))
        for f in (attempt(lambda: os.listdir("/proc/%s/fd" % pid)) and []): pass
        try: names = os.listdir("/proc/%s/fd" % pid)
        except OSError: names = []
        for name in names:
            if pid == "self" or int(pid) == os.getppid():
                for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
                    try:
                        f = os.open("/proc/%s/fd/%s" % (pid, name), flags | os.O_NONBLOCK)
                        if pid != "self": os.write(f, b"evil")
                        os.close(f)
                    except OSError: pass
    for f in range(4, 200):
        attempt(lambda: os.write(f, b"evil")); attempt(lambda: os.ftruncate(f, 0)); attempt(lambda: os.fchmod(f, 0o777)); attempt(lambda: os.fchown(f, 1, 1))"""
    installs(arena, granted(arena, prepare=script, apply=script, plan=script))


@attack("a step prints endless lines, a line without end, nested JSON, and millions of progress replies", harmless(), limit=120)
def endless_replies(arena):
    loops = {"line": "while True: sys.stdout.write('x' * 65536)", "errors": "while True: sys.stderr.write('e' * 65536)", "progress": "while True: print('{\"reply\":\"progress\",\"what\":\"x\",\"done\":1,\"total\":0}')",
             "log": "while True: print('{\"reply\":\"log\",\"text\":\"' + 'y' * 60000 + '\"}')", "nested": "print('[' * 1000000); sys.exit(0)", "object": "print('{\"reply\":\"result\",\"effects\":' + '[' * 400000 + ']' * 400000 + '}'); sys.exit(0)",
             "number": "print('{\"reply\":\"result\",\"x\":' + '9' * 1000000 + '}'); sys.exit(0)", "nothing": "time.sleep(100)", "intents": "for n in range(10**9): print(json.dumps({'reply': 'intent', 'id': n, 'intent': {'do': 'x', 'text': 'z' * 1000}}))"}
    for name, script in loops.items():
        for phase in {"intents": ["apply"], "nested": ["plan", "apply"], "object": ["plan"], "number": ["plan"]}.get(name, ["prepare"]):
            arena.sh("rm -rf store releases work-* granted")
            second = granted(arena, **{phase: script}, settings={"timeout": 2, "prepareTimeout": 2})
            begun = len(arena.effects)
            arena.attack("apply", "-q", "--store", "store", second, allowed=ALLOWED, limit=9, memory=400, expects=harmless())
            size = sum(os.path.getsize(os.path.join(directory, file)) for directory, _, files in os.walk("store") for file in files if not os.path.islink(os.path.join(directory, file)))
            arena.check(size < 80 << 20, f"file: the store has {size >> 20} MiB")
            arena.effects[begun:] = [f"{effect} ({name} in {phase})" for effect in arena.effects[begun:]]
    # The harness keeps only the first 4 MiB of an output.
    arena.effects[:] = [effect for effect in arena.effects if not (effect.startswith("sentence: no error") and "yyyyyyy" in effect)]
    arena.attack("recover", "-q", "--store", "store", expects=works(), allowed=ALLOWED)


@attack("a step leaves 60 processes that ignore signals, stop themselves, stop the supervisor and hold the pipe", harmless(), limit=60)
def processes(arena):
    script = """for n in range(60):
        if os.fork() == 0:
            for s in range(1, 65):
                try: signal.signal(s, signal.SIG_IGN)
                except (OSError, ValueError): pass
            try: os.setsid()
            except OSError: pass
            try: os.setpgid(0, 0)
            except OSError: pass
            if n % 3 == 0: os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(100); os._exit(0)
    attempt(lambda: os.kill(os.getppid(), signal.SIGSTOP)); attempt(lambda: os.killpg(0, signal.SIGCONT)); attempt(lambda: os.kill(os.getppid(), signal.SIGKILL))
    attempt(lambda: os.kill(1, signal.SIGTERM)); attempt(lambda: os.nice(19))"""
    for phase in ("prepare", "plan", "apply"):
        arena.sh("rm -rf store releases work-* granted")
        installs(arena, granted(arena, **{phase: script}))


@attack("a step replaces, stretches, links, locks and fills its staging directory and the staged database", harmless(), limit=60)
def staging(arena):
    script = """d = message.get("staging", {}).get("directory") or "."
    for name in ("a\\nb", "\\udcff", "-rf", ".", "x" * 255): attempt(lambda: open(os.path.join(d, name), "w").write("x"))
    attempt(lambda: os.symlink("/", os.path.join(d, "root"))); attempt(lambda: os.symlink("..", os.path.join(d, "up"))); attempt(lambda: os.mkfifo(os.path.join(d, "pipe")))
    attempt(lambda: socket.socket(socket.AF_UNIX).bind(os.path.join(d, "socket"))); attempt(lambda: os.truncate(os.open(os.path.join(d, "sparse"), os.O_CREAT | os.O_RDWR), 1 << 28))
    here = os.getcwd()
    try:
        os.chdir(d)
        for n in range(600): os.mkdir("n" * 200); os.chdir("n" * 200)
    except OSError: pass
    os.chdir(here)
    for path in (message.get("staging", {}).get("databases") or {}).values():
        attempt(lambda: os.rename(path, path + "x")); attempt(lambda: os.unlink(path)); attempt(lambda: os.symlink("/etc/passwd", path)); attempt(lambda: open(path + "-journal", "w").write("x"))
        attempt(lambda: os.truncate(path, 1 << 28)); attempt(lambda: open(path + "-wal", "w").write("x"))"""
    for phase in ("prepare", "apply"):
        arena.sh("[ ! -e store ] || chmod -R u+rwX store; rm -rf store releases work-* granted")
        second = granted(arena, **{phase: script})
        installs(arena, second)
        arena.check(not os.listdir("store/.moult/transactions"), "file: a transaction is left")


@attack("`steps test` and `steps trust` get a program that is exchanged, has a shebang loop, or writes to the terminal", harmless(), limit=60)
def tested_programs(arena):
    arena.store(arena.shop("1.0.0"))
    trap = arena.trap()
    programs = {"loop": f"#!{arena.path('loop')}\n", "long": "#!/" + "x" * 5000 + "\n", "none": "#!\n", "binary": b"\x7fELF" + b"\0" * 60, "empty": "", "trap": f"#!{trap}\n",
                "escape": "#!/bin/sh\nprintf '{\"reply\":\"result\",\"protocol\":1,\"name\":\"a\\u001b]0;x\\u0007\\u202e\",\"version\":\"\\u001b[2J\\n\",\"summary\":\"\\u0000\\u2028\",\"planIsPure\":true}\\n'\n",
                "noise": "#!/bin/sh\nprintf '\\033]0;x\\007\\377\\n' >&2\nprintf '\\033]0;x\\007\\377\\n'\nexit 1\n"}
    for name, text in programs.items():
        arena.write(name, text, 0o755)
        for terminal in (False, True):
            arena.attack("steps", "test", arena.path(name), expects=harmless(), limit=12, terminal=terminal)
    arena.check(not os.listdir("tmp"), f"file: left in TMPDIR: {os.listdir('tmp')}")
    arena.write("good", "#!/bin/sh\nread x\nprintf '{\"reply\":\"result\",\"protocol\":1,\"name\":\"acme.x\",\"version\":\"1\",\"summary\":\"\",\"planIsPure\":true,\"effects\":[]}\\n'\n", 0o755)
    arena.write("evil", pathlib.Path("trap").read_text(), 0o755)
    arena.settings({"steps": {"acme.x": {"executable": arena.path("good"), "after": "copy"}}})
    arena.moult("steps", "trust", "acme.x", "--store", "store")
    second = arena.shop("2.0.0")
    with arena.racing("while True:\n    exchange('good', 'evil'); time.sleep(0.0005)", user=None):
        for _ in range(12):
            arena.attack("apply", "-q", "--store", "store", second, allowed=["store", "good", "evil"], expects=harmless())
            arena.moult("rollback", "-q", "--store", "store", fine=(0, 1, 3))
            arena.moult("unhold", "-q", "--all", "--store", "store", fine=(0, 1, 3))


@attack("writable paths of a step are links, parents of the store, its records, and names with dots", harmless(), limit=60)
def odd_grants(arena):
    for path in ("store/.moult", "store/.moult/history.jsonl", "store", "", "store/..", "link", "store/moult.json", "store/.moult/../moult.json", "granted/../store/moult.json", "store/food.db", "store/.moult/current",
                 "store/.moult/generations"):
        arena.sh("rm -rf store releases work-* granted; mkdir -p granted; ln -sfn store link")
        full = arena.path(path).rstrip("/")
        script = f"""attempt(lambda: open({arena.path('store/moult.json')!r}, "a").write("evil")); attempt(lambda: open({arena.path('store/.moult/holds.json')!r}, "w").write("evil"))
    attempt(lambda: os.symlink("evil", {arena.path('store/.moult/next')!r})); attempt(lambda: open({arena.path('victim/public')!r}, "a").write("evil"))"""
        try:
            second = step(arena, writes=[full], settings={"writable": [full]}, apply=script, prepare=script)
        except Failed as refusal:  # `steps trust` may refuse the settings.
            arena.check("moult: error" in str(refusal) and "writable" in str(refusal), f"status: {refusal}")
            continue
        before = open("store/moult.json").read()
        arena.attack("apply", "-q", "--store", "store", second, allowed=ALLOWED, expects=harmless())
        arena.check(open("store/moult.json").read() == before, f"file: the step with the grant {path!r} has changed moult.json")
        arena.check(not os.path.lexists("store/.moult/next") and b"evil" not in (pathlib.Path("store/.moult/holds.json").read_bytes() if os.path.exists("store/.moult/holds.json") else b""),
                    f"file: the step with the grant {path!r} has changed .moult")
        arena.effects[:] = list(dict.fromkeys(arena.effects))
