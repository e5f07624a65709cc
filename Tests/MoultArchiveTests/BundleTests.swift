import MoultArchive
import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

@Suite struct BundleTests {
    @Test func `the bytes of a bundle do not depend on the number of threads`() throws {
        let scratch = try Scratch()
        let frames = try BundleSample.write(to: scratch.path("1"), threads: 1)
        let bytes = try scratch.read("1")
        for threads in [2, 3, 7] {
            #expect(try BundleSample.write(to: scratch.path("\(threads)"), threads: threads) == frames)
            #expect(try scratch.read("\(threads)") == bytes)
        }
        #expect(try BundleSample.write(to: scratch.path("level"), level: 9) != frames)
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

    @Test(arguments: [1, 2, 4]) func `a bundle is read in parallel`(threads: Int) throws {
        let scratch = try Scratch()
        let frames = try BundleSample.write(to: scratch.path("a.tar.zst"))
        let layout = try BundleSample.layout()
        let pieces = Pieces(layout)
        let path = scratch.path("a.tar.zst")
        let reader = try BundleReader(path, layout: layout, frames: frames) {
            try FrameReader(Descriptor(path, .read), frames: frames)
        }
        try reader.read(threads: threads) { pieces.add($0) }
        #expect(pieces.all == BundleSample.members.map(\.bytes))
        let contentFrames = layout.members.flatMap(\.frames)
        #expect(pieces.frames.withLock { $0.sorted() } == contentFrames)
    }

    @Test func `the content of each member has its own frames`() throws {
        let layout = try BundleSample.layout()
        #expect(layout.frameSize == 1 << 20)
        // The frames contain, in order: two headers; food in four frames; padding and a header; notes; padding and a
        // header; pantry; a header and the end of the archive.
        #expect(
            layout.contentSizes == [1024, 1 << 20, 1 << 20, 1 << 20, 6, 506 + 512, 26, 486 + 512, 1 << 20, 512 + 1024])
        #expect(layout.members.map(\.frames) == [0..<0, 1..<5, 6..<7, 8..<9, 9..<9])
    }

    @Test func `the bundle reader returns the frames with their content`() throws {
        let scratch = try Scratch()
        let seen = Mutex<[Int: Int]>([:])
        let frames = try BundleSample.write(to: scratch.path("a")) { index, bytes in
            let sum = bytes.reduce(0) { $0 &+ Int($1) }
            seen.withLock { $0[index] = sum }
        }
        #expect(seen.withLock { $0.count } == frames.count)
        #expect(seen.withLock { $0[6] } == BundleSample.members[2].bytes.reduce(0) { $0 + Int($1) })
    }

    /// The seek table follows zstd's seekable format 0.1.0.
    @Test func `a bundle ends with a seek table in the zstd format`() throws {
        let scratch = try Scratch()
        let frames = try BundleSample.write(to: scratch.path("a"))
        let bytes = try scratch.read("a")
        func number(_ place: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << ($1 * 8) } }
        #expect(number(bytes.count - 4) == 0x8f92_eab1)
        #expect(bytes[bytes.count - 5] == 0)
        #expect(number(bytes.count - 9) == frames.count)
        let start = bytes.count - 9 - 8 * frames.count - 8
        #expect(number(start) == 0x184d_2a5e)
        #expect(number(start + 4) == bytes.count - start - 8)
        var place = 0
        for (index, frame) in frames.enumerated() {
            #expect(number(start + 8 + 8 * index) == frame.packedSize)
            #expect(number(start + 12 + 8 * index) == frame.contentSize)
            #expect(number(place) == 0xfd2f_b528)
            place += frame.packedSize
        }
        #expect(place == start)
        #expect(try SeekTable.read(Descriptor(scratch.path("a"), .read)) == frames)
    }

    @Test func `the strict reader detects the layout of a bundle`() throws {
        let scratch = try Scratch()
        let frames = try BundleSample.write(to: scratch.path("a.tar.zst"))
        let found = try #require(try BundleLayout.find(in: Descriptor(scratch.path("a.tar.zst"), .read)))
        #expect(found.frames == frames)
        #expect(found.layout == (try BundleSample.layout()))
    }

    @Test(
        .tags(.thorough),
        arguments: [
            "tar -C in -c . | zstd >a", "bsdtar --zstd -C in -cf a .", "zip -qr a.zip in && mv a.zip a", ": >a",
            "tar -C in -cf a .",
        ])
    func `the strict reader detects no layout in other archives`(command: String) throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run(command) == 0)
        #expect(try BundleLayout.find(in: Descriptor(scratch.path("a"), .read)) == nil)
        #expect(try SeekTable.read(Descriptor(scratch.path("a"), .read)) == nil)
    }

    /// A small bundle has at least 16 frames and a large bundle at most 4,096; in between, each frame has 4 MiB.
    // Without the type, the compiler would take ten seconds for each use of these numbers.
    @Test(
        arguments: [
            (0, 1 << 20), (16 << 20, 1 << 20), (40 << 20, 3 << 20), (200 << 20, 4 << 20), (15 << 30, 4 << 20),
            (100 << 30, 26 << 20),
        ] as [(Int, Int)])
    func `larger members get larger frames`(size: Int, frameSize: Int) throws {
        let layout = try BundleLayout(members: [("big.db", size), ("small.db", 5)], modified: 0)
        #expect(layout.frameSize == frameSize)
        #expect(layout.contentSizes.count <= 4096)
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
