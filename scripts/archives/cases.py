"""The archives of `scripts/archives/run`: valid ones by every program, damaged ones, and ones made to attack."""
import binascii
import io
import lzma
import os
import pathlib
import struct
import subprocess
import tarfile
import zipfile
import zlib

ZSTD, XZ = b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0"
SUFFIXES = {"": "tar", "gzip": "tar.gz", "bzip2": "tar.bz2", "xz": "tar.xz", "zstd": "tar.zst"}
# Commands that make an archive `out` of the files in the working directory, by the suffix of the archive.
VALID = {
    "tar": ["tar --format=gnu -cf out *.db", "tar --format=pax -cf out *.db", "tar --format=v7 -cf out *.db", "tar --format=ustar -b 1 -cf out .", "bsdtar -cf out *.db", "bsdtar -cf - *.db > out",
            "python3 -m tarfile -c out *.db"],
    "tar.gz": ["tar -czf out *.db", "bsdtar -czf out *.db", "bsdtar -czf - *.db > out", "tar -cf t *.db && (head -c 9000 t | gzip; tail -c +9001 t | gzip -1) > out"],
    "tgz": ["tar -czf out *.db"],
    "tar.bz2": ["tar -cjf out *.db", "bsdtar -cjf out *.db", "tar -cf t *.db && (head -c 9000 t | bzip2; tail -c +9001 t | bzip2 -1) > out"],
    "tar.xz": ["tar -cJf out *.db", "bsdtar -cJf out *.db", "tar -cf - *.db | xz -8 --check=crc32 > out", "tar -cf - *.db | xz -T2 --block-size=8192 > out", "tar -cf - *.db | xz -9 > out",
               "tar -cf t *.db && (head -c 9000 t | xz; tail -c +9001 t | xz) > out", "tar -cf - *.db | xz --x86 --lzma2=dict=1MiB > out", "bsdtar -cJf - *.db > out"],
    "tar.zst": ["tar --zstd -cf out *.db", "bsdtar --zstd -cf out *.db", "bsdtar --zstd -cf - *.db > out", "tar -cf - *.db | zstd --long=25 > out", "tar -cf - *.db | zstd --long=26 > out",
                "tar -cf - *.db | zstd --ultra -22 --long=27 > out", "tar -cf - *.db | zstd --no-check > out", "tar -cf t *.db && (head -c 9000 t | zstd; tail -c +9001 t | zstd) > out"],
    "zip": ["zip -q out.zip *.db", "zip -q -0 -X out.zip *.db", "zip -q - *.db > out.zip", "zip -q -fz out.zip *.db", "zip -q -fz - *.db > out.zip", "zip -q -Z bzip2 out.zip *.db", "bsdtar --format zip -cf out.zip *.db",
            "bsdtar --format zip -cf - *.db > out.zip", "bsdtar --format zip --options zip:compression=store -cf - *.db > out.zip", "python3 -m zipfile -c out.zip *.db",
            *(f"7z a -bd -tzip -mm={method} out.zip *.db" for method in ("Copy", "Deflate", "Deflate64", "BZip2", "LZMA", "PPMd")), "zip -q b.zip *.db && printf front | cat - b.zip > out.zip",
            "zip -q b.zip *.db && printf front | cat - b.zip > out.zip && zip -q -A out.zip", "zip -q out.zip *.db && echo comment | zip -q -z out.zip", "mkdir d && mv food.db d && zip -q -r out.zip d *.db",
            "zip -q -P pw out.zip *.db", "7z a -bd -tzip -ppw -mem=AES256 out.zip *.db", "ln -s food.db x.db && zip -q -y out.zip *.db", "zip -q -s 64k out.zip *.db"],
    "7z": [f"7z a -bd {options} out.7z *.db" for options in ("-m0=LZMA", "-m0=LZMA2", "-m0=PPMd", "-m0=BZip2", "-m0=Deflate", "-m0=Copy", "-ms=off", "-mhc=off", "-m0=LZMA2:d=64m", "-ppw", "-ppw -mhe=on", "-m0=Delta:4 -m1=LZMA2",
                                                             "-m0=BCJ -m1=LZMA", "-m0=BCJ2 -m1=LZMA:d=1m -m2=LZMA:d=64k -m3=LZMA:d=64k -mb0:1 -mb0s1:2 -mb0s2:3")]
          + ["ln -s food.db x.db && 7z a -bd -snl out.7z *.db", "mkdir d && mv food.db d && 7z a -bd out.7z d *.db", "bsdtar --format 7zip -cf out.7z *.db", "7z a -bd -sfx out.7z *.db"],
}


def damaged(data):
    """Yields names and contents: the archive cut, changed and extended."""
    size = len(data)
    for cut in (1, 4, 9, 23, 100, 600, size // 4, size // 2, size * 3 // 4):
        yield f"without the last {cut}", data[:-cut] if cut < size else b""
    for number in range(1, 9):
        place = size * number // 9
        yield f"bit of byte {number}/9", data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1:]
        if number % 3 == 0:
            yield f"garbage at {number}/9", data[:place] + bytes(range(200, 240)) + data[place + 40:]
            yield f"missing at {number}/9", data[:place] + data[place + 40:]
            yield f"NUL before {number}/9", data[:place] + b"\0" + data[place:]
    for place in (size - 1, size - 5, size - 8, size - 12):
        yield f"bit of byte {place - size}", data[:place] + bytes([data[place] ^ 1]) + data[place + 1:]
    for name, more in (("NUL", b"\0"), ("4 NULs", bytes(4)), ("512 NULs", bytes(512)), ("2 MiB of NULs", bytes(2 << 20)), ("x", b"x"), ("text", b"garbage after the end"), ("itself", data), ("NULs and text", bytes(512) + b"x")):
        yield f"followed by {name}", data + more


def info(name, kind=tarfile.REGTYPE, link="", **more):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    for key, value in more.items():
        setattr(member, key, value)
    return member


def tar(entries, end=bytes(1024), form=tarfile.GNU_FORMAT):
    """Returns a tar with these entries: a name or a TarInfo, and the content."""
    parts = []
    for member, content in entries:
        member = info(member) if isinstance(member, str) else member
        member.size = member.size or len(content)
        parts += [member.tobuf(form, "utf-8", "surrogateescape"), content, bytes(-len(content) % 512)]
    return b"".join(parts) + end


def pax(text, kind=b"x"):
    length = len(text) + 3
    while len(f"{length} {text}\n".encode()) != length:
        length += 1
    return info("pax", kind), f"{length} {text}\n".encode()


def tars(food, notes, victim):
    """Yields names and contents of tars that are not exactly the two declared files."""
    good = [("food.db", food), ("notes.db", notes)]
    for name in ("../food.db", "a/../food.db", "..", f"{victim}/out.db", "//food.db", "a\\food.db", "food db", "a//food.db", "././food.db", "food.db-wal", "x" * 260, "a/b/c/d/e/f/g/h/i.db", "f\u00f6\u00f6d.db", "f\udcf6d.db",
                 "FOOD.db", "readme.txt", "food.db\n", "\x1b[2J"):
        yield f"an entry {ascii(name)[:40]}", tar(good + [(name, b"x")])
        yield f"only an entry {ascii(name)[:40]}", tar([(name, food), ("notes.db", notes)])
    for first, second in (("food.db", "food.db"), ("food.db", "./food.db"), ("notes.db", "food.db")):
        yield f"{first} and {second}", tar([(first, food), (second, food)])
    yield "doubled, other content first", tar([("food.db", bytes(len(food)))] + good)
    yield "doubled, other content last", tar(good + [("food.db", bytes(len(food)))])
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE, b"S", b"V", b"M", b"X", b"K", b"L"):
        yield f"type {kind}", tar([(info("food.db", kind, f"{victim}/out.db"), b""), good[1]])
        yield f"type {kind} in addition", tar(good + [(info("more", kind, f"{victim}/out.db"), b"")])
    yield "a file behind a link", tar([(info("d", tarfile.SYMTYPE, victim), b""), ("d/out.db", b"x")] + good)
    yield "a missing file", tar(good[:1])
    yield "no file", tar([])
    yield "no end", tar(good, end=b"")
    yield "half an end", tar(good, end=bytes(512))
    yield "a size of 8 GiB", tar([(info("food.db", size=8 << 30), food), good[1]])
    yield "a shorter file", tar([("food.db", food[:-1]), good[1]])
    yield "a longer file", tar([("food.db", food + b"x"), good[1]])
    yield "another content", tar([("food.db", food[:-1] + b"x"), good[1]])
    yield "twice in a row", tar(good) + tar(good)
    yield "a second archive behind the padding", tar(good) + bytes(8192) + tar([("more", b"x")])
    for text in ("path=../out.db", f"size={1 << 62}", "size=-1", "size=0", "GNU.sparse.realsize=1099511627776", "linkpath=../x", "path=more.db", "hdrcharset=BINARY", "comment=x"):
        yield f"pax {text}", tar([pax(text)] + good, form=tarfile.USTAR_FORMAT)
        yield f"global pax {text}", tar([pax(text, b"g")] + good, form=tarfile.USTAR_FORMAT)


def zipped(entries, comment=b"", names=None, front=b"", gap=b"", count=None, hidden=(), crc=0, sizes=0):
    """Returns a zip byte by byte. Each entry has a name, content and fields that differ: flags, method, attributes, packed, offset.
    `names` are the names in the directory, `hidden` entries are not listed there, `crc` and `sizes` are added to the values there."""
    data, directory, listed = bytearray(front), b"", 0
    for number, (name, content, more) in enumerate([(*entry, {})[:3] for entry in entries]):
        method = more.get("method", 8)
        packer = zlib.compressobj(9, wbits=-15)
        packed = more.get("packed", packer.compress(content) + packer.flush() if method == 8 else content)
        fields = struct.pack("<HHHHIII", more.get("flags", 0), method, 0, 33, binascii.crc32(content), len(packed), more.get("size", len(content)))
        offset = more.get("offset", len(data) - len(front))
        if "offset" not in more:
            data += b"PK\3\4" + struct.pack("<H", 20) + fields + struct.pack("<HH", len(name), 0) + name + packed + gap
        if number in hidden:
            continue
        listed += 1
        fields = struct.pack("<HHHHIII", more.get("flags", 0), method, 0, 33, (binascii.crc32(content) + crc) % 2**32, len(packed), more.get("size", len(content)) + sizes)
        shown = names[number] if names else name
        directory += b"PK\1\2" + struct.pack("<BBH", 20, 3, 20) + fields + struct.pack("<HHHHHII", len(shown), 0, 0, 0, 0, more.get("mode", 0o100644) << 16, offset) + shown
    return bytes(data) + directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count or listed, count or listed, len(directory), len(data) - len(front), len(comment)) + comment


def zips(food, notes, victim):
    good, evil = [(b"food.db", food), (b"notes.db", notes)], (b"evil.db", b"evil")
    other = zipped([(b"food.db", food[:-1] + b"x"), evil])
    yield "made by hand", zipped(good)
    for name in (b"../food.db", b"a/../food.db", victim.encode() + b"/out.db", b"a\\food.db", b"food db", b"a//food.db", b"./food.db", b"food.db-wal", b"f\xc3\xb6d.db", b"f\xf6d.db", b"FOOD.db", b"readme.txt", b"food.db\n", b"d/", b"__MACOSX/._food.db"):
        yield f"an entry {name}", zipped(good + [(name, b"" if name == b"d/" else b"x")])
        yield f"only an entry {name}", zipped([(name, food), good[1]])
    yield "doubled", zipped(good + good[:1])
    yield "doubled, other content", zipped(good + [(b"food.db", bytes(len(food)))])
    yield "one listed twice", zipped(good + [(b"food.db", food, {"offset": 0})])
    yield "two names for one entry", zipped(good, names=[b"food.db", b"evil.db"])
    yield "another name inside", zipped([(b"evil.db", food), good[1]], names=[b"food.db", b"notes.db"])
    yield "an entry that is not listed", zipped(good + [evil], hidden=(2,))
    yield "an entry that is not listed, first", zipped([evil] + good, hidden=(0,))
    yield "all at one place", zipped(good + [(b"more.db", food, {"offset": 0})])
    yield "an entry in an entry", zipped([(b"food.db", zipped(good), {"method": 0}), (b"notes.db", notes, {"offset": 37})])
    yield "an entry in front", zipped([evil])[:50] + zipped(good)
    yield "an archive in front", other + zipped(good)
    yield "an archive behind", zipped(good) + other
    yield "an archive in the comment", zipped(good, comment=other)
    yield "a long comment", zipped(good, comment=b"x" * 65535)
    yield "a comment that is too long", zipped(good, comment=b"x" * 100)[:-1]
    yield "bytes between entries", zipped(good, gap=b"xyz")
    yield "NULs between entries", zipped(good, gap=bytes(3))
    yield "a program in front", zipped(good, front=b"#!/bin/sh\n" * 1000)
    for count in (1, 3, 65535):
        yield f"a count of {count}", zipped(good, count=count)
    yield "a wrong checksum in the directory", zipped(good, crc=1)
    yield "a wrong size in the directory", zipped(good, sizes=1)
    for mode in (0o120777, 0o020666, 0o060666, 0o010644, 0o140755, 0o040755):
        yield f"mode {mode:o}", zipped([(b"food.db", food, {"mode": mode}), good[1]])
    for flags in (1, 8, 0x20, 0x40, 0x2000, 0x800):
        yield f"flags {flags:x}", zipped([(b"food.db", food, {"flags": flags}), good[1]])
    for method in (1, 6, 9, 12, 14, 20, 93, 95, 97, 98, 99):
        yield f"method {method}", zipped([(b"food.db", food, {"method": method}), good[1]])
    yield "stored", zipped([(b"food.db", food, {"method": 0}), good[1]])
    yield "more than its size", zipped([(b"food.db", food, {"size": 10}), good[1]])
    yield "nothing after a size", zipped([(b"food.db", food, {"packed": b""}), good[1]])
    yield "data after the deflated data", zipped([(b"food.db", food, {"packed": zlib.compress(food, wbits=-15) + b"xyz"}), good[1]])
    yield "a directory with content", zipped(good + [(b"./", b"x", {"mode": 0o040755})])
    yield "a directory", zipped(good + [(b"./", b"", {"mode": 0o040755})])
    yield "100,000 empty entries", zipped([(b"%d" % number, b"", {"method": 0}) for number in range(60_000)])
    bomb = zlib.compressobj(9, wbits=-15)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(1024)) + bomb.flush()
    yield "a bomb of 1 GiB", zipped([(b"food.db", bytes(len(food)), {"packed": packed}), good[1]])
    yield "a bomb of 1 GiB with its size", zipped([(b"food.db", b"", {"packed": packed, "size": 1 << 30}), good[1]])


def number7(value):
    """Returns a number as in the headers of 7z."""
    for more in range(8):
        if value < 1 << 7 * (more + 1):
            return bytes([(0xFF00 >> more & 0xFF) | value >> 8 * more]) + (value & (1 << 8 * more) - 1).to_bytes(more, "little")
    return b"\xff" + value.to_bytes(8, "little")


def seven(entries, dictionary=1 << 16, size=None, packed=None, crc=0, count=None, behind=b"", attributes=None):
    """Returns a 7z with one LZMA1 stream for all entries, byte by byte."""
    whole = b"".join(content for _, content in entries)
    raw = lzma.compress(whole, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16}]) if packed is None else packed
    sizes = b"".join(number7(len(content)) for _, content in entries[:-1])
    digests = b"\x0a\x01" + b"".join(struct.pack("<I", (binascii.crc32(content) + crc) % 2**32) for _, content in entries)
    streams = (b"\4\6" + number7(0) + number7(1) + b"\x09" + number7(len(raw)) + b"\0" + b"\7\x0b" + number7(1) + b"\0" + number7(1) + b"\x23\3\1\1\5\x5d" + struct.pack("<I", dictionary)
               + b"\x0c" + number7(len(whole) if size is None else size) + b"\0" + b"\x08\x0d" + number7(len(entries)) + (b"\x09" + sizes if sizes else b"") + digests + b"\0\0")
    names = b"\0" + b"".join(name.encode("utf-16-le", "surrogatepass") + b"\0\0" for name, _ in entries)
    modes = b"" if attributes is None else b"\x15" + number7(2 + 4 * len(entries)) + b"\1\0" + b"".join(struct.pack("<I", mode << 16 | 0x8000) for mode in attributes)
    header = b"\1" + streams + b"\5" + number7(count or len(entries)) + b"\x11" + number7(len(names)) + names + modes + b"\0\0"
    start = struct.pack("<QQI", len(raw), len(header), binascii.crc32(header))
    return b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<I", binascii.crc32(start)) + start + raw + header + behind


def sevens(food, notes, victim):
    good = [("food.db", food), ("notes.db", notes)]
    yield "made by hand", seven(good)
    for name in ("../food.db", f"{victim}/out.db", "a\\food.db", "food db", "a//food.db", "./food.db", "food.db-wal", "f\u00f6d.db", "f\ud800d.db", "FOOD.db", "readme.txt", "food.db", ""):
        yield f"an entry {ascii(name)}", seven(good + [(name, b"x")])
        yield f"only an entry {ascii(name)}", seven([(name, food), good[1]])
    for dictionary in (1 << 24, 1 << 25, 1 << 26, 1 << 28, 1 << 30, (1 << 32) - 1):
        yield f"a dictionary of {dictionary}", seven(good, dictionary=dictionary)
    for mode in (0o120777, 0o020666, 0o010644, 0o040755):
        yield f"mode {mode:o}", seven(good, attributes=[mode, 0o100644])
    yield "a wrong checksum", seven(good, crc=1)
    yield "bytes behind", seven(good, behind=b"x")
    yield "an archive behind", seven(good, behind=seven(good))
    yield "a large size", seven(good, size=1 << 40)
    yield "a small size", seven(good, size=10)
    for count in (1, 3, 1 << 20, 1 << 40):
        yield f"a count of {count}", seven(good, count=count)
    yield "a bomb of 1 GiB", seven([("food.db", food)], size=1 << 30,
                                   packed=lzma.compress(bytes(1 << 28), format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16}]))
    yield "nothing", b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<I", binascii.crc32(bytes(20))) + bytes(20)


def packed(data, compression):
    return subprocess.run([compression, "-c", "-q"], input=data, capture_output=True, check=True).stdout if compression else data


def bombs(food, notes):
    begin = info("food.db", size=8 << 30).tobuf(tarfile.GNU_FORMAT)
    for compression, suffix in SUFFIXES.items():
        if compression:
            zeros = packed(bytes(64 << 20), compression)
            yield suffix, "a file of 8 GiB", packed(begin, compression) + zeros * 8
            yield suffix, "a declared size, then 512 MiB", packed(tar([("food.db", food), ("notes.db", notes)], end=b""), compression) + zeros * 8
            yield suffix, "a million entries", packed(info("x").tobuf(tarfile.USTAR_FORMAT) * 100_000, compression) * 10
            yield suffix, "two compressions", packed(packed(tar([("food.db", food), ("notes.db", notes)]), compression), compression)
            yield suffix, "nothing", packed(b"", compression)
            yield suffix, "one byte", packed(b"x", compression)
            yield suffix, "empty parts in front", packed(b"", compression) * 10_000 + packed(tar([("food.db", food), ("notes.db", notes)]), compression)
        yield suffix, "an empty file", b""
        yield suffix, "zeros", packed(bytes(10240), compression)
    for window in (0x68, 0x70, 0x78, 0x80, 0xA8, 0xF0, 0xFF):
        yield "tar.zst", f"a window of {window:x}", ZSTD + bytes([0, window]) + (1 | 4 << 3).to_bytes(3, "little") + b"food"
    raw = lzma.compress(tar([("food.db", food), ("notes.db", notes)]), format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}])
    for dictionary in (26, 28, 30, 34, 40):
        header = bytes([2, 0, 0x21, 1, dictionary]) + bytes(3)
        yield "tar.xz", f"a dictionary of code {dictionary}", XZ + b"\0" + struct.pack("<I", zlib.crc32(b"\0\0")) + header + struct.pack("<I", zlib.crc32(header)) + raw
    plain = packed(tar([("food.db", food), ("notes.db", notes)]), "gzip")
    yield "tar.gz", "a name of 60 MB", b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 60_000_000 + b"\0" + plain[10:]
    for name, start in (("cab", b"MSCF"), ("rar", b"Rar!\x1a\x07\x01\0"), ("xar", b"xar!"), ("ar", b"!<arch>\n"), ("cpio", b"070701"), ("lrzip", b"LRZI\0\6"), ("lzop", b"\x89LZO\0\r\n\x1a\n"), ("compress", b"\x1f\x9d\x90"), ("uu", b"begin 644 food.db\n")):
        for suffix in ("tar", "tar.gz", "zip", "7z"):
            yield suffix, f"the beginning of {name}", start + b" " * 4096


def written(name, suffix, data, to):
    path = to / f"{name.replace(str(to.parent), 'ROOT').replace('/', '|')}.{suffix}"
    path.write_bytes(data)


def make(files, to, victim):
    """Writes every archive that is made here to the directory `to`; `files` has the declared files."""
    food, notes = ((files / name).read_bytes() for name in ("food.db", "notes.db"))
    for suffix, commands in VALID.items():
        for number, command in enumerate(commands):
            place = to / "work"
            subprocess.run(["rm", "-rf", place], check=True)
            place.mkdir()
            for name in ("food.db", "notes.db"):
                (place / name).write_bytes((files / name).read_bytes())
                os.utime(place / name, (1_700_000_000, 1_700_000_000))
            subprocess.run(["sh", "-c", f"{{ {command}; }} > /dev/null 2>&1 || true"], cwd=place, check=True)
            found = [path for path in (place / "out", place / f"out.{suffix}") if path.exists()]
            if not found:
                raise SystemExit(f"{command} has written nothing")
            data = found[0].read_bytes()
            written(f"valid {suffix} {number}", suffix, data, to)
            if number < 4 or suffix in ("zip", "7z"):
                for name, content in damaged(data):
                    written(f"valid {suffix} {number} {name}", suffix, content, to)
            subprocess.run(["rm", "-rf", place], check=True)
    for name, data in tars(food, notes, victim):
        for compression in ("", "gzip", "zstd"):
            written(f"tar with {name}", SUFFIXES[compression], packed(data, compression), to)
    for name, data in zips(food, notes, victim):
        written(f"zip with {name}", "zip", data, to)
    for name, data in sevens(food, notes, victim):
        written(f"7z with {name}", "7z", data, to)
    for suffix, name, data in bombs(food, notes):
        written(f"hostile {name}", suffix, data, to)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("food.db", "notes.db"):
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write((files / name).read_bytes())
    written("zip64", "zip", data.getvalue(), to)
    for name in ("food.db", "sparse.db"):
        sparse = to / name
        with open(sparse, "wb") as stream:
            stream.write(food)
            stream.truncate(1 << 30 if name == "sparse.db" else len(food))
        for form in ("gnu", "pax"):
            subprocess.run(["tar", f"--format={form}", "-S", "-cf", to / f"sparse {form} {name}.tar", "-C", to, name], check=True)
        sparse.unlink()
