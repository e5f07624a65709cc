"""Names and texts that change a terminal, a shell command, a path, SQL or a page."""
import json
import os
import pathlib
import re
import shlex
import subprocess

from kit import attack, harmless, works

ESCAPE = "\x1b]0;title\x07\x1b[2J\u202e\u2066\x9b2J\r\x08"
SHELL = "'; touch sprung; '$(touch sprung)`touch sprung`"


def both(arena, *words, **options):
    """Runs a command with its output in a file, as JSON, and on a terminal."""
    arena.attack(*words, **options)
    arena.attack(*words, "--json", **options)
    arena.attack(*words, terminal=True, **options)


def advice(text):
    """Returns the commands that a message advises to run."""
    return re.findall(r"(?:[:`] ?|^ *)((?:moult|chmod|chown|mv|rm|cp|sqlite3|sudo) [^`\n]*)", text, re.M)


@attack("tables, columns, indexes and values of a database have names that change the terminal", works("", 0, 2))
def names_in_database(arena):
    quoted = ESCAPE.replace('"', "")
    for name, rows in (("old.db", "'a'"), ("new.db", f"'a'), ('{quoted}'")):
        arena.database(name, f'CREATE TABLE "t{quoted}"("c{quoted}" PRIMARY KEY); CREATE INDEX "i{quoted}" ON "t{quoted}"("c{quoted}"); INSERT INTO "t{quoted}" VALUES({rows})')
    both(arena, "diff", "old.db", "new.db", "--rows", "9")
    both(arena, "inspect", "new.db")
    both(arena, "replace", "--dry-run", "old.db", "new.db")
    both(arena, "replace", "--dry-run", "old.db", "new.db", "--preserve", f"t{quoted}")


@attack("the results and errors of `moult sql` change the terminal", harmless())
def results_of_sql(arena):
    arena.store(arena.shop("1.0.0"))
    arena.database("store/notes.db", "INSERT INTO note VALUES(1, ?)", ESCAPE)
    for sql in ("SELECT text FROM note", f"SELECT '{ESCAPE}' AS \"{ESCAPE}\"", f"SELECT {ESCAPE}", f"SELECT * FROM \"no{ESCAPE}\"", "SELECT CAST(x'1b5d303b ff fe' AS TEXT)".replace(" ff fe", "fffe")):
        both(arena, "sql", sql, "--store", "store")


@attack("fields of a manifest that are shown change the terminal", harmless(), limit=60)
def fields_of_manifest(arena):
    arena.store(arena.shop("1.0.0"))
    content = arena.content()
    for more in ({ESCAPE: 1}, {"version": f"2.0.0-{ESCAPE}"}, {"product": f"org.{ESCAPE}"}, {"critical": [ESCAPE]}, {"requires": {"app": f">={ESCAPE}"}}, {"checks": [{"on": ESCAPE, "sql": ESCAPE, "expect": ESCAPE}]},
                 {"budget": {ESCAPE: {"shrink": ESCAPE}}}, {"steps": [{"step": ESCAPE, "after": "copy"}]}, {"created": ESCAPE}, {"databases": {ESCAPE: {"kind": "reference", "member": "x.db", "size": 1, "sha256": "0" * 64}}},
                 {"sqlite": ESCAPE}, {"notes": ESCAPE}):
        release = arena.forge("2.0.0", {"food": ("reference", content)}, change=lambda manifest: {**manifest, **more})
        both(arena, "plan", "--store", "store", release)
        both(arena, "inspect", release)
        arena.attack("apply", "--store", "store", release, allowed="store")


@attack("file names on the command line change the terminal, or run when an advised command is pasted", harmless(), limit=60)
def file_names(arena):
    for name in (ESCAPE, SHELL, "-rf", "a\nmoult: done", "\udcff", "$HOME", "*", "~", "a'b\"c", "#x", "!!", " "):
        directory = f"d{name.replace('/', '')}"
        try:
            os.mkdir(directory)
        except OSError:
            continue
        for words in (["apply", "--store", directory, f"{directory}/none.json"], ["status", "--store", directory], ["replace", f"{directory}/a.db", "b.db"], ["inspect", f"{directory}/x.db"],
                      ["init", directory + "/s", "--product", "x"], ["pack", f"{directory}/draft.json"], ["build", f"{directory}/m.sql", "-o", f"{directory}/o.db"], ["cache", f"{directory}/c.db", "--schema", f"{directory}/s.sql"]):
            ended = arena.attack(*words, allowed=[directory])
            for command in advice(ended.text):
                try:
                    parsed = shlex.split(command, comments=True)
                except ValueError:
                    continue
                if "touch" in parsed or any(word in (";", "&&", "|") for word in parsed):
                    arena.effect(f"program: an advised command runs another: {command!r}")
                if SHELL in name and "$(" in command:
                    subprocess.run(["sh", "-c", f"set -f; : {command.split(' ', 1)[1]}"], cwd=arena.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=5)


@attack("the reason of a withdrawal, of a hold and of a rollback change the terminal", harmless(), limit=40)
def reasons(arena):
    one, two = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(one, two)
    key = arena.key()
    arena.moult("publish", "-q", "public", two, "--key", key)
    arena.attack("publish", "-q", "public", "--withdraw", "2.0.0", "--reason", ESCAPE, "--key", key, allowed="public")
    feed = json.loads(pathlib.Path("public/feed.json").read_text())
    feed["releases"][0]["withdrawn"] = {"reason": ESCAPE} if isinstance(feed["releases"][0].get("withdrawn"), dict) else ESCAPE
    arena.write("public/feed.json", json.dumps(feed))
    arena.sh("rm public/feed.json*.minisig")
    arena.moult("sign", "-q", "public/feed.json", "-k", key)
    arena.moult("init", "-q", "followed", "--product", "org.example.app", "--key", "k.pub", "--feed", arena.path("public/feed.json"))
    both(arena, "check", "--store", "followed")
    arena.attack("hold", "9.0.0", "--reason", ESCAPE, "--store", "store", allowed="store")
    arena.attack("rollback", "--reason", ESCAPE, "--store", "store", allowed="store")
    for words in (["status"], ["history"], ["plan", two], ["status", "--deep"], ["status", "--nagios"], ["status", "--prometheus"]):
        both(arena, *words, "--store", "store", expects=harmless()) if words[-1][0] != "-" else arena.attack(*words, "--store", "store")
    arena.attack("history", "--html", "page.html", "--store", "store", allowed="page.html")


@attack("records of a store were edited: history, holds, quarantine and steps with control characters", harmless(), limit=60)
def edited_records(arena):
    one, two = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(one, two)
    arena.database("store/notes.db", "INSERT INTO note VALUES(1, 'x')")
    arena.moult("reset", "-q", "notes", "--set-user-data-aside", "--store", "store")
    arena.moult("hold", "9.0.0", "--reason", "REASON", "--store", "store")
    escaped = json.dumps(ESCAPE)[1:-1]
    for path in [*pathlib.Path("store/.moult").rglob("*.json*")]:
        text = path.read_text()
        os.chmod(path.parent, 0o755)
        os.chmod(path, 0o644)
        path.write_text(re.sub(r'"(done|REASON|update|notes|reset|finished|reason)"', lambda _: f'"{escaped}"', text))
    for words in (["status"], ["history"], ["quarantine"], ["status", "--deep"], ["status", "--processes"], ["clean", "--dry-run"], ["steps"], ["verify"]):
        both(arena, *words, "--store", "store")


@attack("an HTML page shows names and values that contain scripts and end tags", works("", 0, 2))
def scripts_in_page(arena):
    evil = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    quoted, text = evil.replace('"', '""'), evil.replace("'", "''")
    for name, rows in (("old.db", "'a'"), ("new.db", f"'a'), ('{text}'")):
        arena.database(f"{name}", f'CREATE TABLE "t{quoted}"("c{quoted}" PRIMARY KEY); INSERT INTO "t{quoted}" VALUES({rows})')
    arena.attack("diff", "old.db", "new.db", "--html", "page.html", allowed="page.html")
    arena.store(arena.shop("1.0.0"), arena.shop("2.0.0"))
    arena.moult("rollback", "-q", "--reason", evil, "--store", "store")
    arena.attack("history", "--html", "history.html", "--store", "store", allowed="history.html", expects=works())
    for page in ("page.html", "history.html"):
        text = pathlib.Path(page).read_text()
        arena.check(evil[:5] + evil[5:14] not in text and "<script>alert" not in text and "<img src=x" not in text, f"program: {page} has the script of a name")


@attack("names of tables, columns and indexes contain SQL", works("", 0, 2), limit=40)
def sql_in_names(arena):
    arena.database("victim.db", "CREATE TABLE v(x); INSERT INTO v VALUES('kept')")
    for number, name in enumerate(('a"; DROP TABLE b; --', "a'); DELETE FROM b; --", "a]; DROP TABLE b; --", "a`; DROP TABLE b", 'a"\u0301; DROP TABLE b; --', "select", "a\nb", 'x"" y', "sqlite_x"[7:])):
        quoted = '"' + name.replace('"', '""') + '"'
        arena.database(f"app{number}.db", f"CREATE TABLE {quoted}({quoted} PRIMARY KEY, own); CREATE INDEX \"i{quoted[1:]} ON {quoted}(own); CREATE TABLE b(x); INSERT INTO b VALUES('row b'); INSERT INTO {quoted} VALUES('row a', 1)")
        arena.database(f"new{number}.db", f"CREATE TABLE {quoted}({quoted} PRIMARY KEY, own); CREATE TABLE b(x)")
        arena.attack("diff", f"app{number}.db", f"new{number}.db")
        arena.attack("replace", "-q", "--preserve", name, "--preserve", "b", f"app{number}.db", f"new{number}.db", allowed=[f"app{number}.db", f".app{number}.db.moult"])
        arena.keeps(f"app{number}.db", "SELECT x FROM b", [("row b",)])
        arena.keeps(f"app{number}.db", f"SELECT count(*) FROM {quoted}", [(1,)])


@attack("the header and the cells of a CSV file contain SQL and control characters", harmless())
def sql_in_csv(arena):
    for number, header in enumerate(('a,b"); DROP TABLE t; --', "a,'; DROP TABLE t; --", '"a"");DROP TABLE t;--",b', f"a{ESCAPE},b", "a,a", ",", '"' * 9, "a\0b,c")):
        arena.write(f"src{number}/data.csv", f"{header}\n1,2\n")
        arena.write(f"src{number}/make.sql", "CREATE TABLE t(x);\nINSERT INTO t VALUES('kept');\n.mode csv\n.import data.csv new\n")
        arena.attack("build", f"src{number}/make.sql", "-o", f"out{number}.db", allowed=f"out{number}.db")
        if os.path.exists(f"out{number}.db"):
            arena.keeps(f"out{number}.db", "SELECT x FROM t", [("kept",)])


@attack("values of --define and of the environment contain SQL, dot commands and other variables", harmless())
def defined_values(arena):
    trap = arena.trap()
    arena.write("make.sql", "CREATE TABLE t(x);\nINSERT INTO t VALUES('${NAME}');\n")
    for value in ("'); DROP TABLE t; --", f"x');\n.shell {trap}\n--", "${NAME}${NAME}", "${env.HOME}", f"x');\nATTACH '{arena.victim}/out.db' AS v; DELETE FROM v.v; --", "\0"[:0] + "${git.count}"):
        arena.attack("build", "make.sql", "-o", "out.db", "--define", f"NAME={value}", allowed="out.db")
        arena.sh("rm -f out.db")


@attack("`moult attach` prints SQL for paths and names with quotes, and the shell runs it", works())
def attached_names(arena):
    arena.database("victim.db", "CREATE TABLE v(x); INSERT INTO v VALUES('kept')")
    release = arena.shop("1.0.0")
    for number, name in enumerate(("it's", 'a"b', "a;b", "x?mode=rwc&vfs=unix", "100%41", "a\nb", "#x", "'; DELETE FROM v; --", "a\u0301'b")):
        directory = f"s{number}{name}"
        arena.store(release, name=directory)
        ended = arena.attack("attach", "--store", directory, allowed=directory)
        shell = arena.run(["sqlite3", "victim.db"], stdin=(ended.out + "\nSELECT count(*) FROM food.food;\n").encode())
        arena.keeps("victim.db", "SELECT x FROM v", [("kept",)])
        found = [str(path) for path in pathlib.Path(".").iterdir() if path.name not in {"home", "tmp", "victim", "victim.db", "releases", "work-1.0.0", "home-65534"} and not path.name.startswith(f"s")]
        arena.check(not found, f"file: the SQL has created {found}")


@attack("the output of monitoring has lines and labels that a name adds", works("", 0, 1, 2, 3), limit=40)
def lines_in_monitoring(arena):
    evil = 'x"} 1\nmoult_healthy 1\n# \\ | perf=1;;'
    one, two = arena.shop("1.0.0"), arena.shop("2.0.0")
    directory = "store\nmoult_evil 1\n| x=1"
    arena.store(one, two, name=directory)
    arena.moult("rollback", "-q", "--reason", evil, "--store", directory)
    arena.moult("hold", "9.0.0", "--reason", evil, "--store", directory)
    ended = arena.attack("status", "--prometheus", "--store", directory)
    wrong = [line for line in ended.out.splitlines() if line and not line.startswith("#") and not re.fullmatch(r'moult_\w+(\{(\w+="([^"\\]|\\[\\"n])*",?)*\})? [-+.\dNaInfe]+', line)]
    arena.check(not wrong and "\nmoult_evil" not in ended.out and "\nmoult_healthy" not in ended.out, f"program: lines of Prometheus: {wrong[:3]}")
    ended = arena.attack("status", "--nagios", "--store", directory)
    arena.check(ended.out.count("|") <= 1, f"program: fields of Nagios: {ended.out!r}")


@attack("completion offers and runs names of releases and databases with commands", works("", 0, 1), needs=("bash",))
def completed_names(arena):
    directory = "s $(touch sprung) `touch sprung`"
    arena.store(arena.shop("1.0.0"), name=directory)
    arena.moult("hold", "9.0.0", "--reason", "$(touch sprung)", "--store", directory)
    os.mkdir("$(touch sprung)")
    script = arena.moult("completions", "bash").out
    arena.write("complete.bash", script)
    for line in ("moult rollback --to ", "moult apply ", "moult reset ", "moult --store ", "moult status --store s", "moult unhold ", "moult export ", "moult quarantine --export "):
        test = f"cd {shlex.quote(arena.root)}; export MOULT_STORE={shlex.quote(directory)}; source complete.bash; COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}; read -ra COMP_WORDS <<< \"$COMP_LINE\"; COMP_WORDS+=(''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); f=$(complete -p moult | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $f moult '' moult; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        arena.attack("-c", test, program="/bin/bash")


@attack("server names, paths and queries of a feed URL change the terminal, or show a token", harmless(), limit=40)
def addresses(arena):
    arena.key()
    for number, url in enumerate((f"http://127.0.0.1:9/{ESCAPE}/feed.json", f"http://127.0.0.1:9/feed.json?token={arena.secret}", f"http://{ESCAPE}/feed.json", f"http://127.0.0.1:9/feed.json#{arena.secret}",
                                  f"http://user:{arena.secret}@127.0.0.1:9/feed.json", f"http://127.0.0.1:9/%1b%5d0;title%07/feed.json?a={arena.secret}&b={arena.secret}")):
        name = f"s{number}"
        arena.moult("init", "-q", name, "--product", "org.example.app", "--key", "k.pub")
        settings = json.loads(pathlib.Path(name, "moult.json").read_text())
        arena.write(f"{name}/moult.json", json.dumps({**settings, "feed": {"url": url, "deadline": 1, "patience": 1}}), 0o600)
        for words in (["check"], ["status"], ["status", "--deep"], ["apply", "--json"]):
            arena.attack(*words, "--store", name)
        records = [str(path) for path in pathlib.Path(name, ".moult").rglob("*") if path.is_file() and arena.secret.encode() in path.read_bytes()]
        arena.check(not records, f"secret: {records} have the token")


@attack("comments of signatures and keys change the terminal", harmless())
def comments_of_signatures(arena):
    release = arena.shop("1.0.0")
    key = arena.key()
    arena.moult("sign", "-q", release, "-k", key)
    arena.moult("init", "-q", "store", "--product", "org.example.app", "--key", "k.pub")
    path = pathlib.Path(release + ".minisig")
    lines = path.read_text().splitlines()
    for changed in ([f"untrusted comment: {ESCAPE}", *lines[1:]], [*lines[:2], f"trusted comment: {ESCAPE}", lines[3]], [ESCAPE] * 4, [lines[0], ESCAPE, *lines[2:]]):
        path.write_text("\n".join(changed) + "\n", errors="surrogateescape")
        both(arena, "plan", "--store", "store", release)
        arena.attack("inspect", release)
    arena.write("evil.pub", f"untrusted comment: {ESCAPE}\n{ESCAPE}\n")
    arena.attack("init", "s2", "--product", "org.example.app", "--key", "evil.pub")
    arena.attack("init", "s3", "--product", "org.example.app", "--key", f"RW{ESCAPE}")


@attack("names that differ only in how Unicode encodes a letter, in case, or by invisible characters", harmless(), limit=40)
def similar_names(arena):
    for number, (first, second) in enumerate((("caf\u00e9", "cafe\u0301"), ("K", "\u212a"), ("a", "a\u200b"), ("Ä", "ä"), ("o", "\u043e"), ("ss", "ß"))):
        arena.database(f"app{number}.db", f"CREATE TABLE \"{first}\"(x); CREATE TABLE \"{second}\"(x); INSERT INTO \"{first}\" VALUES('row one'); INSERT INTO \"{second}\" VALUES('row two')")
        arena.database(f"new{number}.db", f"CREATE TABLE \"{first}\"(x); CREATE TABLE \"{second}\"(x)")
        arena.attack("replace", "-q", "--preserve", first, "--preserve", second, f"app{number}.db", f"new{number}.db", allowed=[f"app{number}.db", f".app{number}.db.moult"])
        arena.keeps(f"app{number}.db", f"SELECT (SELECT x FROM \"{first}\"), (SELECT x FROM \"{second}\")", [("row one", "row two")])
