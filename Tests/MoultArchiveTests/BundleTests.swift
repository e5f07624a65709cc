import MoultArchive
import MoultBasics
import MoultFiles
import TestSupport
import Testing

@Suite struct BundleTests {
    @Test func `the bytes of a bundle do not depend on the number of threads`() throws {
        let scratch = try Scratch()
        func bytes(_ threads: Int, level: Int = 3) throws -> [UInt8] {
            let name = "\(threads)-\(level).tar.zst"
            try BundleSample.write(to: scratch.path(name), threads: threads, level: level)
            return try scratch.read(name)
        }
        let first = try bytes(1)
        for threads in [0, 2, 3, 7] { #expect(try bytes(threads) == first) }
        #expect(try bytes(1, level: 9) != first)
    }

    /// Common programs can unpack a bundle, because it is a plain `.tar.zst`.
    @Test(
        .tags(.thorough),
        arguments: [
            "tar --zstd -xf a.tar.zst -C out.d", "bsdtar -xf a.tar.zst -C out.d",
            "zstd -dc a.tar.zst | tar -x -C out.d",
            "zstd -dc a.tar.zst | python3 -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode=\"r|\").extractall(\"out.d\")'",
            "zstd -dc a.tar.zst >a.tar && 7z x -bd -oout.d a.tar",
        ])
    func `other programs can unpack a bundle`(command: String) throws {
        let scratch = try Scratch()
        try BundleSample.write(to: scratch.path("a.tar.zst"))
        #expect(scratch.run("zstd -t a.tar.zst && mkdir out.d && \(command)") == 0)
        for (name, bytes) in BundleSample.members { #expect(try scratch.read("out.d/\(name)") == bytes) }
        #expect(scratch.run("find out.d -type f | wc -l | grep -qx \(BundleSample.members.count)") == 0)
    }

    @Test func `a bundle reveals nothing about the publisher's machine`() throws {
        let scratch = try Scratch()
        try BundleSample.write(to: scratch.path("a.tar.zst"))
        #expect(scratch.run("TZ=UTC tar --zstd --full-time -tvf a.tar.zst | head -2") == 0)
        let lines = String(decoding: try scratch.read("out"), as: UTF8.self).split(separator: "\n")
        #expect(lines.first == "-rw-r--r-- 0/0               0 2023-11-14 22:13:20 cache.db")
    }

    @Test func `the strict archive reader can read a bundle`() throws {
        let scratch = try Scratch()
        try BundleSample.write(to: scratch.path("a.tar.zst"))
        let contents = try scratch.unpack("a.tar.zst", members: Dictionary(uniqueKeysWithValues: BundleSample.sizes))
        #expect(contents == Dictionary(uniqueKeysWithValues: BundleSample.members.map { ($0.name, $0.bytes) }))
    }

    /// Apps without the command read a bundle in this way.
    @Test(arguments: [1, 2]) func `a bundle is read without libarchive`(threads: Int) throws {
        let scratch = try Scratch()
        try BundleSample.write(to: scratch.path("a.tar.zst"), threads: threads)
        let found = try BundleSample.read(scratch.path("a.tar.zst"))
        #expect(found.map(\.name) == BundleSample.members.map(\.name))
        #expect(found.map(\.bytes) == BundleSample.members.map(\.bytes))
    }

    /// Earlier versions of `pack` wrote each part of the archive as a frame of its own, followed by a table in a skippable frame.
    @Test func `a bundle of several frames is read without libarchive`() throws {
        let scratch = try Scratch()
        try BundleSample.write(to: scratch.path("a.tar"), level: 6)
        #expect(
            scratch.run(
                "split -b 100001 a.tar p. && zstd -q p.* && cat p.*.zst > a.tar.zst && printf '\\136\\052\\115\\030\\004\\000\\000\\000tail' >> a.tar.zst && zstd -qt a.tar.zst"
            ) == 0)
        #expect(try BundleSample.read(scratch.path("a.tar.zst")).map(\.bytes) == BundleSample.members.map(\.bytes))
    }

    @Test(arguments: [0, 8 << 30, (8 << 30) - 1, 1 << 40]) func `other programs can read the headers of a bundle`(
        size: Int
    ) throws {
        let scratch = try Scratch()
        try scratch.write("a.tar", TarHeader.block(name: "big.db", size: size, modified: 1))
        for program in ["tar", "bsdtar"] {
            // The programs list the archive, and then report that the content is missing.
            _ = scratch.run("\(program) --numeric-owner -tvf a.tar")
            #expect(String(decoding: try scratch.read("out"), as: UTF8.self).contains(" \(size) "))
        }
    }
}
