import MoultArchive
import MoultBasics
import Testing

/// Archives as people make them with the programs they have.
@Suite struct ForeignArchiveTests {
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
        "cd in && zip -q ../a.zip food.db user.db migrations/user/0002-notes.sql",
        "cd in && zip -q -r ../a.zip .",
        "cd in && zip -q -0 -r ../a.zip .",
        "cd in && zip -q -r - . >../a.zip",
        "cd in && zip -q -fz -r - . >../a.zip",
        "bsdtar --format zip -cf a.zip -C in food.db user.db migrations",
        "bsdtar --format zip --options zip:compression=store -cf a.zip -C in food.db user.db migrations",
        "cd in && 7z a -bd ../a.zip food.db user.db migrations",
        "cd in && python3 -m zipfile -c ../a.zip food.db user.db migrations",
        "cd in && python3 -m tarfile -c ../a.tar food.db user.db migrations",
    ])
    func givesWhatWasPacked(command: String) throws {
        let scratch = try Scratch()
        try Sample.write(to: scratch)
        #expect(scratch.run(command) == 0)
        let name = try #require(command.firstMatch(of: /a\.[a-z0-9.]+/)).output
        #expect(try scratch.unpack(String(name)) == Sample.contents)
    }

    @Test func emptyMembersAndNoMembers() throws {
        let scratch = try Scratch()
        #expect(
            scratch.run("mkdir in && : >in/e.db && tar --zstd -cf a.tar.zst -C in e.db && tar -cf b.tar -T /dev/null")
                == 0)
        #expect(try scratch.unpack("a.tar.zst", members: ["e.db": 0]) == ["e.db": []])
        #expect(try scratch.unpack("b.tar", members: [:]) == [:])
    }
}
