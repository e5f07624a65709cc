import MoultBasics
import MoultFiles
import MoultLibc
import MoultTrust
import TestSupport
import Testing

/// Test vectors from the examples of FIPS 180-4.
@Suite struct SHA256Tests {
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `SHA-256 passes the standard's test vectors`(text: String, hex: String) throws {
        #expect(try SHA256.digest(of: Array(text.utf8)).hex == hex)
    }

    @Test func `hashing in pieces gives the digest of the whole`() throws {
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var hash = try SHA256()
        for start in stride(from: 0, to: bytes.count, by: 777) {
            try bytes[start..<min(start + 777, bytes.count)].withUnsafeBytes { try hash.update($0) }
        }
        #expect(try hash.finish() == SHA256.digest(of: bytes))
    }

    @Test func `hashing a file stops when the caller asks for it`() throws {
        let scratch = try Scratch()
        let path = try scratch.write("f", "x")
        try Shell.must(["truncate", "-s", "1T", path])
        let error = #expect(throws: MoultError.self) {
            try LongRead.stopping(if: { true }) { _ = try SHA256.digest(ofFileAt: path) }
        }
        #expect(error?.code == .interrupted)
    }

    /// Lengths of less than a block, of exact multiples of a block, and of more than the queue holds, in pieces that
    /// are not aligned to blocks.
    @Test(arguments: [0, 1, 1 << 18, 1 << 19, (1 << 18) + 1, 5_000_003])
    func `a digest that another thread computes is the same`(size: Int) throws {
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 9) }
        let digest = GrowingDigest()
        for start in stride(from: 0, to: size, by: 300_007) {
            try bytes[start..<min(start + 300_007, size)].withUnsafeBytes { try digest.update($0) }
        }
        #expect(try digest.finish() == SHA256.digest(of: bytes).hex)
    }

    /// If an archive is found to be damaged while it is read, its digest is abandoned, and the thread must end.
    @Test func `the thread of an abandoned digest ends`() throws {
        weak var gone: GrowingDigest?
        do {
            let digest = GrowingDigest()
            try [UInt8](repeating: 1, count: 5_000_000).withUnsafeBytes { try digest.update($0) }
            gone = digest
        }
        #expect(gone == nil)
    }

    @Test func `a file is hashed completely, regardless of the file offset`() throws {
        let scratch = try Scratch()
        let path = try scratch.write("file", Array(repeating: 0x61, count: 1_000_000))
        // FIPS 180-4: one million letters a.
        let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        #expect(try SHA256.digest(ofFileAt: path).hex == expected)

        let file = try Descriptor(path, .read)
        #expect(lseek(file.number, 12_345, SEEK_SET) == 12_345)
        #expect(try SHA256.digest(of: file).hex == expected)
        #expect(lseek(file.number, 0, SEEK_CUR) == 12_345)
    }

    /// A 32-bit length would stop after one byte here. The file is sparse, so it takes no disk space.
    @Test(.tags(.thorough)) func `lengths above four gibibytes are counted correctly`() throws {
        // A file system in memory may allocate the holes of the file.
        let scratch = try Scratch(in: "/tmp")
        let path = try scratch.write("huge", [])
        #expect(truncate(path, (4 << 30) + 1) == 0)
        // From coreutils: head -c 4294967297 /dev/zero | sha256sum
        let expected = "fbb82f7b353676bb562eb82157fcf0ea42c36492ca13ee56dbf82c08b6802c5c"
        #expect(try SHA256.digest(ofFileAt: path).hex == expected)
    }

    @Test func `the error names the unreadable file`() throws {
        let scratch = try Scratch()
        let missing = scratch.path("missing.db")
        let error = try #require(throws: MoultError.self) { try SHA256.digest(ofFileAt: missing) }
        #expect("\(error)" == "cannot open \(missing): No such file or directory")
        let directory = try #require(throws: MoultError.self) { try SHA256.digest(ofFileAt: scratch.path) }
        #expect("\(directory)" == "cannot read \(scratch.path): Is a directory")
    }
}

@Suite struct DigestTests {
    private let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test func `a digest is read back from its text`() throws {
        let digest = try #require(Digest(hex: hex))
        #expect(digest.hex == hex)
        #expect("\(digest)" == hex)
        #expect(digest.prefix8 == "ba7816bf")
        #expect(digest.bytes.first == 0xba && digest.bytes.last == 0xad && digest.bytes.count == 32)
        #expect(digest.bytes.withUnsafeBytes(Digest.init) == digest)
        #expect(Digest(hex: hex.uppercased()) == digest)
        #expect(try SHA256.digest(of: Array("abc".utf8)) == digest)
    }

    @Test(arguments: ["", "ba78", String(repeating: "g", count: 64), String(repeating: "a", count: 65), "é"])
    func `text that is not a digest is refused`(text: String) {
        #expect(Digest(hex: text) == nil)
    }

    @Test func `bytes that are not as long as a digest are refused`() {
        #expect([UInt8](repeating: 0, count: 31).withUnsafeBytes(Digest.init) == nil)
    }
}
