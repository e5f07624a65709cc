"""Inputs of a permitted size whose processing could take minutes or gigabytes."""
import json
import os
import pathlib
import struct
import base64

from kit import attack, harmless, refused, works, PRODUCT

UNKNOWN = {**{f"u{n}": 1 for n in range(25_000)}, "critical": [f"u{n}" for n in range(25_000)]}
SECONDS = 6  # for a command whose time is linear; slow machines need some of them


def signed_feed(arena, change):
    """Publishes a release in `public`, changes the feed and signs it; the store follows it."""
    key = arena.key()
    arena.moult("publish", "-q", "public", arena.shop("1.0.0"), "--key", key)
    arena.moult("init", "-q", "store", "--product", PRODUCT, "--key", "k.pub", "--feed", arena.path("public/feed.json"))
    arena.moult("apply", "-q", "--store", "store")
    feed = json.loads(pathlib.Path("public/feed.json").read_text())
    arena.write("public/feed.json", json.dumps({**change(feed), "serial": 2}, separators=(",", ":")))
    arena.sh("rm -f public/feed.json*.minisig")
    arena.moult("sign", "-q", "public/feed.json", "-k", key, limit=60)


def releases(feed, count, **more):
    """A feed with this many releases, each made by a function of its number."""
    one = feed["releases"][0]
    return {**feed, "releases": [{"version": f"{n}.0.0", "sequence": n, "manifest": {**one["manifest"], "file": f"a-{n}.json"}, **{key: value(n) for key, value in more.items()}} for n in range(2, count + 2)]}


def chain(arena, count):
    signed_feed(arena, lambda feed: releases(feed, count, requires=lambda n: {"from": f">={n - 1}.0.0 <{n}.0.0"}))
    for words in (["check"], ["plan"], ["apply"]):
        arena.attack(*words, "--store", "store", limit=SECONDS, memory=400)


@attack("each of 5,000 releases in a feed requires the one before it", harmless(), limit=60)
def long_chain(arena):
    chain(arena, 5000)


@attack("each release in a feed requires any of 200 others, or none that exists", harmless(), limit=60)
def wide_requirements(arena):
    signed_feed(arena, lambda feed: releases(feed, 2000, requires=lambda n: {"from": " || ".join(f"{m}.0.0" for m in range(n % 1000, n % 1000 + 40))}))
    for words in (["check"], ["apply"]):
        arena.attack(*words, "--store", "store", limit=SECONDS, memory=400)


@attack("a feed lists 25,000 unknown fields as critical", refused("critical|unknown|version of moult|large|not known|limit"), limit=60)
def critical_fields_of_feed(arena):
    signed_feed(arena, lambda feed: {**feed, **UNKNOWN})
    arena.attack("check", "--store", "store", limit=SECONDS)
    arena.attack("publish", "-q", "public", "--key", "k.key", limit=SECONDS)


@attack("an unsigned feed that lists 25,000 unknown fields as critical is in the directory of the publisher", refused("sign|key|critical|changed|limit"), limit=40)
def critical_fields_before_signature(arena):
    signed_feed(arena, lambda feed: feed)
    feed = json.loads(pathlib.Path("public/feed.json").read_text())
    arena.write("public/feed.json", json.dumps({**feed, **UNKNOWN}))
    arena.attack("publish", "-q", "public", "--key", "k.key", limit=SECONDS)
    arena.attack("check", "--store", "store", limit=SECONDS)


def manifest(arena, *expected, seconds=SECONDS, verbs=("apply", "inspect"), **fields):
    """Reads and installs a release with these additional fields."""
    if not os.path.exists("store"):
        arena.store()
    release = arena.forge("1.0.0", {"food": ("reference", arena.content())}, change=lambda manifest: {**manifest, **fields})
    for verb in verbs:
        arena.attack(verb, *(["--store", "store"] if verb == "apply" else []), release, limit=seconds, memory=500, allowed="store")


@attack("a manifest lists 25,000 unknown fields as critical, and has them", harmless("critical|unknown|version of moult|large|limit|known"), limit=40)
def critical_fields_of_manifest(arena):
    manifest(arena, **UNKNOWN)


@attack("a requirement is a list of 20,000 ranges, or a version of 900,000 characters", harmless(), limit=60)
def long_ranges(arena):
    ranges = " || ".join(f"^{n}.0.0" for n in range(20_000))
    long = "1.0.0-" + ".".join(["a"] * 300_000)
    for field in ("app", "moult", "from"):
        manifest(arena, requires={field: ranges})
        manifest(arena, requires={field: f">={long} <{long}b"})
    manifest(arena, version=long)
    arena.store(name="s2", settings={"app": "0.0.1"})
    release = arena.forge("1.0.0", {"food": ("reference", arena.content())}, change=lambda m: {**m, "requires": {"app": ranges}}, out="other")
    arena.attack("apply", "--store", "s2", release, limit=SECONDS)


@attack("JSON files have 200,000 nested lists, 30,000 equal names, numbers of a million digits and strings of escapes", harmless(), limit=90)
def deep_json(arena):
    arena.store()
    for text in ("[" * 500_000, '{"a":' * 100_000, '{"manifest": ' + "9" * 900_000 + "}", '{"manifest": 1e999999999}', '{"manifest": 0.' + "0" * 900_000 + "1}", '{"manifest": "' + "\\u0041" * 150_000 + '"}',
                 "{" + ",".join('"a": 1' for _ in range(90_000)) + "}", "{" + ",".join(f'"a{n}": 1' for n in range(60_000)) + "}", '"' + "\\" * 900_000, " " * 1_000_000, "[" + "[]," * 300_000 + "[]]", '{"manifest": -' * 50_000,
                 "\ufeff" * 200_000, '{"' + "e\u0301" * 200_000 + '": 1}'):
        arena.write("x.json", text)
        arena.attack("apply", "--store", "store", "x.json", limit=SECONDS, memory=500)
        arena.write("d/moult.json", text)
        arena.attack("status", "--store", "d", limit=SECONDS, memory=500)


@attack("a draft and the settings have a megabyte of comments, slashes, commas and variables", harmless(), limit=60)
def comments(arena):
    good = '"manifest": 1, "product": "org.example.app", "version": "1.0.0", "databases": {}'
    for text in ("/" * 400_000, "/*" * 200_000, "/*" + "*" * 400_000 + "/", "// " * 150_000 + "\n{" + good + "}", "{" + "/**/" * 100_000 + good + "}", "{" + good + "," * 200_000 + "}", "{" + good + ', "x": "' + "${" * 200_000 + '"}',
                 "{" + good + ', "x": "' + "${A}" * 100_000 + '"}', "{" + good + ', "x": "' + "$${" * 100_000 + '"}', "\n" * 400_000 + "{" + good + "}"):
        arena.write("draft.json", text)
        arena.attack("pack", "draft.json", "--define", "A=" + "a" * 2000, limit=SECONDS, memory=700)
        arena.write("d/moult.json", text)
        arena.attack("status", "--store", "d", limit=SECONDS, memory=500)


@attack("a build script has a megabyte without a semicolon, of comments, quotes, parentheses, or variables", harmless(), limit=90)
def long_scripts(arena):
    for text in ("SELECT 1" + " + 1" * 200_000, "/*" * 400_000, "--" * 400_000, "'" * 500_001, "(" * 500_000, "CREATE TABLE t(x);" + "INSERT INTO t VALUES(1);" * 20_000, "CREATE TRIGGER r BEGIN " + "SELECT 1;" * 60_000,
                 ".print " + "x" * 500_000, "${A}" * 100_000, "\n" * 500_000, ".\n" * 100_000, "SELECT '" + "''" * 300_000 + "';", ";" * 500_000, "x'" * 200_000):
        arena.write("s/make.sql", text)
        arena.attack("build", "s/make.sql", "-o", "out.db", "--define", "A=a", limit=2 * SECONDS, memory=500, allowed="out.db")
        arena.sh("rm -f out.db")


@attack("a CSV file has 500,000 quotes, 30,000 columns, or a cell of 20 MB", harmless(), limit=60)
def wide_csv(arena):
    arena.write("s/make.sql", "CREATE TABLE t(x);\n.mode csv\n.import data.csv new\n")
    for text in ('"' * 500_001, ",".join(f"c{n}" for n in range(30_000)) + "\n" + ",".join("1" for _ in range(30_000)) + "\n", "a,b\n" + '"' + "x" * 20_000_000 + '",1\n', "a\n" + '""' * 300_000, "a,b\n" + "1\n" * 100_000,
                 ",".join("a" for _ in range(3_000)) + "\n", "a\r" * 200_000):
        arena.write("s/data.csv", text)
        arena.attack("build", "s/make.sql", "-o", "out.db", limit=2 * SECONDS, memory=600, allowed="out.db")
        arena.sh("rm -f out.db")


@attack("a store trusts 3,000 keys, has 3,000 consumers, steps and mirrors", harmless(), limit=60)
def long_settings(arena):
    release = arena.shop("1.0.0")
    arena.store(release)
    keys = [{"key": "RW" + base64.b64encode(b"Ed" + n.to_bytes(8, "big") + bytes(31) + n.to_bytes(1, "big") if n < 256 else b"Ed" + n.to_bytes(8, "big") + bytes(30) + n.to_bytes(2, "big")).decode()[2:]} for n in range(1, 3000)]
    for more in ({"keys": {"trusted": keys}}, {"consumers": [{"name": f"c{n}", "signal": {"pidFile": f"/none/{n}", "reload": "HUP"}} for n in range(3000)]},
                 {"steps": {f"test.s{n}": {"executable": "/none", "after": "copy"} for n in range(3000)}}, {"feed": {"url": "http://127.0.0.1:9/feed.json", "mirrors": [f"http://127.0.0.1:9/{n}.json" for n in range(3000)], "deadline": 3}},
                 {"consumers": [{"name": "c", "databases": [f"d{n}" for n in range(20_000)], "systemd": "x.service"}]}):
        settings = json.loads(pathlib.Path("store/moult.json").read_text())
        arena.settings(more)
        for words in (["status"], ["apply", release], ["status", "--deep"], ["check"]):
            arena.attack(*words, "--store", "store", limit=2 * SECONDS, memory=400, allowed="store/.moult")
        arena.settings(settings)
        arena.after = None


@attack("the history of a store has 5,000 lines, a line of 30 MB, or 100,000 holds", harmless(), limit=90)
def long_records(arena):
    one, two = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(one)
    line = pathlib.Path("store/.moult/history.jsonl").read_text()
    for text in (line * 5_000, line + '{"time":"' + "x" * 30_000_000 + '"}\n', "x\n" * 300_000, "[" * 2_000_000):
        arena.write("store/.moult/history.jsonl", text)
        for words in (["status"], ["history"], ["apply", two]):
            arena.attack(*words, "--store", "store", limit=2 * SECONDS, memory=600, allowed="store")
    arena.write("store/.moult/history.jsonl", line)
    for text in ("[" * 1_000_000, json.dumps({"holds": [{"release": f"{n}.0.0", "reason": "x", "since": "2026-01-01T00:00:00Z"} for n in range(50_000)]}), "x" * 30_000_000):
        arena.write("store/.moult/holds.json", text)
        for words in (["status"], ["apply", two]):
            arena.attack(*words, "--store", "store", limit=2 * SECONDS, memory=600, allowed="store")


@attack("1,500 foreign names are among the generations, transactions, sets and downloads of a store", harmless(), limit=60)
def crowded_directories(arena):
    one, two = arena.shop("1.0.0"), arena.shop("2.0.0")
    arena.store(one)
    for directory in ("generations", "transactions", "quarantine", "downloads", "leases", "feed"):
        os.makedirs(f"store/.moult/{directory}", exist_ok=True)
        for n in range(250):
            os.mkdir(f"store/.moult/{directory}/{n}.0.0+{n:08x}")
    for words in (["status"], ["quarantine"], ["status", "--deep"], ["status", "--processes"], ["apply", two], ["clean"], ["rollback"]):
        arena.attack(*words, "--store", "store", limit=2 * SECONDS, memory=400, allowed="store")


@attack("two databases differ in 20,000 rows without a key that all look alike", works("", 0, 2), limit=60)
def similar_rows(arena):
    for name, first in (("old.db", 0), ("new.db", 1)):
        arena.database(name, f"CREATE TABLE t(x, y); WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT hex(zeroblob(50)) || (i % 3), (i + {first}) % 7 FROM n;"
                             "CREATE TABLE w(k TEXT PRIMARY KEY) WITHOUT ROWID; WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) INSERT INTO w SELECT hex(zeroblob(200)) || i || "
                             f"'{first}' FROM n;")
    arena.attack("diff", "old.db", "new.db", limit=3 * SECONDS, memory=400)
    arena.attack("replace", "-q", "--preserve", "t", "--preserve", "w", "old.db", "new.db", limit=4 * SECONDS, memory=500, allowed=["old.db", ".old.db.moult"])


@attack("files for a patch are made of repeated blocks that match everywhere", works(), limit=60)
def repeated_blocks(arena):
    for name, block in (("old.db", b"ab" * 2048), ("new.db", b"ba" * 2048)):
        arena.database(name, "CREATE TABLE t(x)")
        arena.database(name, "INSERT INTO t VALUES(?)", block * 1500)
    arena.attack("delta", "old.db", "new.db", "-o", "d.patch", limit=3 * SECONDS, memory=600, allowed="d.patch")


@attack("a secret key asks for terabytes of memory to check its password, or for years", refused("key|memory|limit|password|scrypt|parameters|large", 1, 3, 64), limit=40)
def costly_password(arena):
    arena.write("file", "x")
    salt = os.urandom(32)
    for operations, memory in ((1 << 62, 1 << 25), (1 << 25, 1 << 50), (1 << 40, 1 << 33), (0, 0), ((1 << 64) - 1, (1 << 64) - 1), (1 << 34, 1 << 24)):
        body = b"Ed" + b"Sc" + b"B2" + salt + struct.pack("<QQ", operations, memory) + os.urandom(8 + 32 + 64)
        arena.write("evil.key", "untrusted comment: minisign encrypted secret key\n" + base64.b64encode(body).decode() + "\n", 0o600)
        arena.attack("sign", "file", "-k", "evil.key", stdin=b"password\n", limit=15, memory=1400)


@attack("a manifest has 5,000 databases, checks, budgets, migrations and rules for rows", harmless(), limit=60)
def many_databases(arena):
    content = arena.content()
    for fields in ({"checks": [{"on": "food", "sql": f"SELECT {n}", "expect": "x"} for n in range(15_000)]}, {"budget": {f"food.t{n}": {"shrink": "1%"} for n in range(20_000)}},
                   {"databases": {f"d{n}": {"kind": "reference", "member": f"d{n}.db", "size": 1, "sha256": "0" * 64} for n in range(8_000)}},
                   {"databases": {f"d{n}": {"kind": "reference", "member": "food.db", "size": len(content), "sha256": "0" * 64} for n in range(3_000)}},
                   {"databases": {"food": {"kind": "shared", "member": "food.db", "size": len(content), "sha256": "0" * 64, "preserve": [{"table": f"t{n}"} for n in range(20_000)]}}},
                   {"steps": [{"step": "test.x", "after": "copy", "with": {"a": n}} for n in range(15_000)]}):
        manifest(arena, **fields)
