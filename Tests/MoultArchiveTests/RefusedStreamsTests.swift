import MoultArchive
import MoultBasics
import MoultLibc
import TestSupport
import Testing

/// Files that are truncated, padded or damaged, need too much memory, or contradict their names.
@Suite(.tags(.thorough)) struct RefusedStreamsTests {
    static let packings = [
        "a.tar": "tar -b 2 -cf a.tar -C in .",
        "a.tar.zst": "tar --zstd -cf a.tar.zst -C in .",
        "frames.tar.zst": "tar -cf b -C in . && split -b 60000 b p. && zstd -q p.* && cat p.*.zst >frames.tar.zst",
        "a.tar.xz": "tar -cJf a.tar.xz -C in .",
        "a.tar.gz": "tar -czf a.tar.gz -C in .",
        "a.tar.bz2": "tar -cjf a.tar.bz2 -C in .",
        "a.7z": "cd in && 7z a -bd ../a.7z food.db user.db migrations",
        "a.zip": "cd in && zip -q -r ../a.zip .",
        "stream.zip": "cd in && zip -q -r - . >../stream.zip",
    ]

    private func packed(_ name: String) throws -> (scratch: Scratch, bytes: [UInt8]) {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run(try #require(Self.packings[name])) == 0)
        #expect(try scratch.unpack(name) == SampleBundle.contents)
        return (scratch, try scratch.read(name))
    }

    /// The archive is truncated at many lengths, at each of the last bytes, and to an empty file.
    @Test(arguments: packings.keys.sorted()) func `an archive that is truncated anywhere is refused`(name: String)
        throws
    {
        let (scratch, bytes) = try packed(name)
        let steps = Array(stride(from: 0, to: bytes.count, by: max(1, bytes.count / 150)))
        for length in steps + Array(max(0, bytes.count - 40)..<bytes.count) {
            try scratch.write(name, Array(bytes[..<length]))
            let error = try scratch.refusal(name)
            let codes: [MoultError.Code] = [.archiveCut, .archiveDamaged, .archiveKind, .archiveMissing]
            #expect(codes.contains(error.code), "\(length) of \(bytes.count): \(error)")
        }
    }

    @Test(arguments: packings.keys.sorted(), [[0x00], [0x78], [0, 0, 0, 0], Array("garbage behind".utf8)])
    func `bytes after the end of an archive are refused`(name: String, garbage: [UInt8]) throws {
        let (scratch, bytes) = try packed(name)
        try scratch.write(name, bytes + garbage)
        let isPadding = garbage.allSatisfy { $0 == 0 }
        if isPadding && [".gz", ".bz2", ".zip"].contains(where: name.hasSuffix)
            || garbage == [0, 0, 0, 0] && name.hasSuffix(".xz")
        {
            #expect(try scratch.unpack(name) == SampleBundle.contents)
            return
        }
        let error = try scratch.refusal(name)
        let codes: [MoultError.Code] = [.archiveGarbage, .archiveCut, .archiveDamaged]
        #expect(codes.contains(error.code), "\(error)")
    }

    /// Most programs ignore a second tar archive after the end of the first.
    @Test func `a second archive after the first is refused`() throws {
        let (scratch, bytes) = try packed("a.tar")
        try scratch.write("a.tar", bytes + bytes)
        let error = try scratch.refusal("a.tar")
        #expect(error.code == .archiveGarbage)
        #expect(error.why == "unexpected data after the end of the tar archive")
    }

    @Test func `endless padding is refused`() throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run("{ tar -cf - -C in .; head -c 100M /dev/zero; } | zstd -o a.tar.zst") == 0)
        #expect(try scratch.refusal("a.tar.zst").code == .archiveGarbage)
    }

    /// bsdtar pads its output to a pipe with NULs; zstd itself refuses such padding, as other formats do not.
    @Test func `the padding of bsdtar after zstd is refused`() throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run("bsdtar --zstd -cf - -C in . >a.tar.zst && ! zstd -t a.tar.zst") == 0)
        let error = try scratch.refusal("a.tar.zst")
        #expect(error.code == .archiveGarbage)
        #expect(
            error.why == "it is padded with NUL bytes after its zstd stream, as bsdtar does when it writes to a pipe")
        #expect(
            error.now?.description == "Pack it again with \"bsdtar -f FILE\", or let zstd compress the output of tar.")
    }

    /// NULs after gzip are accepted up to the end of the file and up to 1 MiB.
    @Test func `after a gzip stream, only up to 1 MiB of NULs is accepted`() throws {
        let (scratch, bytes) = try packed("a.tar.gz")
        for count in [1, 3, 512, 300_000, 1 << 20] {
            try scratch.write("a.tar.gz", bytes + [UInt8](repeating: 0, count: count))
            #expect(try scratch.unpack("a.tar.gz") == SampleBundle.contents)
        }
        for garbage in [[0, 1], [0, 0, 0x1f, 0x8b], [UInt8](repeating: 0, count: 300_000) + [7], [0] + bytes] {
            try scratch.write("a.tar.gz", bytes + garbage)
            let error = try scratch.refusal("a.tar.gz")
            #expect(error.code == .archiveGarbage)
            #expect(error.why == "unexpected data after the end of its gzip stream")
        }
        try scratch.write("a.tar.gz", bytes + [UInt8](repeating: 0, count: (1 << 20) + 1))
        #expect(try scratch.refusal("a.tar.gz").why == "unexpected data after the end of its gzip stream")
    }

    /// The xz format allows NULs in groups of four between and after streams.
    @Test func `after an xz stream, only NULs in groups of four are accepted`() throws {
        let (scratch, bytes) = try packed("a.tar.xz")
        for count in 0..<9 {
            try scratch.write("a.tar.xz", bytes + [UInt8](repeating: 0, count: count))
            let isAccepted = scratch.run("xz -t a.tar.xz") == 0
            #expect(isAccepted == (count % 4 == 0))
            #expect((try? scratch.unpack("a.tar.xz")) == (isAccepted ? SampleBundle.contents : nil))
        }
    }

    /// A bit is changed anywhere in the content, for every format with a checksum that libarchive verifies. For gzip, only the digests
    /// of the release show such a change.
    @Test(arguments: ["a.tar.zst", "a.tar.xz", "a.tar.bz2", "a.zip", "a.7z"])
    func `an archive with a changed bit is refused`(name: String) throws {
        let (scratch, bytes) = try packed(name)
        // In all formats, the middle of the file is content.
        for place in stride(from: bytes.count / 4, to: bytes.count * 3 / 4, by: bytes.count / 40) {
            var damaged = bytes
            damaged[place] ^= 0x10
            try scratch.write(name, damaged)
            let error = try scratch.refusal(name)
            #expect(error.code != .archiveKind, "\(error)")
        }
    }

    /// Each member is in a separate frame, and the archive ends between frames: every decoder and tar see a regular
    /// end.
    @Test(arguments: [1, 2]) func `an archive that is truncated between frames is refused`(frames: Int) throws {
        let scratch = try Scratch()
        for (name, content) in [("food.db", "food"), ("user.db", "me")] {
            try scratch.write(name, TarBytes.file(name, Array(content.utf8)))
        }
        try scratch.write("z", TarBytes.end)
        let members = ["food.db": 4, "user.db": 2]
        #expect(scratch.run("zstd -q food.db user.db z && cat food.db.zst user.db.zst z.zst >a.tar.zst") == 0)
        #expect(try scratch.unpack("a.tar.zst", members: members).count == 2)
        let parts = ["food.db.zst", "user.db.zst"][..<frames].joined(separator: " ")
        #expect(scratch.run("cat \(parts) >a.tar.zst && zstd -t a.tar.zst && tar --zstd -tf a.tar.zst") == 0)
        #expect([.archiveCut, .archiveMissing].contains(try scratch.refusal("a.tar.zst", members: members).code))
        // With the end marker of tar after the first frames, only the missing members show that the archive is truncated.
        #expect(scratch.run("cat food.db.zst z.zst >a.tar.zst") == 0)
        #expect(
            try scratch.refusal("a.tar.zst", members: members).why == "it does not contain the declared \"user.db\"")
    }

    @Test func `windows of up to 32 MiB are accepted`() throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run("tar -cf - -C in . | zstd --long=25 -o a.tar.zst") == 0)
        #expect(try scratch.unpack("a.tar.zst") == SampleBundle.contents)
    }

    @Test(arguments: [
        ("tar -cf - -C in . | zstd --ultra -22 --long=27 -o a.tar.zst", "its zstd window", "--long"),
        ("tar -cf - -C in . | zstd --long=26 -o a.tar.zst", "its zstd window", "--long"),
        ("tar -cf - -C in . | xz -9 >a.tar.xz", "its xz dictionary", "xz -8"),
    ])
    func `content that needs too much memory is refused`(command: String, what: String, now: String) throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run(command) == 0)
        let error = try scratch.refusal(command.hasSuffix("xz") ? "a.tar.xz" : "a.tar.zst")
        #expect(error.code == .archiveMemory)
        #expect(error.why == "\(what) needs more than the 64 MiB of memory that unpacking may use")
        #expect(error.now?.description.contains(now) == true)
    }

    /// The content of a 7z archive, and of its header, is compressed by a method with a dictionary of any size.
    @Test func `a 7z archive that needs too much memory is refused`() throws {
        let scratch = try Scratch()
        let size = 70 << 20
        #expect(scratch.run("truncate -s \(size) food.db && 7z a -bd -mx=1 -m0=LZMA2 -md=16m a.7z food.db") == 0)
        #expect(try scratch.unpack("a.7z", members: ["food.db": size])["food.db"]?.count == size)
        #expect(scratch.run("rm a.7z && 7z a -bd -mx=1 -m0=LZMA2 -md=64m a.7z food.db") == 0)
        let error = try scratch.refusal("a.7z", members: ["food.db": size])
        #expect(error.code == .archiveMemory)
        #expect(error.why == "its dictionary needs more than the 64 MiB of memory that unpacking may use")
    }

    /// A sparse entry of 1 TiB in a file of a few hundred bytes.
    @Test func `a tebibyte that is compressed to a few bytes is refused`() throws {
        let scratch = try Scratch()
        #expect(scratch.run("truncate -s 1T food.db && tar -S -czf a.tar.gz food.db") == 0)
        #expect(try scratch.read("a.tar.gz").count < 300)
        #expect(try scratch.refusal("a.tar.gz", members: ["food.db": 1 << 40]).code == .archiveEntryKind)
        #expect(try scratch.refusal("a.tar.gz", members: ["food.db": 100]).code == .archiveEntryKind)
    }

    /// The reader reads only one byte more of an endless member than declared.
    @Test func `the reader stops when a member is larger than declared`() throws {
        let scratch = try Scratch()
        #expect(
            scratch.run("head -c 300M /dev/zero >food.db && tar --zstd -cf a.tar.zst food.db && zip -q a.zip food.db")
                == 0)
        for name in ["a.tar.zst", "a.zip"] {
            let error = try scratch.refusal(name, members: ["food.db": 1000])
            #expect(error.code == .archiveSize)
            #expect(error.why == "its member \"food.db\" has 314572800 bytes instead of 1000")
        }
    }

    @Test(arguments: [
        ("a.tar.zst", "a.tar.gz", "tar archive compressed with gzip", "data compressed with zstd"),
        ("a.tar.gz", "a.tar.zst", "tar archive compressed with zstd", "data compressed with gzip"),
        ("a.tar.xz", "a.tar", "tar archive", "data compressed with xz"),
        ("a.tar", "a.tar.xz", "tar archive compressed with xz", "a tar archive"),
        ("a.tar", "a.zip", "zip archive", "a tar archive"),
        ("a.zip", "a.tar", "tar archive", "a zip archive"),
    ])
    func `an archive whose format contradicts its name is refused`(
        packing: String, name: String, kind: String, looks: String
    ) throws {
        let (scratch, bytes) = try packed(packing)
        try scratch.write(name, bytes)
        let error = try scratch.refusal(name)
        #expect(error.code == .archiveKind)
        #expect(error.why == "it is not a \(kind), although its name says so; it looks like \(looks)")
    }

    /// Formats that libarchive could read, with an allowed name.
    @Test(arguments: ["cpio", "ar", "shar", "xar", "mtree", "raw", "warc"])
    func `unsupported archive formats are refused`(format: String) throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        // The archive has a single file, because the raw format does not allow more.
        #expect(scratch.run("bsdtar --format \(format) -cf a.tar -C in food.db") == 0)
        for name in ["a.zip", "a.tar.zst", "a.tar"] {
            #expect(scratch.run("test \(name) = a.tar || cp a.tar \(name)") == 0)
            #expect(try scratch.refusal(name).code == .archiveKind)
        }
    }

    /// A compressed file in a compressed file, and a compressed tar whose name has no extension for compression.
    @Test func `an archive that is compressed twice is refused`() throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run("tar -czf b.tar.gz -C in . && zstd -q b.tar.gz -o a.tar.zst && cp b.tar.gz a.tar") == 0)
        for name in ["a.tar.zst", "a.tar"] {
            let error = try scratch.refusal(name)
            #expect(error.code == .archiveKind)
        }
    }

    /// The first bytes of formats whose readers crash, loop or start programs in some versions of libarchive.
    @Test(arguments: [
        Array("MSCF\0\0\0\0".utf8), Array("Rar!\u{1a}\u{7}\u{1}\0".utf8), Array("xar!\0\u{1c}\0\u{1}".utf8),
        Array("LRZI\0\u{6}".utf8), Array("GRZipII\0\u{2}\u{4}:)".utf8), [0x89] + Array("LZO\0\r\n\u{1a}\n".utf8),
    ])
    func `an archive of an unsupported format is not opened with another reader or program`(magic: [UInt8]) throws {
        let scratch = try Scratch()
        let bytes = magic + [UInt8](repeating: 0x20, count: 4096)
        for name in ["a.tar", "a.tar.zst", "a.tar.xz", "a.tar.gz", "a.zip"] {
            try scratch.write(name, bytes)
            #expect(try scratch.refusal(name).code == .archiveKind)
        }
    }

    @Test(arguments: ["a.tar.lz", "a.tar.lzo", "a.tar.Z", "a.rar", "a.cab", "a.iso", "a.db", "tar", "a.TAR", ""])
    func `unsupported file extensions are refused`(name: String) throws {
        let error = try #require(throws: MoultError.self) { try ArchiveKind(fileName: name) }
        #expect(error.code == .archiveKind)
        #expect(
            error.why
                == "the supported extensions are .tar.zst, .tar.xz, .tar.gz, .tar.bz2, .tar, .tzst, .txz, .tgz, .tbz2, .zip, .7z"
        )
    }

    /// The content is 7z, but the name has the extension of a supported format.
    @Test func `a 7z archive under another name is refused`() throws {
        let scratch = try Scratch()
        try SampleBundle.write(to: scratch)
        #expect(scratch.run("cd in && 7z a -bd ../b.7z food.db user.db migrations") == 0)
        for name in ["a.zip", "a.tar", "a.tar.zst"] {
            #expect(scratch.run("cp b.7z \(name)") == 0)
            let error = try scratch.refusal(name)
            #expect(error.code == .archiveKind)
            #expect(error.why?.hasSuffix("it looks like a 7z archive") == true, "\(error)")
        }
    }

    @Test func `an empty archive file is refused`() throws {
        let scratch = try Scratch()
        for name in Self.packings.keys {
            try scratch.write(name, [])
            #expect(try scratch.refusal(name).why == "it is empty")
        }
    }
}
