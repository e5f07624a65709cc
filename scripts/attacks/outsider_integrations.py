"""Attacks on the Python package, the Ansible module and the C reader by an author who has not read the code of the command."""
import json
import os
import pathlib
import random

from integrations import python
from kit import PYTHON, ROOT, attack, harmless, refused, works

DRAFT = {"food": ("reference", "CREATE TABLE food(x); INSERT INTO food VALUES('right')"), "notes": ("user", "CREATE TABLE note(x)")}


def installed(arena, **more):
    arena.store(arena.release("1.0.0", DRAFT), **more)
    generation = f"store/.moult/{os.readlink('store/.moult/current')}"
    os.chmod(generation, 0o755)
    return generation


def manifest_of(arena, generation, change):
    path = pathlib.Path(generation, "manifest.json")
    manifest = json.loads(path.read_text())
    manifest = change(manifest) or manifest
    path.unlink()
    path.write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))


READ = "store = Store('store')\nprint(store.connection.execute('SELECT x FROM food.food').fetchall())"


@attack("Python: names of databases that verify gets from a caller are options of the command", harmless())
def names_as_options(arena):
    installed(arena)
    arena.store(arena.release("1.0.0", DRAFT, out="other-releases"), name="other")
    arena.database("store/notes.db", "DROP TABLE note")
    for name in ("--store=other", "-sother", "--help", "--version", "--json", "--check-timeout=0", "--store", "-h"):
        ended = python(arena, f"result = Store('store').verify({name!r})\nprint('green' if result.sound else 'red')", expects=harmless())
        arena.check("green" not in ended.out, f"status: verify({name!r}) is green for a broken store")


@attack("Python: words of a caller are options: manifests, versions, reasons, tables, keys and files that begin with a dash", harmless(), limit=40)
def dashes(arena):
    installed(arena)
    arena.database("-o.db", "CREATE TABLE t(x)")
    arena.database("new.db", "CREATE TABLE t(x)")
    arena.trap()
    for script in ("Store('store').apply('--allow-unsigned')", "Store('store').apply(follow='match --allow-downgrade')", "Store('store').rollback(to='--force')",
                   "Store('store').rollback(reason='--to=1.0.0')", "Store('store').apply(keys='--feed=x', create=True)", "replace('-o.db', 'new.db', command=None)",
                   "replace('new.db', '-o.db', preserve=['--undo'])", "replace('new.db', '-o.db', checks=['--undo'])", "Store('-s').status()", "Store('store').plan(take_over=['-o', 'x'])",
                   "Store('store').plan(save='-x')"):
        python(arena, script, allowed=["-x", "new.db", ".new.db.moult", "-o.db", ".-o.db.moult"], expects=harmless())


@attack("Python: the manifest of the installed release names files outside the store", refused("manifest|path|name|generation|read|verify"))
def paths_in_manifest(arena):
    generation = installed(arena)
    arena.database("victim/v.db", f"CREATE TABLE food(x); INSERT INTO food VALUES('{arena.secret}')")
    for path in ("../../../../victim/v.db", "../victim/v.db", arena.path("victim/v.db"), "..", "/", "a/b.db", "food.db\u0000x", "", "food.db?mode=rw", ".", "./../food.db", 5, None, ["food.db"]):
        for field in ("path", "member"):
            manifest_of(arena, generation, lambda m, f=field, p=path: m["databases"]["food"].update({f: p, "kind": "shared" if f == "path" else "reference"}))
            ended = python(arena, READ, expects=harmless(), limit=5)
            arena.check("s3cret" not in ended.text, f"secret: {field} {path!r} opens a file outside")
            for word in ("TypeError", "AttributeError", "KeyError"):
                arena.check(word not in ended.text, f"sentence: {field} {path!r}: {ended.text[-200:]}")
            manifest_of(arena, generation, lambda m: m["databases"]["food"].update(path="food.db", member="food.db", kind="reference"))
    python(arena, READ, expects=works("right"))


@attack("Python: the manifest is nested, has wrong types, or has a hostile schema name", refused("manifest|damaged|read|generation|verify|not"), limit=40)
def odd_manifest(arena):
    generation = installed(arena)
    whole = pathlib.Path(generation, "manifest.json").read_text()
    changes = ["[" * 200000, '{"databases":' + "[" * 100000 + "]" * 100000 + ', "version": "1"}', "[]", "null", '"x"', "{}", '{"version": 1, "databases": []}',
               '{"version": "1", "databases": {"a": 1}}', '{"version": "1", "databases": {"a": {"kind": 1}}}', '{"version": "1", "databases": {"a": {"kind": "user", "path": "a"}}}',
               "\ufeff" + whole, whole.replace('"food.db"', "1e999"), whole * 2, whole[:-5]]
    for text in changes:
        manifest_of(arena, generation, lambda _, text=text: text)
        ended = python(arena, READ, expects=harmless(), limit=5)
        for word in ("RecursionError", "TypeError", "AttributeError", "KeyError", "Segmentation"):
            arena.check(word not in ended.text, f"sentence: {text[:60]!r}: {ended.text[-200:]}")
        pathlib.Path(generation, "manifest.json").write_text(whole)
    for name in ('x"; ATTACH \'victim/out.db\' AS v; --', "a\u0000b", "temp", "main", "MAIN", "\u0301", "x]"):
        manifest_of(arena, generation, lambda m, n=name: m["databases"]["food"].update(attach={"as": n}))
        python(arena, "c = Store('store').connection\nprint([row[1] for row in c.execute('PRAGMA database_list')])", expects=harmless(), limit=5)


@attack("Python: moult.json has comments, strings and numbers that take exponential time", harmless(), limit=30)
def settings_time(arena):
    installed(arena)
    whole = pathlib.Path("store/moult.json").read_text().rstrip().rstrip("}")
    cache = 'print(store.connect()); import moult_store.lease as l; print(l._cache_root("store"))'
    for more in (",/*" + "*" * 3000, ", " + "// x\n" * 3000, ',"a":' + '"' + "\\" * 20001 + '"', ", " + "/" * 400, "," + " ,/**/" * 2000, ',"x":[' + ",\n//,\n" * 400 + "]",
                 ',"d":' + "[" * 50000, ", /**/" * 30, ",/*/" * 400):
        pathlib.Path("store/moult.json").write_text(whole + more + "}")
        python(arena, f"store = Store('store')\n{cache}", expects=harmless(), limit=4)


@attack("Python: the link to the installed release leads out of the store, to itself, or has an odd name", refused("generation|release|store|link|current|installed"))
def odd_current(arena):
    installed(arena)
    generation = os.readlink("store/.moult/current")
    arena.sh(f"mkdir -p evil; cp -a store/.moult/{generation} evil/1.0.0+x; sqlite3 evil/1.0.0+x/food.db 'SELECT 1' || true")
    for target in ("../../evil/1.0.0+x", arena.path("evil/1.0.0+x"), "generations/../../../evil/1.0.0+x", "current", "generations/", "generations", ".", "/", "generations/\udcff", "generations/..",
                   generation + "/..", generation + "/.", "generations/" + "x" * 255, "generations/a\nb"):
        os.unlink("store/.moult/current")
        os.symlink(target, "store/.moult/current")
        ended = python(arena, READ, limit=4, expects=harmless())
        arena.check("right" not in ended.out or "evil" not in target, f"file: reads through {target}")


def module(arena, parameters, check=False, **options):
    """Runs the Ansible module with a stand-in for ansible.module_utils.basic."""
    arena.write("ansible-stub/ansible/__init__.py", "")
    arena.write("ansible-stub/ansible/module_utils/__init__.py", "")
    arena.write("ansible-stub/ansible/module_utils/basic.py", '''
import json, os, subprocess, sys
class AnsibleModule:
    def __init__(self, argument_spec, supports_check_mode=False):
        given = json.loads(os.environ["PARAMETERS"])
        self.params = {name: given.get(name, spec.get("default")) for name, spec in argument_spec.items()}
        self.check_mode, self._diff = bool(os.environ.get("CHECK")), False
    def run_command(self, words):
        ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        return ended.returncode, ended.stdout.decode("utf-8", "surrogateescape"), ended.stderr.decode("utf-8", "surrogateescape")
    def exit_json(self, **result):
        print(json.dumps(result)); sys.exit(0)
    def fail_json(self, **result):
        print("moult: error: " + json.dumps(result)); sys.exit(1)
''')
    os.makedirs("ansible-stub/ansible_collections/moult", exist_ok=True)
    if not os.path.lexists("ansible-stub/ansible_collections/moult/store"):
        os.symlink(ROOT / "integrations/ansible", "ansible-stub/ansible_collections/moult/store")
    return arena.attack(str(ROOT / "integrations/ansible/plugins/modules/moult_release.py"), program=PYTHON,
                        env={"PYTHONPATH": arena.path("ansible-stub"), "PYTHONDONTWRITEBYTECODE": "1", "PARAMETERS": json.dumps(parameters), **({"CHECK": "1"} if check else {})}, **options)


@attack("Ansible: parameters that begin with a dash are options of the command", harmless(), limit=30)
def ansible_options(arena):
    first = arena.release("1.0.0", DRAFT)
    arena.key()
    public = pathlib.Path("k.pub").read_text().splitlines()[1]
    arena.moult("init", "-q", "signed", "--product", "org.example.app", "--key", "k.pub")
    arena.directory("ansible-stub")
    options = {"allowed": ["ansible-stub", "made"], "expects": harmless()}
    for more in ({"manifest": "--allow-unsigned"}, {"manifest": "--plan=x"}, {"app": "--allow-unsigned"}, {"product": "--key=k.pub"}, {"manifest": first, "app": "1 --allow-unsigned"},
                 {"manifest": "-h"}, {"manifest": "--feed=" + first}, {"manifest": "--version"}, {"manifest": "--store=other"}):
        for check in (False, True):
            ended = module(arena, {"store": arena.path("signed"), "keys": [public], "executable": arena.command, **more}, check, **options)
            arena.check("Traceback" not in ended.text, f"sentence: {more}: {ended.text[-300:]}")
            arena.check('"changed": true' not in ended.out and ended.status != 0, f"status: {more} is reported as success: {ended.out[:200]}")
    arena.check(not os.path.lexists("signed/.moult/current"), "file: an unsigned release is installed")


@attack("Ansible: a store trusts another key with the same ID, or the right key only until a date in the past", harmless(), limit=30)
def ansible_same_id(arena):
    import base64
    arena.key()
    public = pathlib.Path("k.pub").read_text().splitlines()[1]
    data = base64.b64decode(public)
    other = base64.b64encode(data[:10] + bytes(reversed(data[10:]))).decode()
    arena.directory("ansible-stub")
    first = arena.release("1.0.0", DRAFT)
    arena.moult("sign", "-q", first, "--key", "k.key")
    for keys in ({"trusted": [{"key": other}]}, {"trusted": [{"key": public}, {"key": other}]}, {"trusted": [{"key": public}, {"key": public}], "threshold": 1}):
        arena.sh("rm -rf store")
        arena.moult("init", "-q", "store", "--product", "org.example.app")
        arena.settings({"keys": keys})
        # The release is signed with the right key. A store that trusts another one as well is not accepted.
        ended = module(arena, {"store": arena.path("store"), "keys": [public], "manifest": first, "executable": arena.command}, allowed=["ansible-stub", "store"], expects=harmless())
        arena.check(ended.status != 0 or other not in json.dumps(keys), f"status: a store that trusts another key is accepted: {ended.out[:300]}")


@attack("Ansible: the command is another program, prints garbage, an array, or nothing", harmless(), limit=30)
def ansible_garbage(arena):
    arena.directory("ansible-stub")
    arena.directory("store")
    arena.write("store/moult.json", "{}")
    for number, text in enumerate(("", "garbage", "[]", "5", '{"error": 5}', '{"error": {"what": 5}}', "null", '{"changed": true}', '"x"')):
        for status in (0, 1):
            program = arena.write(f"fake-{number}-{status}", f"#!/bin/sh\ncat <<'X'\n{text}\nX\nexit {status}\n", 0o755)
            ended = module(arena, {"store": arena.path("store"), "allow_unsigned": True, "manifest": "m.json", "executable": program}, allowed=["ansible-stub"], expects=harmless())
            arena.check('"changed": true' not in ended.out, f"status: {text!r}: {ended.out[:100]}")
    # Ansible shows the exception of a module as an error.
    arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("sentence: no error is shown")]


def reader(arena):
    """Builds the C reader with sanitizers and returns a program that shows a store."""
    source = ROOT / "integrations/c"
    arena.sh(f"cc -g -O1 -std=c11 -fsanitize=address,undefined -fno-sanitize-recover=all -I{source} -o show {source}/moult_reader.c {source}/tests/show.c", limit=60)
    return arena.path("show")


@attack("C: manifests with wrong types, deep nesting, long texts and random changes", harmless(), needs=("cc",), limit=60)
def reader_manifest(arena):
    generation = installed(arena)
    show = reader(arena)
    whole = pathlib.Path(generation, "manifest.json").read_bytes()
    random.seed(3)
    texts = [b"[" * 3_000_000, b'{"a":' * 500_000, b"", b"\xff\xfe", b'{"databases":{}}', whole.replace(b"food.db", b"\\u0000"), whole.replace(b"food.db", b"\\ud800"),
             whole.replace(b"food.db", b"../../../../victim/out.db"), whole.replace(b"food.db", b"x" * 5_000_000), whole.replace(b'"reference"', b"1e400"),
             whole[:-3], whole + whole, b" " * 5_000_000 + whole, whole.replace(b"1.0.0", b"1.0.0\\u001b]0;x")]
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] = random.choice(b'{}[]",:\\\0\xff0e-')
        texts.append(bytes(changed))
    path = pathlib.Path(generation, "manifest.json")
    path.unlink()
    for text in texts:
        path.write_bytes(text)
        ended = arena.run([show, "store"], limit=4, env={"ASAN_OPTIONS": "detect_leaks=1"})
        arena.check("Sanitizer" not in ended.text and "runtime error" not in ended.text and ended.status >= 0, f"status: {text[:60]!r}: {ended.text[-400:]}")
        arena.check("victim" not in ended.out, f"file: {text[:60]!r}: {ended.out[-200:]}")
    arena.attack("store", program=show, memory=900, expects=harmless())
    arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("sentence: no error is shown")]


@attack("C: odd links, pipes and records in place of the parts of a store", harmless(), needs=("cc",), limit=60)
def reader_store(arena):
    show = reader(arena)
    installed(arena)
    arena.sh("cp -a store whole")
    generation = os.readlink("store/.moult/current")
    for script in (f"rm store/.moult/{generation}/manifest.json; mkfifo store/.moult/{generation}/manifest.json", "rm store/moult.json; mkfifo store/moult.json",
                   "ln -sfn /dev/zero store/moult.json", f"truncate -s 3G store/.moult/{generation}/manifest.json", "truncate -s 3G store/moult.json",
                   "ln -sfn current store/.moult/current", "ln -sfn ../../victim store/.moult/current", "ln -sfn generations/.. store/.moult/current",
                   "rm -f store/.moult/leases/*; mkfifo store/.moult/leases/$(basename $(readlink store/.moult/current))", "rm -rf store/.moult/generations",
                   "printf '{\"cacheRoot\": \"%s\"}' $(printf 'x%.0s' $(seq 9000)) > store/moult.json", "chmod -R 0 store", "rm store/.moult/current; mkdir store/.moult/current"):
        arena.sh(f"chmod -R u+rwX store 2>/dev/null; rm -rf store; cp -a whole store; {script}")
        ended = arena.run([show, "store"], limit=4)
        arena.check("Sanitizer" not in ended.text and "runtime error" not in ended.text and ended.status >= 0, f"status: {script}: {ended.text[-400:]}")
        arena.check(ended.mebibytes < 700, f"memory: {script}: {ended.mebibytes:.0f} MiB")
    for path in ("", "x" * 5000, "/" * 5000, "store/" + "../store/" * 600, "sto\nre", "\x1b]0;x"):
        ended = arena.run([show, path], limit=4)
        arena.check("Sanitizer" not in ended.text and ended.status >= 0, f"status: {path[:30]!r}: {ended.text[-300:]}")
    arena.sh("chmod -R u+rwX store")
    arena.attack("whole", program=show, memory=900)
