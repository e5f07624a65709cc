"""Attacks with texts by an author who has not read the code: advice for the shell, completions, metrics, pages, JSON, CSV, names of processes."""
import csv
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import time

from kit import attack, harmless, tree, works
from outsider_judges import can_fail, metrics, nagios_line, page, paste

# Each of these creates the file `sprung` if a shell evaluates it.
NAMES = ("$(touch sprung)", "`touch sprung`", "; touch sprung;", "'; touch sprung; '", '"; touch sprung; "', "a\ntouch sprung\n", "x & touch sprung &", "| touch sprung |",
         "\\'; touch sprung #", "'\u0301; touch sprung; '\u0301", "$'\\''; touch sprung", "-n; touch sprung")


@attack("the path of a store runs programs in a shell that gets the advice of errors", harmless(), limit=90)
def advice_about_store(arena):
    release, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    for planted in ("moult verify --store $(touch sprung)", "Run: moult verify 'a'; touch sprung;", "remove it with: rm -r d/a\\'; touch sprung #'"):
        can_fail(arena, paste, f"moult: error: x\n  {planted}\n")
    for name in NAMES[::2]:
        store = os.path.join("d", name)
        os.makedirs("d", exist_ok=True)
        if "/" in name:
            continue
        arena.moult("init", "-q", f"--store=./{store}", "--product", "org.example.app")
        arena.moult("apply", "-q", f"--store=./{store}", release)
        texts = []
        for words in (["apply", second, "--follow", "match", "--app", "x"], ["apply", release, "--plan", "missing"], ["hold", "2.0.0", "--reason", "x"], ["apply", second], ["rollback"],
                      ["reset", "notes"], ["reset", "food"], ["quarantine", "--restore", "x"], ["check"], ["apply"], ["rollback", "--to", "9.9.9"], ["verify", "zz"], ["sql", "SELEC"],
                      ["export", "1.0.0", "x"], ["steps", "trust", "zz"], ["init", "--product", "org.example.other"]):
            texts.append(arena.attack(*words, f"--store=./{store}", allowed=["d", "sprung"]).text)
        pathlib.Path(store, "shop.db").write_bytes(b"")
        os.chmod(f"{store}/moult.json", 0o666)
        for words in (["verify"], ["status", "--deep"], ["apply", release], ["status"], ["rollback"]):
            texts.append(arena.attack(*words, f"--store=./{store}", allowed=["d", "sprung"]).text)
        arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("characters: ['\\n")]
        paste(arena, "\n\n".join(texts))


@attack("the names of files run programs in a shell that gets the advice of errors", harmless(), limit=90)
def advice_about_files(arena):
    arena.database("new.db", "CREATE TABLE t(x)")
    arena.write("broken", b"SQLite format 3\0" + bytes(4096))
    for name in NAMES[1::2]:
        path = f"./{name}.db"
        connection = sqlite3.connect(path)
        connection.executescript("CREATE TABLE t(x); INSERT INTO t VALUES(1)")
        connection.close()
        texts = []
        for words in (["replace", path, "broken"], ["replace", "broken", path], ["replace", "--undo", path], ["replace", path, "new.db", "--preserve", name], ["inspect", path + "x"],
                      ["diff", path, "broken"], ["cache", path, "--schema", path], ["build", path, "-o", "./" + name + "/x"], ["pack", path], ["delta", path, "broken", "-o", "x"],
                      ["keygen", "./" + name + "/k"], ["sign", path, "--key", path], ["publish", "./" + name, path], ["trust", "./" + name, "--key", path], ["replace", path, "new.db", "--check", name + "=1"]):
            texts.append(arena.attack(*words, allowed=[f"{name}*", f".{name}*", "sprung", "fakes", "x", "releases", "broken*", ".broken*", "new.db*", ".new.db*"]).text)
        paste(arena, "\n\n".join(texts))


@attack("names of databases, versions and groups in a store run programs in a shell that completes words", harmless(), limit=40)
def completions(arena):
    release = arena.shop("1.0.0")
    arena.store(release)
    for script in ("bash", "zsh", "fish"):
        arena.write(f"c.{script}", arena.moult("completions", script).out)
    generation = pathlib.Path("store/.moult", os.readlink("store/.moult/current"))
    os.chmod(generation, 0o755)
    manifest = json.loads((generation / "manifest.json").read_text())
    for number, name in enumerate(("$(touch sprung)", "`touch sprung`", "x;touch sprung", "a'$(touch sprung)'")):
        manifest["databases"][name] = {**manifest["databases"]["food"]}
    manifest["version"] = "1.0.0"
    (generation / "manifest.json").unlink()
    (generation / "manifest.json").write_text(json.dumps(manifest))
    for name in ("1.0.0+$(touch sprung)", "$(touch sprung)", "2.0.0+`touch sprung`"):
        os.makedirs(f"store/.moult/generations/{name}", exist_ok=True)
        os.makedirs(f"store/.moult/quarantine/{name}", exist_ok=True)
        (pathlib.Path("store/.moult/generations") / name / "manifest.json").write_text(json.dumps({**manifest, "version": name}))
    for line in ("moult verify ", "moult reset ", "moult rollback --to ", "moult quarantine ", "moult unhold ", "moult verify $", "moult inspect --database ", "moult sql --group ", "moult -s store verify "):
        words = line.split(" ")
        quoted = " ".join("'" + word + "'" for word in words)
        script = f"""source ../c.bash 2>/dev/null || . ../c.bash
            COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}
            f=$(complete -p moult | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $f moult "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"; printf '%s\\n' "${{COMPREPLY[@]}}" """
        arena.attack("-c", script, program="/bin/bash", cwd="store", expects=works("", 0, 1), allowed=["store"])
    arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("sentence")]
    found = [str(path) for path in pathlib.Path(".").rglob("sprung")]
    arena.check(not found, f"program: a completion has run a program: {found}")


EVIL = 'x\n# HELP moult_up\nmoult_up{store="y"} 1\n"} 1\n\\" <script>alert(1)</script>|age=0 \x1b]0;t\x07\u202e\u2028\x00'.replace("\x00", "")


def held(arena):
    arena.store(arena.shop("1.0.0"))
    return arena.attack("hold", "2.0.0", "--reason", EVIL, "--store", "store", allowed=["store"], expects=harmless())


@attack("the reason of a hold adds lines, metrics, performance data and tags to the outputs for machines", harmless(), limit=30)
def reason_in_outputs(arena):
    if held(arena).status != 0:
        path = pathlib.Path("store/.moult/holds.json")
        path.write_text(json.dumps({"holds": [{"release": "*", "reason": EVIL, "since": "2026-01-01T00:00:00Z"}]}))
    arena.moult("hold", "-q", "--reason", "all | age=0;;; x", "--store", "store", fine=(0, 1, 3))
    nagios = arena.attack("status", "--nagios", "--store", "store", expects=works("", 1, 2)).out
    nagios_line(arena, nagios)
    metrics(arena, arena.attack("status", "--prometheus", "--store", "store", expects=works()).out)
    can_fail(arena, nagios_line, "MOULT OK - x | a=1\nb | c=2\n")
    can_fail(arena, metrics, '# HELP x\nmoult_up{store="a"} 1\nmoult_hold{reason="a\nmoult_up{store="y"} 1\n')
    can_fail(arena, metrics, 'x\nmoult_up{store="a"b"} 1')
    for words in (["status", "--json"], ["history", "--json"], ["verify", "--json"], ["plan", "--json", "releases/app-1.0.0.json"]):
        for line in arena.attack(*words, "--store", "store", expects=works("", 0, 1, 2, 3)).out.splitlines():
            json.loads(line)
    arena.attack("history", "--store", "store", "--html", "h.html", allowed="h.html", expects=works())
    arena.attack("status", "--store", "store", terminal=True, expects=works())
    page(arena, "h.html")


@attack("names of tables and columns, and values, are markup in pages, and break lines of JSON and CSV", harmless(), limit=40)
def markup_in_diff(arena):
    evil = ['</script><script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "'onmouseover='alert(1)", "<!--", "]]>", "{{7*7}}", "a\nb", 'q"uote', "\u202eabc", "\u0301", "x\ty", "&lt;b&gt;", "=cmd|' /C calc'!A0", "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace")]
    quote = lambda name: '"' + name.replace('"', '""') + '"'  # noqa: E731
    for path, version in (("old.db", 1), ("new.db", 2)):
        arena.database(path, "".join(f"CREATE TABLE {quote(name)}(id INTEGER PRIMARY KEY, {quote('c' + name)} TEXT DEFAULT {quote(name)}); INSERT INTO {quote(name)} VALUES(1, '{name.replace(chr(39), chr(39) * 2)}{version}');"
                                     for name in evil))
    arena.attack("diff", "old.db", "new.db", "--rows", "5", "--html", "d.html", allowed="d.html", expects=works("", 2))
    page(arena, "d.html")
    for planted in ("<img src=x onerror=alert(1)>", "<b onclick='x'>", "<script>alert(1)</script>", "<a href='javascript:x'>", "\u202e"):
        arena.write("planted.html", f"<html><body>{planted}</body></html>")
        can_fail(arena, page, "planted.html")
    arena.after = tree(arena.root)
    arena.attack("diff", "old.db", "new.db", "--rows", "5", terminal=True, expects=works("", 2))
    arena.attack("inspect", "new.db", "--verbose", terminal=True, expects=works())
    for words in (["diff", "old.db", "new.db", "--rows", "5", "--json"], ["inspect", "new.db", "--json"]):
        for line in arena.attack(*words, expects=works("", 0, 2)).out.splitlines():
            json.loads(line)
    arena.store(arena.release("1.0.0", {"food": ("reference", pathlib.Path("new.db").read_bytes())}))
    for name in evil:
        out = arena.run([arena.command, "sql", "--csv", f"SELECT * FROM food.{quote(name)}", "--store", "store"]).out
        rows = list(csv.reader(io.StringIO(out, newline="")))
        arena.check(len(rows) == 2 and rows[0][1] == "c" + name and rows[1][1] == name + "2", f"characters: CSV of {name!r}: {out!r}")


@attack("a process that uses a database has a name with escape sequences, line feeds and the text of a success", harmless(), limit=30)
def process_names(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first, settings={"waitForApps": 0})
    for name in ("\x1b]0;\u202e\x07\nmoult: ok\n) R 1 (\udcff",):
        for how in ("comm", "argv"):
            script = ("import ctypes, os, sqlite3, sys, time\n"
                      "ctypes.CDLL(None).prctl(15, os.fsencode(sys.argv[1]) if sys.argv[2] == 'comm' else b'x', 0, 0, 0)\n"
                      "c = sqlite3.connect('store/shop.db', isolation_level=None); c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); time.sleep(60)")
            holder = subprocess.Popen([os.fsencode("python3" + name if how == "argv" else "python3"), "-c", script, os.fsencode(name), how], executable="/usr/bin/python3", stdout=subprocess.PIPE)
            holder.stdout.readline()
            try:
                for words in (["status", "--processes"], ["status", "--processes", "--json"], ["apply", second], ["status"], ["status", "--deep"]):
                    ended = arena.attack(*words, "--store", "store", allowed=["store"], expects=works("", 0, 1, 3, 75), terminal=words == ["status", "--processes"], limit=6)
                    arena.check(not re.search("^moult: ok", ended.text, re.M), f"characters: a line of a process: {ended}")
                    if words[-1] == "--json":
                        for line in ended.out.splitlines():
                            json.loads(line)
            finally:
                holder.kill()
                holder.wait()


@attack("arguments, variables and files with control characters are repeated in errors", harmless(), limit=30)
def arguments(arena):
    arena.store(arena.shop("1.0.0"))
    evil = "\x1b]0;t\x07\n\u202e\x9b31m\u2066"
    arena.write(f"e{evil}.json", "{")
    arena.write("moult.json", json.dumps({"moult": 1, "product": "org.example.app", evil: 1}))
    arena.write("draft.json", json.dumps({"manifest": 1, "product": evil, "version": evil, "databases": {evil: {"kind": evil}}}))
    for words in ([evil], ["--" + evil], ["help", evil], ["apply", evil, "--store", "store"], ["apply", f"e{evil}.json", "--store", "store"], ["hold", evil, "--reason", "x", "--store", "store"],
                  ["rollback", "--to", evil, "--store", "store"], ["verify", evil, "--store", "store"], ["sql", evil, "--store", "store"], ["status", "--store", evil], ["status", "--store", "."],
                  ["pack", "draft.json"], ["init", "n", "--product", evil], ["init", "n", "--product", "org.example.a", "--key", evil], ["export", evil, "x", "--store", "store"],
                  ["completions", evil], ["steps", "test", evil], ["apply", "--wait", evil, "--store", "store"], ["replace", evil, evil], ["build", "draft.json", "-o", evil, "--define", evil],
                  ["check", "--feed", "http://127.0.0.1:1/" + evil, "--store", "store"], ["publish", "oci://" + evil], ["init", "n", "--product", "org.example.a", "--feed", evil]):
        for terminal in (False, True):
            arena.attack(*words, terminal=terminal, allowed=["n"], expects=harmless())
            arena.sh("rm -rf n")
    # On a terminal, the line of the error is folded.
    arena.effects[:] = [effect for effect in arena.effects if not effect.startswith("sentence") or "moult: error:" not in effect]
    arena.attack("status", env={"MOULT_STORE": evil}, expects=harmless())
