import MoultArchive
import MoultBasics
import TestSupport
import Testing

/// Archives that common programs have made.
@Suite(.tags(.thorough)) struct ForeignArchiveTests {
    @Test(arguments: [
        "tar -cf a.tar -C in food.db user.db migrations",
        "tar -cf a.tar -C in .",
        "tar -cf a.tar -C in ./food.db ./user.db ./migrations/user/0002-notes.sql",
        "tar --format=ustar -cf a.tar -C in .",
        "tar --format=pax -cf a.tar -C in .",
        "tar --format=gnu -b 2 -cf a.tar -C in .",
        "tar --format=v7 -cf a.tar -C in .",
        "bsdtar -cf a.tar -C in .",
        "bsdtar -cf - -C in . >a.tar",
        "tar --zstd -cf a.tar.zst -C in .",
        "bsdtar --zstd -cf a.tar.zst -C in .",
        "tar -cf - -C in . | zstd -T2 -19 -o a.tar.zst",
        "tar -cf - -C in . | zstd --no-check >a.tzst",
        "tar -cf - -C in . | zstd --adapt >a.tar.zst",
        "tar -cf b -C in . && { head -c 70000 b | zstd; tail -c +70001 b | zstd; } >a.tar.zst",
        "tar -cJf a.tar.xz -C in .",
        "bsdtar -cJf a.txz -C in .",
        "tar -cf - -C in . | xz -8 --check=crc32 >a.tar.xz",
        "tar -cf - -C in . | xz -T2 --block-size=65536 >a.tar.xz",
        "tar -cf b -C in . && { head -c 70000 b | xz; tail -c +70001 b | xz; } >a.tar.xz",
        "tar -czf a.tar.gz -C in .",
        "bsdtar -czf a.tgz -C in .",
        "tar -cf b -C in . && { head -c 70000 b | gzip; tail -c +70001 b | gzip; } >a.tar.gz",
        "tar -cjf a.tar.bz2 -C in .",
        "bsdtar -cjf a.tbz2 -C in .",
        "tar -cf b -C in . && { head -c 70000 b | bzip2; tail -c +70001 b | bzip2; } >a.tar.bz2",
        "bsdtar --bzip2 -cf - -C in . >a.tar.bz2",
        "bsdtar --gzip -cf - -C in . >a.tar.gz && gzip -t a.tar.gz",
        "bsdtar --xz -cf - -C in . >a.tar.xz && xz -t a.tar.xz",
        "cd in && zip -q ../a.zip food.db user.db migrations/user/0002-notes.sql",
        "cd in && zip -q -r ../a.zip .",
        "cd in && zip -q -0 -r ../a.zip .",
        "cd in && zip -q -r - . >../a.zip",
        "cd in && zip -q -fz -r - . >../a.zip",
        "bsdtar --format zip -cf a.zip -C in food.db user.db migrations",
        "bsdtar --format zip --options zip:compression=store -cf a.zip -C in food.db user.db migrations",
        "cd in && 7z a -bd ../a.zip food.db user.db migrations",
        "cd in && 7z a -bd -tzip -mx=9 ../a.zip food.db user.db migrations",
        "cd in && 7z a -bd -tzip -mx=0 ../a.zip food.db user.db migrations",
        "bsdtar --format zip -cf - -C in food.db user.db migrations >a.zip",
        "cd in && python3 -m zipfile -c ../a.zip food.db user.db migrations",
        "cd in && zip -q -r ../b.zip . && printf 'front' | cat - ../b.zip >../a.zip",
        "cd in && zip -q -r ../b.zip . && printf 'front' | cat - ../b.zip >../a.zip && zip -q -A ../a.zip",
        "cd in && zip -q -r - . >../b.zip && printf 'PK00' | cat - ../b.zip >../a.zip",
        "cd in && zip -q -r ../a.zip . && echo 'a comment' | zip -q -z ../a.zip",
        "cd in && zip -q -r ../a.zip . && printf '1\\n2\\n3\\n4\\n5\\n' | zip -q -c ../a.zip",
        "cd in && zip -q -r ../a.zip . && printf '1\\n2\\n3\\n4\\n5\\n6\\n.\\n' | zip -q -cz ../a.zip",
        "cd in && 7z a -bd ../a.7z food.db user.db migrations",
        "cd in && 7z a -bd -mx=9 -ms=off ../a.7z food.db user.db migrations",
        "cd in && 7z a -bd -m0=PPMd ../a.7z food.db user.db migrations",
        "cd in && 7z a -bd -m0=BZip2 -mhc=off ../a.7z food.db user.db migrations",
        "cd in && 7z a -bd -m0=BCJ -m1=LZMA ../a.7z food.db user.db migrations",
        "bsdtar --format 7zip -cf a.7z -C in food.db user.db migrations",
        "cd in && 7z a -bd -tzip -mm=BZip2 ../a.zip food.db user.db migrations",
        "cd in && 7z a -bd -tzip -mm=LZMA ../a.zip food.db user.db migrations",
        "cd in && python3 -m tarfile -c ../a.tar food.db user.db migrations",
    ])
    func `archives that other programs have made are read`(command: String) throws {
        try check(command)
    }

    /// Archives as zipalign and Android's build make them: with padding in the local extra fields, with NULs between
    /// entries, or with both.
    @Test(arguments: ["extra", "field", "gaps", "extra gaps"], [4, 4096, 16_384])
    func `the reader accepts aligned entries`(way: String, alignment: Int) throws {
        let program = """
            import struct, sys
            bytes, out, moved = open("b.zip", "rb").read(), bytearray(), {}
            end = bytes.rindex(b"PK\\5\\6")
            count, length, start = struct.unpack("<HII", bytes[end + 10:end + 20])
            place, entries = start, []
            for _ in range(count):
                packed, = struct.unpack("<I", bytes[place + 20:place + 24])
                name, extra, comment = struct.unpack("<HHH", bytes[place + 28:place + 34])
                offset, = struct.unpack("<I", bytes[place + 42:place + 46])
                entries.append((place, offset, packed))
                place += 46 + name + extra + comment
            for place, offset, packed in sorted(entries, key=lambda entry: entry[1]):
                name, extra = struct.unpack("<HH", bytes[offset + 26:offset + 30])
                size = 30 + name + extra
                if "gaps" in "\(way)": out += b"\\0" * (-len(out) % \(alignment))
                moved[place] = len(out)
                more = b""
                if "extra" in "\(way)": more = b"\\0" * (-(len(out) + size) % \(alignment))
                if "field" in "\(way)":
                    rest = -(len(out) + size + 6) % \(alignment)
                    more = struct.pack("<HHH", 0xd935, rest + 2, \(alignment)) + b"\\0" * rest
                header = bytearray(bytes[offset:offset + size])
                header[28:30] = struct.pack("<H", extra + len(more))
                out += header + more + bytes[offset + size:offset + size + packed]
            directory = bytearray(bytes[start:end])
            for place, offset in moved.items(): directory[place - start + 42:place - start + 46] = struct.pack("<I", offset)
            if "gaps" in "\(way)": out += b"\\0" * (-len(out) % \(alignment))
            tail = bytearray(bytes[end:])
            tail[16:20] = struct.pack("<I", len(out))
            open("a.zip", "wb").write(out + directory + tail)
            """
        try check(
            "cd in && zip -q -r ../b.zip . && cd .. && cat >align.py <<'END' && python3 align.py && unzip -tq a.zip\n\(program)\nEND"
        )
    }

    /// Names that do not fit into the fields of a tar header, in every possible encoding.
    @Test(arguments: [
        "tar --format=gnu -cf a.tar -C in .", "tar --format=pax -cf a.tar -C in .", "bsdtar -cf a.tar -C in .",
        "bsdtar --format=gnutar -cf a.tar -C in .", "cd in && python3 -m tarfile -c ../a.tar *",
        "cd in && zip -q -r ../a.zip .", "cd in && 7z a -bd ../a.7z .",
    ])
    func `the reader accepts long names`(command: String) throws {
        let names = [
            String(repeating: "n", count: 255), "a/b/c/d/e/f/g/h.db",
            "\(String(repeating: "d", count: 255))/\(String(repeating: "f", count: 200)).sql",
        ]
        let scratch = try Scratch()
        for name in names {
            #expect(scratch.run("mkdir -p \"$(dirname in/\(name))\"") == 0)
            try scratch.write("in/\(name)", Array(name.utf8))
        }
        #expect(scratch.run(command) == 0)
        let members = Dictionary(uniqueKeysWithValues: names.map { ($0, $0.utf8.count) })
        let contents = Dictionary(uniqueKeysWithValues: names.map { ($0, Array($0.utf8)) })
        #expect(
            try scratch.unpack(["a.zip", "a.7z"].first(where: command.contains) ?? "a.tar", members: members)
                == contents)
    }

    private func check(_ command: String) throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run(command) == 0)
        let name = try #require(command.firstMatch(of: /a\.[a-z0-9.]+/)).output
        #expect(try scratch.unpack(String(name)) == SampleBundle.contents)
    }

    @Test func `the reader accepts empty members, and an archive without members`() throws {
        let scratch = try Scratch()
        #expect(
            scratch.run("mkdir in && : >in/e.db && tar --zstd -cf a.tar.zst -C in e.db && tar -cf b.tar -T /dev/null")
                == 0)
        #expect(try scratch.unpack("a.tar.zst", members: ["e.db": 0]) == ["e.db": []])
        #expect(try scratch.unpack("b.tar", members: [:]) == [:])
    }
}
