"""Archives and patches that attack, by an author who has not read the code: many small parts, chains of patches, files that change while they are read."""
import gzip
import json
import lzma
import os
import pathlib
import struct
import tarfile
import zlib

from archives import install, zipped
from kit import attack, harmless, refused, sha256, tar, works


@attack("a bundle consists of a million empty gzip members, skippable zstd frames, or empty xz streams", harmless(), limit=90)
def empty_parts(arena):
    content = arena.content()
    plain = tar({"food.db": content})
    arena.write("plain.tar", plain)
    arena.sh("zstd -q plain.tar -o plain.zst")
    zst = pathlib.Path("plain.zst").read_bytes()
    for parts, whole, suffix in ((gzip.compress(b"") * 1_000_000, gzip.compress(plain), "tar.gz"), (struct.pack("<II", 0x184D2A50, 0) * 2_000_000, zst, "tar.zst"), (lzma.compress(b"") * 600_000, lzma.compress(plain), "tar.xz"),
                                 (struct.pack("<II", 0x184D2A50, 0xFFFFFFF0), zst, "tar.zst"), (b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00" * 1_000_000, zst, "tar.zst")):
        install(arena, parts + whole, suffix, content=content, limit=10, expects=harmless(), allowed="store")
        install(arena, whole + parts, suffix, content=content, limit=10, expects=harmless(), allowed="store")


@attack("the header of a gzip file has a name of 100 MB, and a tar has 300,000 empty members and headers", harmless(), limit=60)
def long_headers(arena):
    content = arena.content()
    # The kernel counts the memory of this process before it starts the command.
    plain = tar({"food.db": content})
    install(arena, b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 60_000_000 + b"\0" + gzip.compress(plain)[10:], "tar.gz", content=content, limit=10, expects=harmless(), allowed="store", memory=900)
    member = tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT)
    install(arena, gzip.compress(member * 300_000 + plain, 1), "tar.gz", content=content, limit=10, expects=harmless(), allowed="store", memory=900)
    install(arena, gzip.compress(bytes(512) * 600_000 + plain, 1), "tar.gz", content=content, limit=10, expects=harmless(), allowed="store", memory=900)
    install(arena, gzip.compress(plain[:-1024] + b"\xff" * (100 << 20), 1), "tar.gz", content=content, limit=10, expects=harmless(), allowed="store", memory=900)


def patched(arena, change, patches):
    """Installs 1.0.0, and returns 2.0.0 whose manifest has these patches in addition."""
    first = arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(id, name); INSERT INTO food VALUES(1, 'x')")})
    second = arena.release("2.0.0", {"food": ("reference", "CREATE TABLE food(id, name); INSERT INTO food VALUES(1, 'y')")})
    manifest = json.loads(pathlib.Path(second).read_text())
    arena.store(first)
    manifest["patches"] = patches(manifest, pathlib.Path(os.path.realpath("store/food.db")).read_bytes())
    change(manifest)
    pathlib.Path(second).write_text(json.dumps(manifest))
    return second


@attack("patches of a release form circles, a chain of 20,000, and a graph with exponentially many ways", harmless(), limit=90)
def chains_of_patches(arena):
    def digest(number):
        return sha256(str(number).encode())

    def graph(edges):
        def made(manifest, installed):
            goal = manifest["databases"]["food"]
            names = {0: (len(installed), sha256(installed)), -1: (goal["size"], goal["sha256"])}
            return [{"member": "food.db", "from": "1.0.0", "file": f"p-{a}-{b}.patch", "size": 10, "sha256": digest(f"{a}-{b}"), **({"base": dict(zip(("size", "sha256"), names.get(a, (100 + a, digest(a)))))}),
                     **({"result": dict(zip(("size", "sha256"), names.get(b, (100 + b, digest(b)))))} if b != -1 else {})} for a, b in edges]
        return made

    layers = [(a, b) for layer in range(60) for a in (layer * 3 + 1, layer * 3 + 2, layer * 3 + 3) for b in (layer * 3 + 4, layer * 3 + 5, layer * 3 + 6)]
    for edges in ([(0, 1), (1, 0)], [(0, 0)], [(0, 1), (1, 2), (2, 1)], [(n, n + 1) for n in range(20000)] + [(20000, -1)], [(0, 1), (0, 2), (0, 3)] + layers + [(181, -1), (182, -1), (183, -1)], [(0, n) for n in range(1, 5000)] + [(n, -1) for n in range(1, 5000)]):
        arena.sh("rm -rf store releases work-*")
        second = patched(arena, lambda manifest: None, graph(edges))
        for words in (["plan", "--store", "store", second], ["apply", "--store", "store", second]):
            arena.attack(*words, limit=8, memory=500, allowed=["store"])


@attack("a patch of 100 bytes claims a result of a tebibyte, an exbibyte, and another base", harmless(), limit=60)
def result_of_patch(arena):
    for size in (1 << 40, (1 << 53) - 1, 0):
        for where in ("result", "base"):
            arena.sh("rm -rf store releases work-*")

            def patches(manifest, installed, size=size, where=where):
                goal = manifest["databases"]["food"]
                arena.write("releases/a.patch", b"\x28\xb5\x2f\xfd" + b"\xe0" + struct.pack("<Q", size) + b"\x03\0\0" + bytes(80))
                arena.write("releases/b.patch", b"x" * 100)
                made = {"base": {"size": len(installed), "sha256": sha256(installed)}, "result": {"size": size, "sha256": "0" * 64}}
                if where == "base":
                    made["base"]["size"], made["result"] = size, {"size": goal["size"], "sha256": goal["sha256"]}
                content = pathlib.Path("releases/a.patch").read_bytes()
                return [{"member": "food.db", "from": "1.0.0", "file": "a.patch", "size": len(content), "sha256": sha256(content), **made},
                        {"member": "food.db", "from": "1.0.0", "file": "b.patch", "size": 100, "sha256": sha256(b"x" * 100), "base": made["result"]}]
            second = patched(arena, lambda manifest: None, patches)
            ended = arena.attack("apply", "--store", "store", second, limit=8, memory=500, allowed=["store"])
            arena.check(ended.status != 0 or arena.rows("store/food.db", "SELECT name FROM food") == [("y",)], f"rows: {ended}")


@attack("the bundle, the manifest and the patch are exchanged for others, cut and stretched while they are read", harmless(), limit=60)
def changed_while_read(arena):
    first = arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(v); INSERT INTO food VALUES('1')")})
    fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO food SELECT hex(randomblob(2000)) FROM n"
    second = arena.release("2.0.0", {"food": ("reference", f"CREATE TABLE food(v); INSERT INTO food VALUES('2'); {fill}")})
    evil = arena.release("2.0.0", {"food": ("reference", f"CREATE TABLE food(v); INSERT INTO food VALUES('evil'); {fill}")}, out="evil")
    bundle = next(pathlib.Path("releases").glob("app-2*.tar.zst")).name
    arena.sh(f"cp releases/{bundle} whole; cp evil/{bundle} other; cp evil/{bundle} releases/x; cp {evil} releases/y")
    arena.store(first)
    scripts = [f"while True:\n    exchange('releases/{bundle}', 'releases/x'); time.sleep(0.001)", "while True:\n    exchange('releases/app-2.0.0.json', 'releases/y'); time.sleep(0.001)",
               f"f = 'releases/{bundle}'\nwhole = open('whole', 'rb').read()\nother = open('other', 'rb').read()\nwhile True:\n    os.truncate(f, 100); time.sleep(0.001); open(f, 'r+b').write(whole); time.sleep(0.002); open(f, 'r+b').write(other); time.sleep(0.001); os.truncate(f, 1 << 40)"]
    for script in scripts:
        with arena.racing(script, user=None):
            for _ in range(8):
                ended = arena.attack("apply", "-q", "--store", "store", second, limit=8, memory=500, allowed=["store", "releases"])
                arena.check(ended.status >= 0, f"status: {ended}")
                arena.moult("rollback", "-q", "--store", "store", fine=(0, 1, 3))
                arena.moult("unhold", "-q", "--all", "--store", "store", fine=(0, 1, 3))
        arena.sh(f"rm -f releases/{bundle} releases/x; cp whole releases/{bundle}; cp other releases/x")
    arena.attack("verify", "--deep", "-q", "--store", "store", expects=works())


@attack("databases of a release have the same file, files of each other's -wal, names that differ in case, and names of the store", refused("path|member|name|same|differ|case|file", 1, 3, 0), limit=60)
def paths_that_collide(arena):
    content = arena.content()
    for first, second in (("food.db", "food.db"), ("food.db", "food.db-wal"), ("food.db-journal", "food.db"), ("food.db", "FOOD.DB"), ("moult.json", "b.db"), (".moult", "b.db"), ("f\u00e9.db", "fe\u0301.db"), ("a.db", "a.db-shm"),
                          ("food.db.", "food.db"), (" food.db", "food.db"), ("\u202efood.db", "food.db"), ("a\u0000.db", "a.db"), ("a.db", "x" * 90 + ".db")):
        arena.sh("rm -rf store forged")
        arena.store()
        before = pathlib.Path("store/moult.json").read_bytes()
        release = arena.forge("1.0.0", {"a": ("reference", content), "b": ("user", content)}, archive=tar({first: content, second: content}),
                              change=lambda m, f=first, s=second: {**m, "databases": {"a": {**m["databases"]["a"], "member": f, "path": f}, "b": {**m["databases"]["b"], "member": s, "path": s}}})
        arena.attack("apply", "--store", "store", release, limit=8, allowed=["store"], expects=harmless())
        arena.check(pathlib.Path("store/moult.json").read_bytes() == before, f"file: moult.json has changed for {first!r}, {second!r}")


@attack("a zip has data before its first member, zip64 sizes, a comment with another directory, and thousands of entries", harmless(), limit=60)
def odd_zips(arena):
    content = arena.content()
    good = zipped([(b"food.db", content)])
    evil = zipped([(b"food.db", arena.content("CREATE TABLE food(id, name); CREATE TABLE evil(x)"))])
    packer = zlib.compressobj(9, wbits=-15)
    bomb = packer.compress(bytes(1 << 28)) + packer.flush()
    entry = struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 8, 8, 0, 33, 0, 0xFFFFFFFF, 0xFFFFFFFF, 7, 20) + b"food.db" + struct.pack("<HHQQ", 1, 16, 1 << 60, 1 << 60) + bomb
    for archive in (b"#!/bin/sh\n" * 1000 + good, evil + good, good + evil, good[:-2] + struct.pack("<H", len(evil)) + evil, entry, zipped([(b"d/", b"")] * 4_000 + [(b"food.db", content)]), zipped([(b"food.db", content)], flags=8), good[:30] + b"\xff" * 40 + good[70:]):
        install(arena, archive, "zip", content=content, limit=8, expects=harmless(), allowed="store")
        if os.path.exists("store/food.db"):
            arena.check(arena.rows("store/food.db", "SELECT count(*) FROM sqlite_schema WHERE name = 'evil'") == [(0,)], "rows: another database was installed")
