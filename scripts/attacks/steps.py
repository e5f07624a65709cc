"""Programs that run as steps, and try to change more than they were granted."""
import json
import os
import pathlib
import socket
import subprocess
import time

from kit import attack, harmless, refused, works, OTHER, PYTHON

PROTOCOL = "step|program|reply|protocol|result|JSON|line|output|effect|granted|may write|writable"


def step(arena, plan="", apply="", prepare="", undo="", clean="", describe="", first="", writes=(), settings=None):
    """Creates a store with release 1.0.0, a release 2.0.0 and a trusted step in Python, which runs these statements."""
    body = "".join(f"elif message['message'] == '{name}':\n" + "".join(f"    {line}\n" for line in (text or "pass").splitlines())
                   for name, text in (("prepare", prepare), ("apply", apply), ("undo", undo), ("clean", clean)))
    program = arena.write("step", f"""#!{PYTHON}
import ctypes, fcntl, json, os, signal, socket, subprocess, sys, time
message = json.loads(sys.stdin.readline())
context = message.get("context", {{}})
answer = result = {{"reply": "result"}}
directory = message.get("staging", {{}}).get("directory")
def attempt(action):
    try: return "done: %s" % (action(),)
    except BaseException as error: return "denied: %s" % error
{first}
if message["message"] == "describe":
    answer.update(protocol=1, name="test.step", version="1", summary="attacks", planIsPure=True)
{"".join(f"    {line}{chr(10)}" for line in describe.splitlines())}elif message["message"] == "plan":
    answer["effects"] = [{{"change": {{"do": "custom", "name": "test", "text": "attacks", "with": {{"writes": {json.dumps(list(writes))}}}}}}}]
{"".join(f"    {line}{chr(10)}" for line in plan.splitlines())}{body}
print(json.dumps(answer))
""", 0o755)
    one, two = arena.shop("1.0.0"), arena.shop("2.0.0")
    if not os.path.exists("store"):
        arena.store(one)
        arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
        arena.holds("store", "row of the app")
    arena.settings({"steps": {"test.step": {"executable": program, "after": "copy", "timeout": 5, "prepareTimeout": 5, **(settings or {})}}})
    arena.moult("steps", "trust", "test.step", "--store", "store", fine=(0, 1, 3))  # It may refuse a grant.
    return two


UPDATED = ["store/.moult", "store/shop.db", "store/food.db", "store/notes.db"]


@attack("a step that may write to a missing file of the store rewrites moult.json", harmless())
def missing_file_opens_directory(arena):
    log = arena.path("store/hook.log")
    two = step(arena, writes=[log], settings={"writable": [log]}, apply=f"open({log!r}, 'a').write('ran')\n"
               f"attempt(lambda: open({arena.path('store/moult.json')!r}, 'a').write('// rewritten'))\nattempt(lambda: os.rename({arena.path('store/moult.json')!r}, {arena.path('store/x')!r}))")
    arena.attack("apply", "--store", "store", two, allowed=[*UPDATED, "store/hook.log"])


@attack("a step that may write to the directory of the store, or to one above it, rewrites moult.json and the records of moult", harmless())
def granted_store(arena):
    for number, grant in enumerate((arena.path("store"), arena.root, arena.path("store/.moult"), arena.path("store/moult.json"), os.path.dirname(arena.root))):
        arena.remove("store")
        target = arena.path("store/moult.json")
        arena.held.clear()
        two = step(arena, writes=[grant], settings={"writable": [grant]}, apply=f"attempt(lambda: open({target!r}, 'a').write('// rewritten'))\n"
                   f"attempt(lambda: open({arena.path('store/.moult/steps.json')!r}, 'w').write('x'))\nattempt(lambda: open({arena.path('store/.moult/holds.json')!r}, 'w').write('x'))")
        before = pathlib.Path(target).read_bytes()
        records = pathlib.Path("store/.moult/steps.json")
        trusted = records.read_bytes() if records.exists() else None
        arena.attack("apply", "--store", "store", two, allowed=UPDATED)
        arena.check(pathlib.Path(target).read_bytes() == before, f"file: with {grant}, the step has rewritten moult.json")
        arena.check((records.read_bytes() if records.exists() else None) == trusted and not os.path.exists("store/.moult/holds.json"), f"file: with {grant}, the step has written below .moult")


@attack("an honest step that may write to a missing file creates it", works())
def honest_missing_file(arena):
    log = arena.path("spool/hook.log")
    arena.directory("spool")
    two = step(arena, writes=[log], settings={"writable": [log]}, apply=f"open({log!r}, 'a').write('ran')", undo=f"attempt(lambda: os.unlink({log!r}))")
    arena.attack("apply", "--store", "store", two, allowed=[*UPDATED, "spool/hook.log"])
    arena.check(open(log).read() == "ran", "status: the step has not written its file")


WRITES = """
for target in ("victim/public", "victim/new", "store/moult.json", "store/notes.db", "store/shop.db", "store/.moult/history.jsonl", "home/new", "releases/new", "/tmp/moult-attack-new"):
    path = os.path.join(ROOT, target)
    attempt(lambda: open(path, "a").write("x")); attempt(lambda: os.unlink(path)); attempt(lambda: os.chmod(path, 0o777)); attempt(lambda: os.chown(path, 1, 1))
    attempt(lambda: os.utime(path)); attempt(lambda: os.rename(path, path + "2")); attempt(lambda: os.truncate(path, 0)); attempt(lambda: os.setxattr(path, "user.x", b"x"))
    attempt(lambda: os.symlink("x", path + ".link")); attempt(lambda: os.link(path, path + ".hard")); attempt(lambda: os.mkdir(path + ".d")); attempt(lambda: os.mkfifo(path + ".f"))
"""


@attack("a step writes, removes, links and changes files everywhere, in every phase", harmless(), limit=40)
def writes_everywhere(arena):
    two = step(arena, first=WRITES.replace("ROOT", repr(arena.root)))
    for words in (["plan", two], ["apply", two], ["rollback"], ["steps"]):
        arena.attack(*words, "--store", "store", allowed=UPDATED)
    arena.check(not os.path.exists("/tmp/moult-attack-new"), "file: /tmp/moult-attack-new")


@attack("a step creates files with the set-user-ID bit in its granted directory", harmless())
def setuid_files(arena):
    arena.directory("spool")
    spool = arena.path("spool")
    two = step(arena, writes=[spool], settings={"writable": [spool]}, apply=f"""os.umask(0)
# A write would clear the bits.
attempt(lambda: os.open({spool!r} + "/su", os.O_CREAT | os.O_RDONLY, 0o6755))
attempt(lambda: os.open({spool!r} + "/su2", os.O_CREAT | os.O_WRONLY, 0o4711))
attempt(lambda: os.mkdir({spool!r} + "/sg", 0o7777))
attempt(lambda: os.mknod({spool!r} + "/node", 0o4755))
attempt(lambda: os.chmod({spool!r} + "/su", 0o6755))""")
    arena.attack("apply", "--store", "store", two, allowed=[*UPDATED, "spool"])
    found = [str(path) for path in pathlib.Path("spool").rglob("*") if path.is_file() and path.lstat().st_mode & 0o6000]
    arena.check(not found, f"file: {found} have the set-user-ID bit")


@attack("a step leaves names that are not UTF-8, and 300 nested directories, in its directories", works(), limit=60)
def odd_names_in_staging(arena):
    make = """def fill(place):
    here = os.getcwd()
    os.chdir(place)
    os.makedirs(b"\\xff\\xfe/\\xfd"); open(b"\\xfb", "w").close(); os.symlink("/", b"\\xfa")
    for _ in range(300): os.mkdir("d" * 90); os.chdir("d" * 90)
    os.chdir(here)
"""
    two = step(arena, first=make, plan="fill(os.environ['HOME'])", prepare="fill(directory)")
    for words in (["plan", two], ["apply", two], ["clean"], ["recover"], ["apply", arena.shop("3.0.0")]):
        arena.attack(*words, "--store", "store", allowed=UPDATED, expects=works("", 0, 2))
    arena.check(not os.listdir("store/.moult/transactions"), "file: a transaction is left")


@attack("a step makes a symbolic link at its own planned path, and fails", harmless(), limit=40)
def link_at_planned_path(arena):
    arena.directory("spool")
    path = arena.path("spool/x")
    two = step(arena, writes=[path], settings={"writable": [arena.path("spool")]}, apply=f"os.symlink({arena.path('victim/public')!r}, {path!r})\nos._exit(1)")
    arena.attack("apply", "--store", "store", two, allowed=[*UPDATED, "spool"])
    for words in (["recover"], ["recover", "--undo"], ["recover"], ["clean"]):
        arena.attack(*words, "--store", "store", allowed=[*UPDATED, "spool"], expects=works("", 0, 3))
    arena.attack("status", "--store", "store")


@attack("a step names paths that the operator has not granted, also through links and `..`", refused(PROTOCOL))
def ungranted_paths(arena):
    arena.directory("spool")
    os.symlink(arena.victim, "spool/link")
    for path in (arena.victim, arena.path("spool/../victim/public"), arena.path("spool/link/public"), "/etc/passwd", "relative", arena.path("spool/link"), arena.path("store/moult.json"), "", arena.path("spool2")):
        arena.remove("store")
        two = step(arena, writes=[path], settings={"writable": [arena.path("spool")]}, apply=f"open({path!r} if not os.path.isdir({path!r}) else {path!r} + '/new', 'a').write('x')")
        arena.attack("apply", "--store", "store", two, expects=harmless(), allowed=UPDATED)


@attack("another user exchanges the granted directory of a step for a link to a directory of root, while the step writes its file", harmless(), root=True, limit=60)
def exchanged_grant(arena):
    arena.directory("spool", owner=OTHER)
    arena.other("sh", "-c", f"mkdir -m 777 spool/granted; ln -s {arena.victim} spool/link")
    granted = arena.path("spool/granted")
    two = step(arena, writes=[granted + "/x"], settings={"writable": [granted]}, apply=f"attempt(lambda: open({granted + '/public'!r}, 'a').write('x'))\nattempt(lambda: open({granted + '/x'!r}, 'a').write('x'))")
    with arena.racing("while True: exchange('spool/granted', 'spool/link'); time.sleep(0.01)"):
        for _ in range(9):
            arena.attack("apply", "--store", "store", two, allowed=[*UPDATED, "spool"])
            arena.run([arena.command, "rollback", "--store", "store"])
            arena.run([arena.command, "unhold", "2.0.0", "--store", "store"])


@attack("processes of a step stay after the command, in other sessions and with signals ignored", harmless(), limit=60)
def surviving_processes(arena):
    fork = """for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    attempt(os.setsid)
    if os.fork() == 0:
        attempt(lambda: os.setpgid(0, 0))
        for number in range(3): attempt(lambda: os.close(number))
        time.sleep(60)
    os._exit(0)
"""
    for phase in ("plan", "prepare", "apply"):
        arena.remove("store")
        two = step(arena, **{phase: fork})
        arena.attack("apply", "--store", "store", two, allowed=UPDATED, limit=20)


@attack("a step never answers, and ignores signals", refused("time|second|answer|ended|sent nothing| s,", 1, 3, 5, 75), limit=60)
def silent_step(arena):
    two = step(arena, settings={"timeout": 2, "prepareTimeout": 2}, prepare="for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\nwhile True: time.sleep(1)")
    arena.attack("apply", "--store", "store", two, allowed=["store/.moult"], limit=18)
    arena.keeps("store/food.db", "SELECT v FROM food", [("1.0.0",)])


@attack("a step answers with endless lines, broken JSON, two results, control characters, or nothing", refused(PROTOCOL + "|exit|ended|UTF-8|large", 1, 3, 5), limit=60)
def broken_replies(arena):
    for reply in ("while True: print('{\"reply\":\"progress\",\"what\":\"x\",\"done\":1,\"total\":2}')", "while True: sys.stdout.write('x' * 65536)", "print('{')", "print('[]')", "print('null')",
                  "print(json.dumps(answer)); print(json.dumps(answer))", "sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); os._exit(0)", "os._exit(0)", "os._exit(7)", "os.kill(os.getpid(), 11)",
                  "print('{\"reply\":\"x\"}')", "print('[' * 100000)", "answer['reply'] = 'error'; answer['message'] = '\\x1b]0;title\\x07 moult: done\\n\\u202e'",
                  "print(json.dumps({'reply': 'log', 'text': '\\x1b[2J' + 'x' * 2000})); os._exit(3)", "sys.stderr.write('\\x1b]0;title\\x07' * 100); os._exit(1)"):
        two = step(arena, first=f"if message['message'] in ('prepare',):\n    {reply}\n")
        arena.attack("apply", "--store", "store", two, allowed=["store/.moult"], limit=15, memory=300)
    arena.keeps("store/food.db", "SELECT v FROM food", [("1.0.0",)])


@attack("the plan of a step has changes of the core, a million effects, or texts with control characters", harmless(), limit=60)
def changes_of_the_core(arena):
    for effects in ('[{"change": {"do": "retire", "generation": "1.0.0"}}]', '[{"change": {"do": "switchCurrent", "to": "1.0.0"}}]', '[{"change": {"do": "replace", "path": "../../victim/out.db", "member": "food.db"}}]',
                    '[{"change": {"do": "quarantine", "path": "notes.db", "why": "x", "reason": "reset"}}]', '[{"change": {"do": "displace", "path": "notes.db", "why": "x", "reason": "reset"}}]', '[answer["effects"][0]] * 200000',
                    '[{"change": {"do": "custom", "name": "x", "text": "\\x1b]0;title\\x07 \\u202e\\n+ copy  done", "with": {"writes": []}}}]', '[{"database": "notes", "change": {"do": "custom", "name": "../x", "text": "x", "with": {"writes": 5}}}]',
                    '[{"change": {"do": "confirm", "text": "\\x9b2J"}}]', 'None', '{"a": 1}'):
        arena.remove("store")
        two = step(arena, plan=f"answer['effects'] = {effects}")
        arena.attack("plan", "--store", "store", two, limit=15, memory=500)
        arena.attack("apply", "--store", "store", two, limit=15, memory=500, allowed=UPDATED)


@attack("the program of a step is changed after it was trusted, or exchanged while it is run", harmless("trust|changed|SHA-256"), limit=40)
def changed_program(arena):
    two = step(arena)
    trusted = pathlib.Path("step").read_bytes()
    trap = pathlib.Path(arena.trap()).read_bytes()
    arena.write("step", trap, 0o755)
    arena.attack("apply", "--store", "store", two, expects=refused("trust|changed|SHA-256|digest"))
    arena.write("a/step", trusted, 0o755)
    arena.write("b/step", trap, 0o755)
    arena.settings({"steps": {"test.step": {"executable": arena.path("a/step"), "after": "copy"}}})
    with arena.racing("while True: exchange('a/step', 'b/step')", user=None):
        for _ in range(12):
            arena.attack("apply", "--store", "store", two, allowed=["a", "b", *UPDATED])
    with arena.racing("one, two = open('a/step', 'rb').read(), open('trap', 'rb').read()\nwhile True:\n    open('a/step', 'r+b').write(two); open('a/step', 'r+b').write(one)\n", user=None):
        for _ in range(12):
            arena.attack("apply", "--store", "store", two, allowed=["a", "b", *UPDATED])


@attack("a release names steps that the operator has not configured, forbidden ones, or one whose program is a pipe, a link or a directory", refused("step|program|regular"), limit=40)
def unconfigured_step(arena):
    arena.store(arena.shop("1.0.0"))
    os.mkfifo("pipe")
    content = arena.content()
    evil = arena.forge("2.0.0", {"food": ("reference", content)}, change=lambda manifest: manifest | {"steps": [{"step": "test.step", "after": "copy"}]})
    arena.attack("apply", "--store", "store", evil)
    for name in ("../../trap", "/bin/sh", "a\x1bb", ""):
        named = arena.forge("2.0.0", {"food": ("reference", content)}, change=lambda manifest: manifest | {"steps": [{"step": name, "after": "copy"}]})
        arena.attack("apply", "--store", "store", named)
    for program in ("pipe", "victim", "missing"):
        arena.settings({"steps": {"test.step": {"executable": arena.path(program)}}})
        arena.attack("steps", "trust", "test.step", "--store", "store", limit=5)
        arena.attack("apply", "--store", "store", evil, limit=5)
    arena.settings({"steps": {"test.step": {"forbidden": True}}})
    arena.attack("apply", "--store", "store", evil)


@attack("a step uses the network, signals other processes, and reads their memory, without a grant", harmless(), limit=40)
def other_processes(arena):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    local = socket.socket(socket.AF_UNIX)
    local.bind("\0" + arena.secret[:16])
    local.listen()
    local.setblocking(False)
    victim = subprocess.Popen(["sleep", "60"], env={"SECRET": arena.secret})
    try:
        two = step(arena, first=f"""attempt(lambda: socket.create_connection(("127.0.0.1", {listener.getsockname()[1]}), 1))
def unix():
    s = socket.socket(socket.AF_UNIX); s.connect("\\0{arena.secret[:16]}")
attempt(unix); attempt(lambda: os.kill({victim.pid}, 9)); attempt(lambda: os.kill(os.getppid(), 19))
attempt(lambda: sys.stderr.write(open("/proc/{victim.pid}/environ").read())); attempt(lambda: os.kill(-1, 9) if os.getuid() else None)
attempt(lambda: open("/proc/%d/mem" % os.getppid(), "r+b")); attempt(lambda: ctypes.CDLL(None).ptrace(16, {victim.pid}, 0, 0))
if message["message"] == "clean": sys.stderr.write("end")
""")
        arena.attack("apply", "--store", "store", two, allowed=UPDATED, limit=15)
        arena.attack("plan", "--store", "store", two, limit=15)
        for each, name in ((listener, "a TCP port"), (local, "a Unix socket")):
            try:
                each.accept()
                arena.effect(f"process: the step has connected to {name}")
            except BlockingIOError:
                pass
        arena.check(victim.poll() is None, "process: the step has ended another process")
    finally:
        victim.kill()
        victim.wait()


@attack("a planning step empties another process's pipe", harmless())
def emptied_pipe(arena):
    os.mkfifo("home/pipe")
    descriptor = os.open("home/pipe", os.O_RDWR | os.O_NONBLOCK)
    os.write(descriptor, b"for another process")
    two = step(arena, plan=f"attempt(lambda: os.read(os.open({arena.path('home/pipe')!r}, os.O_RDONLY | os.O_NONBLOCK), 100))")
    arena.attack("plan", "--store", "store", two)
    try:
        found = os.read(descriptor, 100)
    except BlockingIOError:
        found = b""
    arena.check(found == b"for another process", f"file: the pipe has {found!r}")


@attack("a step changes a staged database so that it is damaged, hostile, or has other rows", harmless(), limit=40)
def damaged_staged_database(arena):
    for change in ("open(path, 'r+b').write(b'x' * 5000)", "os.truncate(path, 0)", "os.unlink(path); os.symlink('/etc/passwd', path)", "os.unlink(path); os.mkfifo(path)",
                   "os.rename(path, path + '.x')", "open(path + '-wal', 'wb').write(b'x' * 4096)", "open(path + '-journal', 'wb').write(b'x' * 4096)"):
        arena.remove("store")
        two = step(arena, plan="answer['effects'][0]['database'] = 'food'", prepare=f"for path in [d['path'] if isinstance(d, dict) else d for d in (lambda x: x.values() if isinstance(x, dict) else x)(message['staging'].get('databases', []))]:\n    attempt(lambda: {change.split(';')[0]})\n    {'attempt(lambda: ' + change.split(';')[1] + ')' if ';' in change else 'pass'}")
        arena.attack("apply", "--store", "store", two, allowed=UPDATED, limit=12)
        arena.keeps("store/food.db", "SELECT count(*) FROM food", [(1,)])
        arena.attack("verify", "--deep", "--store", "store", expects=works())


@attack("a step and a consumer see secrets in the environment of the command, and its open files", harmless())
def inherited_secrets(arena):
    two = step(arena, first="""for name in sorted(os.listdir("/proc/self/fd")):
    if int(name) > 3: attempt(lambda: sys.stderr.write("OPEN " + os.readlink("/proc/self/fd/" + name)))
if any("s3cret" in value for value in os.environ.values()): sys.stderr.write("ENVIRONMENT")
if message["message"] == "prepare":
    attempt(lambda: sys.stderr.write("OPENED" if any("store" in os.readlink("/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd")) else "")); os._exit(1)
""")
    ended = arena.attack("apply", "--store", "store", two, allowed=["store/.moult"], env={"TOKEN": arena.secret})
    arena.check("ENVIRONMENT" not in ended.text and "OPENED" not in ended.text, f"secret: {ended}")
