import MoultArchive
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@Suite(.tags(.thorough)) struct WriterTests {
    private let members = Dictionary(uniqueKeysWithValues: BundleSample.sizes)
    private let contents = Dictionary(uniqueKeysWithValues: BundleSample.members.map { ($0.name, $0.bytes) })

    private func write(_ name: String, in scratch: Scratch, level: Int = 6) throws {
        try BundleSample.write(to: scratch.path(name), level: level)
    }

    @Test(arguments: [
        ("a.tar", "tar -xf a.tar -C out.d"),
        ("a.tar.gz", "gzip -t a.tar.gz && tar -xzf a.tar.gz -C out.d"),
        ("a.tar.xz", "xz -t a.tar.xz && tar -xJf a.tar.xz -C out.d"),
        ("a.zip", "unzip -tq a.zip && unzip -q a.zip -d out.d"),
        ("a.zip", "7z t -bd a.zip && 7z x -bd -oout.d a.zip"),
        ("a.zip", "zip -T a.zip && bsdtar -xf a.zip -C out.d"),
        ("a.zip", "python3 -m zipfile -t a.zip && python3 -m zipfile -e a.zip out.d"),
    ])
    func `moult and other programs can read a written archive`(name: String, command: String) throws {
        let scratch = try Scratch()
        try write(name, in: scratch)
        #expect(scratch.run("mkdir out.d && \(command)") == 0)
        for (name, bytes) in BundleSample.members { #expect(try scratch.read("out.d/\(name)") == bytes) }
        #expect(try scratch.unpack(name, members: members) == contents)
    }

    @Test func `the same members give the same bytes`() throws {
        for name in ["a.tar.gz", "a.tar.xz", "a.zip"] {
            let (one, two) = (try Scratch(), try Scratch())
            try write(name, in: one, level: 1)
            try write(name, in: two, level: 1)
            #expect(try one.read(name) == two.read(name))
        }
    }

    @Test func `zip entries have the specified time in UTC`() throws {
        let scratch = try Scratch()
        try write("a.zip", in: scratch)
        #expect(scratch.run("unzip -Z a.zip food.db") == 0)
        let line = String(decoding: try scratch.read("out"), as: UTF8.self)
        #expect(line.contains("23-Nov-14 22:13 food.db"), "\(line)")
        #expect(line.hasPrefix("-rw-r--r--"))
    }

    @Test(arguments: [("a.tar.xz", 9), ("a.tar.gz", 0), ("a.zip", 10), ("a.tar.zst", 20), ("a.tar.bz2", 6)])
    func `the writer refuses an unsupported format or compression level`(name: String, level: Int) throws {
        let scratch = try Scratch()
        let error = try #require(throws: MoultError.self) { try write(name, in: scratch, level: level) }
        #expect(error.code == .archivePacking)
    }

    /// Files above 4 GiB need the zip64 fields. The content is zeros, so that the archive stays small, but the test
    /// takes a minute.
    @Test func `zip archives can exceed four gibibytes`() throws {
        let scratch = try Scratch()
        let size = (4 << 30) + 5
        let file = try Descriptor(scratch.path("a.zip"), .create)
        let members = [("big.db", size), ("small.db", 5)]
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        try ArchiveWriter(.zip, members: members, modified: 0, level: 1).write {
            try file.write($0)
        } source: { member, write in
            var rest = members[member].1
            while rest > 0 {
                try zeros[..<min(rest, zeros.count)].withUnsafeBytes(write)
                rest -= min(rest, zeros.count)
            }
        }
        #expect(
            scratch.run(
                "python3 -c 'import zipfile; print([i.file_size for i in zipfile.ZipFile(\"a.zip\").infolist()])'") == 0
        )
        #expect(try scratch.read("out") == Array("[\(size), 5]\n".utf8))
        var count = 0
        try scratch.reader("a.zip").read(members: ["big.db": size, "small.db": 5]) { _, part in
            if case .bytes(let bytes) = part { count += bytes.count }
        }
        #expect(count == size + 5)
    }
}
