"""Attacks on files by an author who has not read the code: sparse files, closed descriptors, odd names, hard links, full output devices."""
import contextlib
import json
import os
import pathlib
import sqlite3

from kit import attack, harmless, refused, works

ONE, TWO = "CREATE TABLE t(x); INSERT INTO t VALUES('one')", "CREATE TABLE t(x); INSERT INTO t VALUES('two')"
# The message is lost by intention: the judge of sentences gets this one.
TOLD = "ended=$?; [ $ended = 0 ] || echo 'moult: error: '; exit $ended"
AROUND = ["app.db", "app.db-*", ".app.db.moult"]


def stretched(arena, words, name, **options):
    """Runs a command while a file has a hole of 2 TiB at its end. The command may move the file; judges read all of it."""
    size = os.path.getsize(name)
    script = f'truncate -s 2T {name}; timeout -s KILL 6 moult "$@"; ended=$?; [ $ended != 1 ] || echo "moult: error: "; find . -type f -size +1000000k -exec truncate -s {size} {{}} +; exit $ended'
    ended = arena.attack("-c", script, "sh", *words, program="/bin/sh", limit=8, memory=300, **options)
    arena.check(ended.status != 137, f"time: {words[0]} was not finished after 6 s")


def sparse(arena, words, name, **options):
    arena.sh("rm -f app.db new.db")
    arena.database("app.db", ONE)
    arena.database("new.db", TWO)
    stretched(arena, words, name, **options)
    arena.holds(".", "one")


@attack("a database of 8 KB is extended with a hole of 2 TiB, and is then replaced", harmless())
def sparse_database(arena):
    sparse(arena, ["replace", "app.db", "new.db"], "app.db", allowed=AROUND)


@attack("the new database has a hole of 2 TiB at its end", harmless())
def sparse_new_database(arena):
    sparse(arena, ["replace", "app.db", "new.db"], "new.db", allowed=AROUND)


@attack("databases with a hole of 2 TiB at their end are inspected, compared and packed", harmless(), limit=40)
def sparse_read(arena):
    sparse(arena, ["inspect", "app.db"], "app.db")
    sparse(arena, ["diff", "new.db", "app.db"], "app.db", expects=works("", 0, 1, 2, 3))
    sparse(arena, ["pack", "app.db", "--product", "org.example.s"], "app.db", allowed=["releases"])
    sparse(arena, ["delta", "app.db", "new.db", "-o", "d.patch"], "app.db", allowed=["d.patch"])


@attack("a database of a store, its -wal and its -journal are extended with a hole of 2 TiB", harmless(), limit=60)
def sparse_in_store(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
    arena.database("store/notes.db", "INSERT INTO note VALUES(1, 'note of the user')")
    for name in ("shop.db", "notes.db"):
        for words in (["plan", second], ["verify", "--deep"], ["apply", second], ["reset", name[:-3], "--set-user-data-aside"]):
            stretched(arena, [*words, "--store", "store"], f"store/{name}", allowed=["store"], expects=harmless())
    arena.holds("store", "row of the app", "note of the user")


@attack("standard input, output and errors are closed, so that a database could get the descriptor of the messages", works("", 0, 1, 3))
def closed_descriptors(arena):
    arena.database("new.db", TWO)
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
    for closed in ("<&- >&- 2>&-", ">&- 2>&-", "2>&-", "<&- 2>&-"):
        arena.sh("rm -rf app.db .app.db.moult")
        arena.database("app.db", ONE)
        for words in ("replace -v app.db new.db", "replace -v --undo app.db", "replace app.db missing.db", "replace --preserve zz app.db new.db"):
            arena.attack("-c", f"moult {words} {closed}; {TOLD}", program="/bin/sh", allowed=AROUND, expects=works("", 0, 1, 3, 64))
        for words in (f"apply -v {second}", "rollback -v", "unhold --all", "verify", "apply missing.json"):
            arena.attack("-c", f"moult {words} --store store {closed}; {TOLD}", program="/bin/sh", allowed=["store"], expects=works("", 0, 1, 2, 3))
        for path in ("app.db", "new.db", "store/shop.db", "store/notes.db"):
            arena.check(arena.rows(path, "PRAGMA integrity_check") == [("ok",)], f"rows: {path} is damaged")
    arena.keeps("store/shop.db", "SELECT name FROM item WHERE own = 1", [("row of the app",)])
    for path in [p for p in pathlib.Path(".").rglob("*") if p.is_file() and not p.is_symlink() and p.suffix in (".json", ".db", ".jsonl")]:
        arena.check(b"moult: error" not in path.read_bytes(), f"file: {path} has a message in it")


@attack("the output device is full, and monitoring must not be green", harmless())
def full_output(arena):
    arena.store(arena.shop("1.0.0"))
    arena.moult("hold", "-q", "--reason", "x", "--store", "store")
    os.unlink("store/shop.db")
    for words in ("status --nagios", "status --prometheus", "status --json", "verify --json", "verify", "check --json", "sql 'SELECT 1'", "attach", "history --json",
                  "inspect --json", "plan --json releases/app-1.0.0.json"):
        ended = arena.attack("-c", f"moult {words} --store store > /dev/full; {TOLD}", program="/bin/sh", expects=works("", 1, 2, 3, 6, 64, 75))
        arena.check(ended.status != 0, f"status: {words} ended with 0, but has printed nothing")


@attack("the disk is full while the metrics of a broken store are written as in the documentation", harmless(), root=True)
def full_disk_for_metrics(arena):
    # The line for cron in docs/running.md. An incomplete file must not take the place of the old one.
    arena.store(arena.shop("1.0.0"))
    arena.directory("metrics")
    for size in (4, 8, 12):
        ended = arena.attack("-m", "/bin/sh", "-c", f"""mount -t tmpfs -o size={size}k none metrics && cd metrics && dd if=/dev/zero of=fill bs=1 count=$(({size}*1024-4096)) 2>/dev/null
            moult status --prometheus --output moult-app.prom --store ../store
            if [ -e moult-app.prom ]; then grep -c '' moult-app.prom; tail -n 1 moult-app.prom | cut -c1-30; grep -c moult_feed moult-app.prom; else echo none; fi; exit 0""",
                             program="/usr/bin/unshare", expects=works("", 0), allowed=["metrics"])
        whole = arena.run([arena.command, "status", "--prometheus", "--store", "store"]).out
        arena.check("none" in ended.out or ended.out.split("\n")[0] == str(whole.count("\n")), f"file: an incomplete file of metrics is used: {ended.out!r}")


@attack("hard links to a file of root have the names of outputs", harmless("exist|link|regular|empty|not |directory"))
def hard_links_as_output(arena):
    arena.database("old.db", ONE)
    arena.database("new.db", TWO)
    arena.write("make.sql", "CREATE TABLE t(x);")
    arena.key()
    release = arena.shop("1.0.0")
    arena.store(release)
    outputs = {"out.db": ["build", "make.sql", "-o", "out.db"], "page.html": ["diff", "old.db", "new.db", "--html", "page.html"],
               "h.html": ["history", "--store", "store", "--html", "h.html"], "a.plan": ["plan", "--store", "store", release, "-o", "a.plan"],
               "d.patch": ["delta", "old.db", "new.db", "-o", "d.patch"], "new.db.minisig": ["sign", "new.db", "--key", "k.key"],
               "w.json": ["pack", "old.db", "--product", "org.example.w", "-o", "packed", "--write-draft", "w.json"],
               "packed/w-1.0.0.json": ["pack", "old.db", "--product", "org.example.w", "-o", "packed"],
               "feed/feed.json": ["publish", "feed", release, "--key", "k.key"], "s.key": ["keygen", "--no-password", "s"], "t.pub": ["keygen", "--no-password", "t"]}
    for path, words in outputs.items():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        os.link("victim/public", path)
        arena.attack(*words, allowed=[path, "packed", "feed", "s.*", "t.*"], expects=harmless("exist|link|regular|empty|not |directory|replace|feed"))
        arena.check(pathlib.Path("victim/public").read_text() == "public\n", f"file: {words[0]} has written through a hard link")


@attack("names of 255 bytes, and paths near 4096 bytes", harmless("long|name|NAME|missing.sql"), limit=30)
def long_names(arena):
    arena.database("new.db", TWO)
    for name in ("a" * 252 + ".db", "é" * 126 + ".db", "b" * 245 + ".db", "c" * 240 + ".db", "d" * 230 + ".db"):
        sqlite = sqlite3.connect(":memory:")
        sqlite.executescript(ONE)
        pathlib.Path(name).write_bytes(sqlite.serialize())
        before = set(os.listdir("."))
        ended = arena.attack("replace", name, "new.db", allowed=[name, f".{name}.moult"])
        if ended.status == 0:
            arena.attack("replace", "--undo", name, allowed=[name, f".{name}.moult"], expects=works())
            arena.check(b"one" in pathlib.Path(name).read_bytes(), f"rows: {name} was not restored")
        else:
            arena.check(set(os.listdir(".")) == before, f"file: left {set(os.listdir('.')) - before}")
        arena.attack("cache", name, "--schema", "missing.sql")
        arena.attack("build", "missing.sql", "-o", name)
    deep = "/".join(["e" * 250] * 15)
    os.makedirs(deep)
    arena.attack("init", deep + "/" + "s" * 200, "--product", "org.example.app", allowed=[deep])
    arena.attack("init", deep + "/" + "s" * 240 + "/x", "--product", "org.example.app", allowed=[deep])


@attack("the path of a store has the characters of a URI, escapes and a combining mark after a slash", works())
def uri_in_store_path(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    for name in ("a?mode=memory&x=#frag%00%2e", "\u0301combining", "-dash", "a\r\nb", "x'y\"z", "%2e%2e", "tab\there", "file:x?vfs=none", "a b;c&d|e"):
        os.makedirs(f"./{name}")
        arena.store(first, name=f"./{name}")
        arena.database(f"./{name}/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
        arena.attack("apply", "-q", second, f"--store=./{name}", allowed=[f"{name}"])
        ended = arena.attack("sql", "-q", "SELECT name FROM shop.item WHERE own", f"--store=./{name}", allowed=[f"{name}/*-shm", f"{name}/*-wal"])
        arena.check("row of the app" in ended.out, f"rows: {name!r}: {ended}")
        printed = arena.attack("attach", f"--store=./{name}").out
        arena.write("set.sql", printed + "\nSELECT name FROM shop.item WHERE own;\n")
        ended = arena.run(["sqlite3", "-init", "set.sql", ":memory:", "SELECT 1"])
        arena.check("row of the app" in ended.out, f"rows: attach of {name!r} does not work: {ended}")


@attack("pipes and directories are next to a database as its -wal, -journal and -shm", harmless("regular|pipe|FIFO|directory|-wal|-journal|-shm|open"), limit=60)
def pipes_as_sidecars(arena):
    arena.database("new.db", TWO)
    for suffix in ("-wal", "-journal", "-shm"):
        for make in (os.mkfifo, os.mkdir):
            arena.sh("rm -rf app.db new.db")
            arena.database("app.db", ONE)
            arena.database("new.db", TWO)
            make("app.db" + suffix)
            for words in (["replace", "-q", "app.db", "new.db"], ["inspect", "app.db"], ["diff", "app.db", "new.db"], ["replace", "-q", "new.db", "app.db"],
                          ["pack", "-q", "app.db", "--product", "org.example.p"], ["delta", "app.db", "new.db", "-o", "d.patch"]):
                arena.attack(*words, limit=6, allowed=[*AROUND, "new.db", ".new.db.moult", "releases", "d.patch"])
            with contextlib.suppress(OSError):
                os.rmdir("app.db" + suffix) if os.path.isdir("app.db" + suffix) else os.unlink("app.db" + suffix)
            arena.sh("rm -rf .app.db.moult .new.db.moult releases d.patch")


@attack("a database is replaced with itself, with a link to itself, and with its own old copy", harmless("same|itself|link"))
def replaced_with_itself(arena):
    arena.database("app.db", ONE)
    os.symlink("app.db", "link.db")
    os.link("app.db", "hard.db")
    for name in ("app.db", "link.db", "hard.db", "./app.db", "/proc/self/cwd/app.db"):
        arena.attack("replace", "app.db", name, allowed=[*AROUND, "hard.db"])
        arena.check(arena.rows("app.db", "SELECT x FROM t") == [("one",)], f"rows: lost by {name}")
    arena.database("new.db", TWO)
    os.unlink("hard.db")
    arena.moult("replace", "-q", "app.db", "new.db")
    for kept in list(pathlib.Path(".app.db.moult").rglob("app.db")):
        if not kept.is_symlink():
            arena.attack("replace", "app.db", str(kept), allowed=AROUND)
    arena.holds(".", "one", "two")


@attack("the umask is 0777 or 0, and the secrets, staged files and records must stay private and usable", works(), limit=40)
def odd_umasks(arena):
    for mask in ("0777", "0000"):
        arena.sh("rm -f app.db new.db")
        arena.database("app.db", ONE)
        arena.database("new.db", TWO)
        os.chmod("app.db", 0o600)
        run = lambda words, **more: arena.attack("-c", f"umask {mask}; exec moult {words}", program="/bin/sh",
                                               **{"expects": works() if mask == "0000" else harmless(), **more})  # noqa: E731
        run("replace -q app.db new.db", allowed=AROUND)
        arena.check(os.stat("app.db").st_mode & 0o777 == 0o600, f"file: app.db has mode {os.stat('app.db').st_mode:o}")
        run("replace -q --undo app.db", allowed=AROUND)
        run(f"keygen -q --no-password m{mask}", allowed=[f"m{mask}.*"])
        arena.check(os.stat(f"m{mask}.key").st_mode & 0o77 == 0, "secret: the secret key is readable by others")
        run(f"init -q st{mask} --product org.example.app", allowed=[f"st{mask}"])
        run(f"apply -q --store st{mask} {arena.shop('1.0.0', out=f'r{mask}')}", allowed=[f"st{mask}"])
        if mask == "0000":
            run(f"verify --store st{mask}")
        for directory, _, names in os.walk(f"st{mask}"):
            arena.check(os.stat(directory).st_mode & 0o22 == 0 or directory == f"st{mask}", f"file: {directory} is writable by others")
            for name in names:
                path = os.path.join(directory, name)
                if not os.path.islink(path) and path.startswith(f"st{mask}/.moult"):
                    arena.check(os.stat(path).st_mode & 0o22 == 0, f"file: {path} is writable by others")
        arena.check("not a valid database" not in arena.commands[-1].text, "sentence: a missing permission is reported as a damaged database")
        # A command with the usual umask works afterwards.
        arena.sh(f"chmod -R u+rwX st{mask}")
        arena.attack("replace", "-q", "app.db", "new.db", allowed=AROUND)
        arena.attack("apply", "-q", "--store", f"st{mask}", f"r{mask}/app-1.0.0.json", allowed=[f"st{mask}"])
        arena.attack("verify", "-q", "--store", f"st{mask}")
        arena.sh("rm -rf .app.db.moult")


@attack("every file in JSON has 300,000 nested arrays or objects, a number of a megabyte, or a key a hundred thousand times", harmless(), limit=90)
def nested_json(arena):
    first, second = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(first)
    arena.database("store/shop.db", "INSERT INTO item VALUES(7, 'row of the app', 1)")
    arena.moult("hold", "-q", "9.0.0", "--reason", "x", "--store", "store")
    arena.moult("plan", "-q", "--store", "store", second, "-o", "a.plan")
    arena.key()
    arena.moult("publish", "-q", "feed", second, "--key", "k.key")
    arena.sh("cp -a store whole; cp -a feed whole-feed; cp a.plan whole.plan; cp work-2.0.0/draft.json whole.json")
    generation = os.readlink("store/.moult/current")
    bombs = ("[" * 300_000, '{"a":' * 300_000, '{"x":' + "9" * 1_000_000 + "}", '{"x":1e' + "9" * 100_000 + "}", "{" + '"moult":1,' * 100_000 + '"product":"org.example.app"}', '{"a":[' * 60_000 + "]}" * 60_000, '"' + "\\u0301" * 200_000 + '"')
    readers = {"store/moult.json": ["status"], "store/.moult/holds.json": ["apply", second], "store/.moult/history.jsonl": ["history"], "store/.moult/checks.json": ["status"], "store/.moult/steps.json": ["steps"],
               f"store/.moult/{generation}/manifest.json": ["plan", second], f"store/.moult/{generation}/seal.json": ["verify"], "store/.moult/feed/seen.json": ["check", "--feed", "feed/feed.json", "--allow-unsigned"], "feed/feed.json": ["check", "--feed", "feed/feed.json", "--allow-unsigned"],
               "a.plan": ["apply", "--plan", "a.plan"], "work-2.0.0/draft.json": ["pack", "work-2.0.0/draft.json"]}
    for path, words in readers.items():
        for bomb in bombs:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            for parent in (os.path.dirname(path) or ".",):
                os.chmod(parent, os.stat(parent).st_mode | 0o200)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            pathlib.Path(path).write_text(bomb)
            ended = arena.attack(*words, *([] if words[0] == "pack" else ["--store", "store"]), limit=5, memory=500, allowed=["store", "releases"], expects=harmless())
            arena.check(ended.status >= 0, f"status: {path}: {ended}")
            arena.sh("chmod -R u+w store; rm -rf store feed; cp -a whole store; cp -a whole-feed feed; cp whole.plan a.plan; cp whole.json work-2.0.0/draft.json")
    arena.holds("store", "row of the app")


@attack("the settings of a git repository run programs while a release is packed in it", harmless(), needs=("git",))
def git_settings(arena):
    trap = arena.trap()
    arena.database("repo/food.db", ONE)
    arena.write("repo/draft.json", json.dumps({"manifest": 1, "product": "org.example.app", "version": "1.0.0", "sequence": "${git.count}", "databases": {"food": {"kind": "reference", "source": "food.db"}}}))
    arena.sh(f"""cd repo; git init -q .; git add .; git -c user.name=a -c user.email=a@b commit -qm x
        for name in core.fsmonitor core.pager core.sshCommand core.editor core.askPass core.gitProxy diff.external interactive.diffFilter gpg.program credential.helper filter.x.clean filter.x.smudge filter.x.process merge.x.driver diff.x.textconv diff.x.command pager.log pager.status uploadpack.packObjectsHook; do git config $name {trap}; done
        git config filter.x.required true; printf '* filter=x diff=x\n' > .git/info/attributes
        for hook in post-index-change reference-transaction pre-commit post-checkout fsmonitor-watchman; do printf '#!/bin/sh\n{trap}\n' > .git/hooks/$hook; chmod 755 .git/hooks/$hook; done; touch -d '1 hour ago' food.db draft.json""")
    for words in (["pack", "repo/draft.json"], ["pack", "repo/draft.json", "--allow-dirty"], ["build", "repo/food.db", "-o", "out.db"], ["pack", "repo/draft.json"]):
        # Git compares the content of a file, through filters, if its time is that of the index.
        arena.sh("touch repo/food.db repo/draft.json repo/.git/index" if words[-1] != "--allow-dirty" else "touch -d '1 hour ago' repo/food.db")
        arena.attack(*words, allowed=["releases", "out.db", "repo/.git/index"], expects=harmless())
        # A confined program cannot write, but can show that it runs.
        arena.check("TRAP" not in arena.commands[-1].text, "program: git has run a program of the repository")
