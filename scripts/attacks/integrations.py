"""The Python package and the Ansible collection."""
import base64
import json
import os
import pathlib
import shutil
import sys

from kit import attack, harmless, refused, works, PYTHON, ROOT

PYTHON_PATH = {"PYTHONPATH": str(ROOT / "integrations/python"), "PYTHONDONTWRITEBYTECODE": "1"}
ANSIBLE = os.environ.get("ANSIBLE_VENV", str(ROOT / ".build/ansible")) + "/bin/ansible-playbook"
FAULT = "Error|error"


def python(arena, script, user=None, **options):
    """Runs a Python program that uses the package. An exception is printed in one line, as an error."""
    if not os.path.exists("python/moult_store"):  # a copy that every user can read
        shutil.copytree(ROOT / "integrations/python/moult_store", "python/moult_store", ignore=shutil.ignore_patterns("__pycache__"))
    text = "import os, sys\nfrom moult_store import Store, replace\nimport moult_store, sqlite3\ntry:\n" + "".join(f"    {line}\n" for line in script.splitlines())
    text += "except BaseException as error:\n    print('moult: error: %s: %s' % (type(error).__name__, error), file=sys.stderr)\n    sys.exit(1)\n"
    environment = {**PYTHON_PATH, "PYTHONPATH": arena.path("python"), "MOULT": arena.command, **options.pop("env", {})}
    return arena.attack("-c", text, program=PYTHON, env=environment, user=user, **options)


def generation():
    path = pathlib.Path("store/.moult", os.readlink("store/.moult/current"))
    os.chmod(path, 0o755)
    return path


def edited(change):
    """Changes the manifest of the installed release."""
    path = generation() / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    os.chmod(path, 0o644)
    path.write_text(json.dumps(manifest))


CONNECT = "store = Store('store')\nconnection = store.connect()\nprint(connection.execute('SELECT count(*) FROM food.food').fetchall())"


@attack("the manifest of the installed release is a pipe, a device, a directory, or a link to a private file", refused("manifest.json|generation .* cannot be read"), limit=40)
def manifest_is_no_file(arena):
    arena.store(arena.shop("1.0.0"))
    path = generation() / "manifest.json"
    for make in (lambda: os.mkfifo(path), lambda: os.symlink("/dev/zero", path), lambda: os.mkdir(path), lambda: os.symlink(arena.path("victim/private"), path), lambda: os.symlink(path.name, path)):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        make()
        python(arena, CONNECT, limit=5, memory=300)


@attack("moult.json is a pipe or a device when a cache is opened", refused("moult.json|settings"), limit=30)
def settings_are_no_file(arena):
    arena.store(arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x)"), "idx": ("cache", "CREATE TABLE c(x)")}))
    for make in (lambda: os.mkfifo("store/moult.json"), lambda: os.symlink("/dev/zero", "store/moult.json"), lambda: os.mkdir("store/moult.json")):
        os.rename("store/moult.json", "kept.json") if not os.path.exists("kept.json") else arena.sh("rm -rf store/moult.json")
        make()
        python(arena, CONNECT, limit=5, memory=300)


@attack("the manifest of an installed release has paths and members outside the store", harmless("path|manifest|name|not|exist"), limit=60)
def paths_in_manifest(arena):
    arena.database("victim/private.db", f"CREATE TABLE food(x); CREATE TABLE note(x); INSERT INTO food VALUES('{arena.secret}')")
    arena.store(arena.shop("1.0.0"))
    for name, field, value in (("notes", "path", "../victim/private.db"), ("notes", "path", arena.path("victim/private.db")), ("food", "member", "../../../../victim/private.db"), ("food", "member", ".."),
                               ("notes", "path", "../new.db"), ("notes", "path", "..\\x"), ("notes", "path", "x\0y"), ("food", "member", ""), ("notes", "member", "../../victim/private.db")):
        edited(lambda manifest: manifest["databases"][name].update({field: value}))
        python(arena, "store = Store('store')\nconnection = store.connect()\nfor schema in connection.execute('PRAGMA database_list').fetchall():\n    print([path for path in schema if 'victim' in str(path)])\n"
                      "for table in ('main.food', 'food.food', 'notes.food'):\n    try: print(connection.execute('SELECT * FROM ' + table).fetchall())\n    except sqlite3.Error: pass", allowed="store")
    arena.check(not os.path.exists("new.db"), "file: new.db was created outside the store")


@attack("the name under which a database is attached contains SQL", harmless(), limit=30)
def schema_names(arena):
    arena.store(arena.shop("1.0.0"))
    for name in ('x"; ATTACH \'victim/out.db\' AS v; --', "x' AS y; --", "main", "temp", "", "a\0b", "\ud800"[:0] + "é"):
        edited(lambda manifest: manifest["databases"]["food"].update(attach={"as": name}))
        python(arena, "store = Store('store')\nconnection = store.connect()\nprint(sorted(row[1] for row in connection.execute('PRAGMA database_list')))", expects=harmless())


@attack("the version and the group in a manifest are of other types, and the manifest is 100 MB of nested lists", harmless("Error"), limit=60)
def types_in_manifest(arena):
    arena.store(arena.shop("1.0.0"))
    for change in (lambda m: m.update(version=5), lambda m: m.update(databases=[]), lambda m: m.update(databases={"a": 5}), lambda m: m.pop("databases"), lambda m: m["databases"]["food"].update(kind=[]),
                   lambda m: m["databases"]["food"].update(attach=7), lambda m: m["databases"]["food"].update(member=None)):
        path = generation() / "manifest.json"
        kept = path.read_text()
        edited(change)
        python(arena, CONNECT)
        path.write_text(kept)
    path.write_text("[" * 3_000_000)
    python(arena, CONNECT, memory=300)


@attack("`current` leads to another directory: with .., an absolute path, a loop, another store, or bytes", refused("current|used|generation|read"), limit=40)
def current_leads_elsewhere(arena):
    release = arena.shop("1.0.0")
    arena.store(release)
    arena.directory("victim/generations/x+y")
    arena.write("victim/generations/x+y/manifest.json", "{}")
    for target in ("../../victim", "generations/../../../victim/generations/x+y", arena.path("victim/generations/x+y"), "current", "generations/..", "generations/a+b/../../../victim", "generations/\udcff+x", "generations/x+y\n", "generations/"):
        os.unlink("store/.moult/current")
        os.symlink(target, "store/.moult/current")
        python(arena, CONNECT)


@attack("moult.json has a comment of slashes, stars or quotes, for which a search takes years", harmless(), limit=60)
def slow_comments(arena):
    arena.store(arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x)"), "idx": ("cache", "CREATE TABLE c(x)")}))
    good = pathlib.Path("store/moult.json").read_text()
    for comment in ("/" * 60, "/" * 5000, "/*" * 3000 + "*/", "//" + "/ " * 3000, "/*" + "*" * 5000 + "/", "/* " + '"' * 4001 + " */", "// " + '\\"' * 4001, ", " * 10 + "/" * 50):
        arena.write("store/moult.json", comment + "\n" + good)
        python(arena, CONNECT, limit=4)
        arena.write("store/moult.json", good.replace('"moult"', f"{comment}\n\"moult\"", 1))
        python(arena, CONNECT, limit=4)


@attack("an app opens an unpacked store whose update was interrupted, with a consumer and a link", harmless(), needs=("strace",), limit=40)
def connect_in_foreign_store(arena):
    def link():
        os.rename("store/shop.db", "home/app.db")
        os.symlink("../home/app.db", "store/shop.db")
    arena.interrupted({"consumers": [{"name": "c", "command": {"reload": [arena.trap()]}}]}, between=link)
    arena.sh("cp -a store got")
    for script in ("print(Store('got').connect())", "print(Store('got').status())", "print(Store('got').verify())", "print(Store('got').connection.execute('SELECT 1').fetchall())"):
        python(arena, script, allowed="got/.moult")


@attack("values of arguments begin with a dash, or contain zero bytes and line feeds", harmless(), limit=40)
def options_as_values(arena):
    release = arena.shop("1.0.0")
    arena.store(release)
    trap = arena.trap()
    values = ["--allow-downgrade", "-h", "--store=victim", f"--upload-with={trap}", "x\n--key", "\0", "--", "-s", "\ud800"]
    for call in ("store.apply(value)", "store.rollback(to=value, reason=value)", "store.verify(value)", "store.plan(save=value)", "replace(value, value)", "store.apply(app=value, follow=value, take_over=[value])", "store.reset(value, reason=value)", "store.hold(value, reason=value)", "store.export_quarantined(value, value)", "store.restore_quarantined(value, table=value)", "store.open(value)"):
        python(arena, f"""store = Store('store')
for value in {values!r}:
    try: print({call})
    except Exception as error: print(ascii(error))""", allowed=["store/.moult", "--*", "-*", "x*"])


@attack("the command that the package runs prints endless output, broken JSON, control characters, or never ends", harmless("Error|Timeout"), limit=60)
def hostile_command(arena):
    arena.store(arena.shop("1.0.0"))
    for script in ("printf '{'", "printf 'null\\n'", "printf '[1]\\n'", "echo '{\"error\": 5}'; exit 1", "echo '{\"error\": {}}'; exit 3", "printf '\\377\\n'", "kill -9 $$", "exit 3", "exec sleep 30"):
        command = arena.write("fake", f"#!/bin/sh\n{script}\n", 0o755)
        python(arena, "print(Store('store', command='./fake').status(timeout=1))", env={"MOULT": command}, limit=8)


@attack("a file of the attacker takes the place of a package or the command in the working directory", works(), limit=30)
def planted_modules(arena):
    arena.store(arena.shop("1.0.0"))
    arena.trap("work/moult")
    for name in ("moult_store", "sqlite3", "json", "fcntl", "ctypes"):
        arena.write(f"work/{name}.py", f"open({arena.path('sprung')!r}, 'w')")
    script = f"import sys\nsys.path.remove('') if '' in sys.path else None\nsys.path.insert(0, {str(ROOT / 'integrations/python')!r})\nfrom moult_store import Store\nprint(Store({arena.path('store')!r}).connect())"
    arena.attack("-I", "-c", script, program=PYTHON, cwd="work", env={"PATH": f"{arena.bin}:/usr/bin:/bin"}, allowed="store")


@attack("another user's process holds the lease file, and leases are pipes, links and directories", harmless(), root=True, limit=40)
def lease_files(arena):
    arena.store(arena.shop("1.0.0"))
    lease = next(pathlib.Path("store/.moult/leases").iterdir())
    script = f"import fcntl, time\nfile = open({str(lease)!r})\nfcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\nopen('tmp/ready', 'w').close()\ntime.sleep(60)"
    with arena.racing(script):
        while not os.path.exists("tmp/ready"):
            pass
        python(arena, CONNECT, limit=5, expects=works(), allowed="store")
    os.unlink("tmp/ready")
    for make in (lambda: os.mkfifo(lease), lambda: os.symlink(arena.path("victim/public"), lease), lambda: os.mkdir(lease), lambda: os.symlink("/dev/zero", lease)):
        lease.rmdir() if lease.is_dir() and not lease.is_symlink() else lease.unlink()
        make()
        python(arena, CONNECT, limit=5, allowed="store/.moult")


@attack("a database of an installed release was replaced by a link, a pipe, or an empty file", harmless(), limit=40)
def database_is_no_file(arena):
    arena.database("victim/private.db", f"CREATE TABLE note(x); INSERT INTO note VALUES('{arena.secret}')")
    os.chmod("victim/private.db", 0o600)
    arena.store(arena.shop("1.0.0"))
    os.unlink("store/notes.db")
    for make in (lambda: os.mkfifo("store/notes.db"), lambda: os.mkdir("store/notes.db"), lambda: os.symlink(arena.path("new.db"), "store/notes.db"), lambda: open("store/notes.db", "w").close()):
        make()
        python(arena, CONNECT, limit=5, allowed="store")
        os.rmdir("store/notes.db") if os.path.isdir("store/notes.db") else os.unlink("store/notes.db")


def module(arena, **parameters):
    """Runs the Ansible module with these parameters, with a stand-in for AnsibleModule."""
    arena.write("stand-in/ansible/__init__.py", "")
    arena.write("stand-in/ansible/module_utils/__init__.py", "")
    arena.write("stand-in/ansible/module_utils/basic.py", """
import json, os, subprocess, sys
class AnsibleModule:
    check_mode, _diff = bool(os.environ.get("CHECK")), bool(os.environ.get("DIFF"))
    def __init__(self, argument_spec, **_):
        given = json.loads(os.environ["PARAMETERS"])
        self.params = {name: given.get(name, spec.get("default")) for name, spec in argument_spec.items()}
    def run_command(self, words):
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)
        return ended.returncode, ended.stdout.decode(errors="surrogateescape"), ended.stderr.decode(errors="surrogateescape")
    def fail_json(self, **result):
        print("moult: error: " + result["msg"]); sys.exit(1)
    def exit_json(self, **result):
        print(json.dumps(result)); sys.exit(0)
""")
    os.makedirs("stand-in/ansible_collections/moult", exist_ok=True)
    if not os.path.lexists("stand-in/ansible_collections/moult/store"):
        os.symlink(ROOT / "integrations/ansible", "stand-in/ansible_collections/moult/store")
    options = {name: parameters.pop(name) for name in ("expects", "allowed", "limit") if name in parameters}
    check = {"CHECK": "1"} if parameters.pop("check", False) else {}
    given = json.dumps({"executable": arena.command, "store": arena.path("store"), **parameters})
    return arena.attack(ROOT / "integrations/ansible/plugins/modules/moult_release.py", program=PYTHON, env={"PYTHONPATH": arena.path("stand-in"), "PARAMETERS": given, "PYTHONDONTWRITEBYTECODE": "1", **check}, **options)


def public_key(arena, name="k"):
    arena.key(name)
    return pathlib.Path(f"{name}.pub").read_text().splitlines()[-1]


@attack("the store trusts a key with the same ID as the given one, but other bytes", refused("trust|key"), limit=30)
def key_with_same_id(arena):
    key = public_key(arena)
    data = base64.b64decode(key)
    other = base64.b64encode(data[:10] + base64.b64decode(public_key(arena, "other"))[10:]).decode()
    release = arena.shop("1.0.0")
    arena.moult("sign", "-q", release, "-k", "k.key")
    arena.store(settings={"keys": {"trusted": [{"key": key}]}})
    module(arena, manifest=release, keys=[other], product="org.example.app")
    module(arena, manifest=release, keys=[other], product="org.example.app", check=True)


@attack("the existing store trusts no key, another threshold, or more keys than the given ones", refused("trust|key|threshold"), limit=30)
def store_trusts_others(arena):
    key, other = public_key(arena), public_key(arena, "other")
    release = arena.shop("1.0.0")
    arena.moult("sign", "-q", release, "-k", "k.key")
    for keys in (None, {"trusted": [{"key": key}, {"key": other}]}, {"trusted": [{"key": other}]}):
        arena.remove("store")
        arena.store(settings={"keys": keys} if keys else None)
        module(arena, manifest=release, keys=[key], product="org.example.app")


@attack("the module gets no keys, both, keys that are none, and an unsigned or foreign release", refused("key|sign"), limit=40)
def module_without_keys(arena):
    key, other = public_key(arena), public_key(arena, "other")
    release = arena.shop("1.0.0")
    for parameters in ({}, {"keys": [key], "allow_unsigned": True}, {"keys": ["x"]}, {"keys": [key[:-4]]}, {"keys": [key]}, {"keys": ["--allow-unsigned"]}):
        module(arena, manifest=release, product="org.example.app", allowed="store", **parameters)
    arena.check(not os.path.exists("store/.moult/current"), "file: an unsigned release was installed")
    arena.moult("sign", "-q", release, "-k", "other.key")
    module(arena, manifest=release, product="org.example.app", keys=[key], allowed="store")


@attack("parameters of the module begin with a dash", harmless(), limit=40)
def module_parameters(arena):
    release = arena.shop("1.0.0")
    trap = arena.trap()
    for parameters in ({"manifest": "--help"}, {"product": "--feed=x"}, {"app": "--allow-downgrade"}, {"manifest": f"{release}\n"}, {"store": "-s"}, {"wait": -1}, {"manifest": f"$({trap})"}):
        ended = module(arena, **{"manifest": release, "product": "org.example.app", "allow_unsigned": True, **parameters}, allowed=["store", "-s", "--*"], expects=harmless())
        arena.check("Traceback" not in ended.text, f"sentence: {parameters}: {ended.text[-300:]}")


def play(arena, **variables):
    """Runs the role on this machine, with `host` as the directory of the host."""
    arena.write("collections/ansible_collections/moult/store/galaxy.yml", (ROOT / "integrations/ansible/galaxy.yml").read_text())
    for name in ("plugins", "roles", "meta"):
        shutil.copytree(ROOT / "integrations/ansible" / name, f"collections/ansible_collections/moult/store/{name}", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    arena.write("play.yml", json.dumps([{"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": ["moult.store.moult"]}]))
    given = {"moult_releases": arena.path("host"), "moult_store": arena.path("store"), "moult_product": "org.example.app", "moult_executable": arena.command, "ansible_python_interpreter": PYTHON, **variables}
    allowed = ["host/*.json", "host/*.zst", "host/*.tar", "host/*.minisig", "host", "store", "home/.ansible", "tmp"]
    return arena.attack("-i", "localhost,", "-e", json.dumps(given), "play.yml", program=ANSIBLE, limit=50, allowed=allowed, memory=900, exposes=False,
                        env={"ANSIBLE_COLLECTIONS_PATH": arena.path("collections"), "ANSIBLE_HOME": arena.path("home/.ansible"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0"})


def copied(arena):
    """Finds private content of the controller in the directory of the host."""
    found = [str(path) for path in pathlib.Path("host").rglob("*") if path.is_file() and arena.secret.encode() in path.read_bytes()] if os.path.isdir("host") else []
    arena.check(not found, f"secret: the role has copied the private file to {found}")


@attack("the bundle of a release on the controller is a link to a private key", harmless(), needs=(ANSIBLE,), limit=60)
def role_copies_link(arena):
    key = public_key(arena)
    release = arena.shop("1.0.0")
    arena.moult("sign", "-q", release, "-k", "k.key")
    bundle = next(pathlib.Path("releases").glob("*.zst"))
    bundle.unlink()
    bundle.symlink_to(arena.path("victim/private"))
    play(arena, moult_release=release, moult_keys=[key])
    copied(arena)


@attack("the manifest on the controller names a bundle outside its directory, or a private file as its signature", harmless(), needs=(ANSIBLE,), limit=120)
def role_copies_other_file(arena):
    key = public_key(arena)
    release = arena.shop("1.0.0")
    manifest = json.loads(pathlib.Path(release).read_text())
    shutil.copy("victim/private", "victim/private.tar")
    os.symlink(arena.path("victim/private"), release + ".minisig")
    os.symlink(arena.path("victim/private"), "releases/app-1.0.0.json.0.minisig")
    play(arena, moult_release=release, moult_keys=[key])
    copied(arena)
    os.unlink(release + ".minisig")
    os.unlink("releases/app-1.0.0.json.0.minisig")
    arena.write("releases/app-1.0.0.json", json.dumps({**manifest, "bundle": {**manifest["bundle"], "file": "../victim/private.tar"}}))
    play(arena, moult_release=release, moult_keys=[key])
    copied(arena)


@attack("fields of a manifest on the controller are templates", harmless(), needs=(ANSIBLE,), limit=60)
def role_runs_template(arena):
    release = arena.forge("1.0.0", {"food": ("reference", arena.content())}, change=lambda manifest: {
        **manifest, "version": "{{ lookup('pipe', 'touch " + arena.path("sprung") + "') }}", "bundle": {**manifest["bundle"], "file": "{{ lookup('pipe', 'touch " + arena.path("sprung") + "') }}.tar"}})
    play(arena, moult_release=release, moult_allow_unsigned=True)
