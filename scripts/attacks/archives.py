"""Bundles whose archive attacks the machine that unpacks it, and manifests that do not match their bundles."""
import gzip
import io
import json
import lzma
import os
import pathlib
import struct
import tarfile
import zipfile
import zlib

from kit import attack, harmless, refused, sha256, tar

REFUSED = refused(r"archive|bundle|member|match|not a|damaged|declared|manifest|link|size|SHA-256|memory|format|name", 1, 3)


def info(name, kind=tarfile.REGTYPE, link="", size=0, **more):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, size
    for key, value in more.items():
        setattr(member, key, value)
    return member


def install(arena, archive, suffix="tar", change=None, content=None, **options):
    """Installs release 2.0.0 with this bundle over release 1.0.0; its database is `food.db`."""
    content = content or arena.content()
    if not os.path.exists("store"):
        arena.store(arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(id, name)")}))
    release = arena.forge("2.0.0", {"food": ("reference", content)}, archive=archive, suffix=suffix, change=change)
    for words in (["apply", "--store", "store"], ["inspect"], ["plan", "--deep", "--store", "store"]):
        arena.attack(*words, release, **{"memory": 400, "expects": harmless() if words[0] != "apply" else None, **options})
    if "allowed" not in options:
        arena.keeps("store/food.db", "SELECT count(*) FROM food", [(0,)])


@attack("members of a bundle have paths that lead out of the store", REFUSED)
def paths(arena):
    content = arena.content()
    for name in ("../../victim/public", "/tmp/moult-attack", "./../x", "a/../../x", "..", "/", "\\..\\x", "food.db/../x", "~/x", ".moult/x"):
        install(arena, tar({"food.db": content, name: b"x"}), content=content)


@attack("a bundle has a symbolic link, and then a file behind it", REFUSED)
def symbolic_link(arena):
    content = arena.content()
    install(arena, tar([(info("food.db", tarfile.SYMTYPE, arena.path("victim/out.db")), b""), ("food.db", content)]), content=content)
    install(arena, tar([(info("d", tarfile.SYMTYPE, arena.victim), b""), ("d/public", b"x"), ("food.db", content)]), content=content)
    install(arena, tar([(info("food.db", tarfile.SYMTYPE, arena.path("victim/out.db")), b"")]), content=content)


@attack("the database of a bundle is a hard link to a file of the victim", REFUSED)
def hard_link(arena):
    content = arena.content()
    for target in (arena.path("victim/out.db"), "../../victim/out.db", "food.db"):
        install(arena, tar([(info("food.db", tarfile.LNKTYPE, target), b"")]), content=content)
        install(arena, tar([("food.db", content), (info("x", tarfile.LNKTYPE, target), b"")]), content=content)


@attack("a bundle has devices, a pipe and a directory in place of the database", REFUSED)
def special_files(arena):
    content = arena.content()
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE, b"X", b"V", b"M"):
        install(arena, tar([(info("food.db", kind, devmajor=1, devminor=5), b"")]), content=content, limit=5)


@attack("a bundle has the database twice: first the right one, then another", REFUSED)
def duplicate(arena):
    content = arena.content()
    other = arena.content("CREATE TABLE food(id, name); CREATE TABLE evil(x)")
    install(arena, tar([("food.db", content), ("food.db", other)]), content=content)
    install(arena, tar([("food.db", other), ("food.db", content)]), content=content)
    install(arena, tar([("food.db", content), ("./food.db", other)]), content=content)
    install(arena, tar([("food.db", content), ("FOOD.DB", other)]), content=content)


@attack("a bundle has a sidecar that would change the database when it is opened", REFUSED)
def sidecar(arena):
    content = arena.content()
    for name in ("food.db-wal", "food.db-journal", "food.db-shm", "moult.json", "manifest.json", "seal.json"):
        install(arena, tar([("food.db", content), (name, b"x" * 4096)]), content=content)
        install(arena, tar([(name, b"x" * 4096), ("food.db", content)]), content=content)


@attack("a bundle of some hundred bytes claims a database of one tebibyte", REFUSED, limit=40)
def sparse_tebibyte(arena):
    content = arena.content()
    sparse = info("food.db", b"S", size=0)
    header = bytearray(sparse.tobuf(tarfile.GNU_FORMAT))
    header[386:398] = b"%011o\0" % 0
    header[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    for size in (1 << 40, (1 << 63) - 1, len(content)):
        install(arena, bytes(header) + bytes(1024), content=content, limit=6,
                change=lambda manifest: manifest["databases"]["food"].update(size=size) or manifest)


@attack("a bundle of some kilobytes unpacks to gigabytes of zeros", REFUSED, limit=60)
def bomb(arena):
    content = arena.content()
    begin = info("food.db", size=8 << 30).tobuf(tarfile.GNU_FORMAT)
    packer, packed = zlib.compressobj(9, wbits=31), []
    packed.append(packer.compress(begin))
    for _ in range(128):
        packed.append(packer.compress(bytes(1 << 20)))
    install(arena, b"".join(packed) + packer.flush(), "tar.gz", content=content, limit=8)
    # A valid header of xz, and 64 MiB of zeros in each of 40 streams.
    stream = lzma.compress(bytes(64 << 20), preset=1)
    install(arena, lzma.compress(begin) + stream * 40, "tar.xz", content=content, limit=8)
    arena.write("zeros", bytes(1 << 20))
    arena.sh("for i in $(seq 64); do cat zeros; done | zstd -q -19 > zeros.zst; rm zeros")
    frame = pathlib.Path("zeros.zst").read_bytes()
    install(arena, frame * 200, "tar.zst", content=content, limit=8)


@attack("a zstd frame and an xz stream require gigabytes of memory to unpack", REFUSED)
def memory_of_decoder(arena):
    content = arena.content()
    # A frame header with a window of 2^41 bytes; a raw block follows.
    for window in (0x80, 0xF0, 0xFF, 0xA8):
        frame = struct.pack("<I", 0xFD2FB528) + bytes([0x00, window]) + (1 | 4 << 3).to_bytes(3, "little") + b"food"
        install(arena, frame, "tar.zst", content=content, limit=6)
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": (3 << 29) - 1, "preset": 0}]
    packer = lzma.LZMACompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}])
    raw = packer.compress(tar({"food.db": content})) + packer.flush()
    # An xz header whose dictionary is 4 GiB, around these data.
    header = bytes([2, 0, 0x21, 1, 40]) + bytes(3)
    block = header + struct.pack("<I", zlib.crc32(header)) + raw
    install(arena, b"\xfd7zXZ\0\0\0" + struct.pack("<I", zlib.crc32(b"\0\0")) + block, "tar.xz", content=content, limit=6)


@attack("the bundle has another format than its name says: cab, rar, iso, xar, cpio, ar, 7z, lrzip", REFUSED)
def other_formats(arena):
    content = arena.content()
    for name in ("lrzip", "lzop", "grzip", "uncompress", "lz4"):
        arena.trap(f"bin/{name}")
    begins = {"cab": b"MSCF" + bytes(60), "rar": b"Rar!\x1a\x07\x01\0" + bytes(60), "iso": bytes(32769) + b"CD001" + bytes(4000), "xar": b"xar!" + bytes(60),
              "cpio": b"070701" + b"0" * 104, "ar": b"!<arch>\nfood.db/        0           0     0     100644  4         `\nfood",
              "7z": b"7z\xbc\xaf\x27\x1c" + bytes(60), "lrzip": b"LRZI" + bytes(60), "lzop": b"\x89LZO\0\r\n\x1a\n" + bytes(60), "grz": b"GRZipII\0\2\4:)" + bytes(60),
              "compress": b"\x1f\x9d\x90food", "uu": b"begin 644 food.db\n#9F]O\n`\nend\n", "warc": b"WARC/1.0\r\n\r\n", "mtree": b"#mtree\nfood.db type=file\n",
              "shar": b"#!/bin/sh\n# This is a shell archive\n"}
    for name, begin in begins.items():
        for suffix in ("tar", "tar.gz", "zip"):
            install(arena, begin, suffix, content=content, env={"PATH": f"{arena.path('bin')}:{arena.env['PATH']}"}, limit=6)


@attack("names of members contain escape sequences, line feeds, zero bytes and invalid UTF-8", REFUSED)
def odd_names(arena):
    content = arena.content()
    for name in ("food.db\x1b]0;title\x07", "food.db\nmoult: done", "food.db\u202egnp", "\x1b[2J", "food\u0301.db", "x" * 99, "f\u043eod.db"):
        install(arena, tar([("food.db", content), (name, b"x")]), content=content)
        install(arena, tar([(name, content)]), content=content)
    install(arena, tar({"food.db": content, "zzzz": b""}).replace(b"zzzz", b"\xff\xfe\x80z"), content=content)


@attack("extended headers of tar give the database another name, a negative size, or a name of 100 MB", harmless(REFUSED.says))
def extended_headers(arena):
    content = arena.content()

    def record(text):
        length = len(text) + 3
        while len(f"{length} {text}\n".encode()) != length:
            length += 1
        return f"{length} {text}\n".encode()

    def pax(body, kind=b"x"):
        return info("pax", kind, size=len(body)).tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)

    # A reader may ignore a header: the database that it finds is that of the manifest.
    anything = {"limit": 6, "allowed": "store", "expects": None}
    plain = tar({"food.db": content})
    for text in ("path=../../victim/public", f"size={1 << 62}", "size=-1", "size=0", "GNU.sparse.realsize=1099511627776", "GNU.sparse.map=0,99999999999",
                 "linkpath=../x", "path=food.db\0x", "SCHILY.realsize=9999999999999", "hdrcharset=BINARY"):
        install(arena, pax(record(text)) + plain, content=content, **anything)
        install(arena, pax(record(text), b"g") + plain, content=content, **anything)
    install(arena, pax(b"99999999999 path=x\n") + plain, content=content, **anything)
    install(arena, pax(record("path=" + "a/" * 2_000_000 + "food.db")) + plain, content=content, **anything)
    install(arena, info("././@LongLink", b"L", size=1 << 33).tobuf(tarfile.GNU_FORMAT) + plain, content=content, **anything)
    install(arena, pax(record("comment=x")) * 20_000 + plain, content=content, **anything)


@attack("a bundle is cut, has garbage at its end, or a second archive", REFUSED)
def cut(arena):
    content = arena.content()
    whole = tar({"food.db": content})
    for archive in (whole[:600], whole[:512], whole[:len(content)], b"", whole[:512 + len(content)]):
        install(arena, archive, content=content, expects=harmless("archive|bundle|match|truncat|size|member|empty|end"))
    for archive, suffix in ((whole + b"garbage" * 100, "tar"), (whole + tar({"evil.db": content}), "tar"), (gzip.compress(whole) + b"garbage", "tar.gz"),
                            (gzip.compress(whole) + gzip.compress(tar({"evil.db": content})), "tar.gz"), (gzip.compress(whole)[:-6], "tar.gz")):
        install(arena, archive, suffix, content=content)


def zipped(members, flags=0, method=0, central=None):
    """Returns a zip, in which the central directory may differ from the local headers."""
    out, index = io.BytesIO(), b""
    for (name, content), (other, size) in zip(members, central or [(name, len(content)) for name, content in members]):
        at, crc = out.tell(), zlib.crc32(content)
        out.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, flags, method, 0, 33, crc, len(content), len(content), len(name), 0) + name + content)
        index += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 0x0314, 20, flags, method, 0, 33, crc, size, size, len(other), 0, 0, 0, 0, 0o100644 << 16, at) + other
    at = out.tell()
    return out.getvalue() + index + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(index), at, 0)


@attack("the central directory of a zip differs from its local headers, or members are encrypted", REFUSED)
def zip_headers(arena):
    content = arena.content()
    other = arena.content("CREATE TABLE food(id, name); CREATE TABLE evil(x)")
    good = [(b"food.db", content)]
    for archive in (zipped([(b"food.db", other)]), zipped(good, central=[(b"../x.db", len(content))]), zipped([(b"../x.db", content)], central=[(b"food.db", len(content))]),
                    zipped(good, flags=1), zipped(good, method=99), zipped(good, central=[(b"food.db", 1 << 31)]), zipped([(b"food.db", content), (b"food.db", other)]),
                    zipped([(b"food.db", content), (b"../../victim/public", b"x")]), zipped([(b"food.db", content), (b"food.db-wal", b"x" * 100)])):
        install(arena, archive, "zip", content=content, limit=6, expects=harmless())
        arena.keeps("store/food.db", "SELECT count(*) FROM sqlite_schema WHERE name = 'evil'", [(0,)])
        if arena.rows("store/food.db", "SELECT count(*) FROM food") != [(0,)]:
            # A reader may follow the correct directory: the content is that of the manifest.
            arena.moult("rollback", "-q", "--store", "store")
            arena.moult("unhold", "-q", "*", "--store", "store", fine=(0, 1, 2, 3))


@attack("a symbolic link in a zip takes the place of the database", REFUSED)
def zip_link(arena):
    content, made = arena.content(), io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo("food.db")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, arena.path("victim/out.db"))
    install(arena, made.getvalue(), "zip", content=content)


@attack("fields of the manifest about the bundle are wrong, missing, huge or negative", REFUSED, limit=40)
def wrong_manifest(arena):
    content = arena.content()
    archive = tar({"food.db": content})
    changes = [lambda m, k=key, v=value: m["bundle"].update({k: v}) or m for key, value in (
        ("size", 0), ("size", len(archive) + 1), ("size", 1 << 53), ("size", -1), ("size", 1.5), ("sha256", "0" * 64), ("sha256", "x"), ("file", "../x.tar"),
        ("file", "/etc/passwd"), ("file", "x\u0000.tar"), ("file", ""))]
    changes += [lambda m, k=key, v=value: m["databases"]["food"].update({k: v}) or m for key, value in (
        ("size", 0), ("size", 1 << 53), ("size", 1 << 40), ("sha256", "0" * 64), ("member", "other.db"), ("member", "../food.db"), ("path", "../food.db"),
        ("path", ".moult/current"), ("path", "moult.json"), ("path", "/etc/x"))]
    for change in changes:
        install(arena, archive, content=content, change=change)


@attack("a patch of a release claims another size, is damaged, or is made for another base", harmless(), limit=40)
def wrong_patch(arena):
    first = arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(id, name); INSERT INTO food VALUES(1, 'x')")})
    second = arena.release("2.0.0", {"food": ("reference", "CREATE TABLE food(id, name); INSERT INTO food VALUES(1, 'y')")}, options=["--delta-from", first])
    patches = [path for path in pathlib.Path("releases").iterdir() if "patch" in path.name or "delta" in path.name]
    arena.check(patches, "preparation: no patch was made")
    arena.store(first)
    for patch in patches:
        whole = patch.read_bytes()
        for content in (whole[:-1], whole + b"x", bytes(len(whole)), whole[:40] + b"\xff" * 16 + whole[56:], b"", whole[:8] + b"\xff" * 8 + whole[16:]):
            patch.write_bytes(content)
            arena.attack("plan", "--deep", "--store", "store", second, limit=6, memory=400)
        patch.write_bytes(whole[:-1] + b"\0")
    arena.attack("apply", "--store", "store", second, allowed="store")
    arena.check(arena.rows("store/food.db", "SELECT name FROM food") in ([("x",)], [("y",)]), "rows: food.db has other content")


@attack("a patch file for `delta` and a database are cut while they are read", harmless(), limit=40)
def patch_of_cut_file(arena):
    arena.database("old.db", "CREATE TABLE t(x); INSERT INTO t SELECT randomblob(100000) FROM (VALUES(1),(2),(3),(4),(5),(6),(7),(8),(9),(10))")
    arena.sh("cp old.db new.db; sqlite3 new.db \"INSERT INTO t VALUES(randomblob(200000))\"; cp old.db whole.db")
    script = "import os\nwhile True:\n    os.truncate('old.db', 4096); time.sleep(0.002)\n    open('old.db', 'r+b').write(open('whole.db', 'rb').read()); time.sleep(0.01)\n"
    with arena.racing(script, user=None):
        for _ in range(25):
            arena.attack("delta", "old.db", "new.db", "-o", "d.patch", allowed=["d.patch", "old.db", "old.db-*"])
