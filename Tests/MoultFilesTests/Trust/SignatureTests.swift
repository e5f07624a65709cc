import MoultBasics
import MoultLibc
import MoultTrust
import TestSupport
import Testing

@Suite struct SignatureTests {
    private let text = Array("content".utf8)
    private let key: SecretKey
    private let lines: [String]

    init() throws {
        key = try SecretKey.generate()
        let signature = try key.sign(text, trustedComment: "release 1")
        lines = String(decoding: try signature.file(untrustedComment: "for a test"), as: UTF8.self)
            .split(separator: "\n").map(String.init)
    }

    private func verify(_ lines: [String], by keys: [PublicKey]? = nil) throws -> Signature.Verified {
        let file = Array(lines.joined(separator: "\n").utf8)
        return try Signature(file: file, named: "f.minisig")
            .verify(text, named: "f", by: keys ?? [key.publicKey])
    }

    @Test func `the last line feed may be missing and the untrusted comment may change`() throws {
        var lines = lines
        lines[0] = "untrusted comment: whatever"
        #expect(try verify(lines).trustedComment == "release 1")
    }

    @Test func `a changed trusted comment is detected`() throws {
        var lines = lines
        lines[2] = "trusted comment: release 2"
        let error = try #require(throws: MoultError.self) { try verify(lines) }
        #expect(error.code == .badSignature)
        #expect(
            "\(error)"
                == "the signature of f is not valid: the trusted comment does not match the signature of key \(key.publicKey.id)"
                + ". Get the file and its signature again; if the error remains, report it to the publisher and do not use the file."
        )
    }

    @Test func `a trusted comment of another signature is detected`() throws {
        let other = try key.sign(Array("other content".utf8), trustedComment: "release 9")
        let others = String(decoding: try other.file(untrustedComment: ""), as: UTF8.self).split(separator: "\n")
        #expect(throws: MoultError.self) { try verify(Array(lines[..<2]) + others[2...].map(String.init)) }
    }

    @Test func `only signatures by trusted keys count`() throws {
        let other = try SecretKey.generate().publicKey
        let error = try #require(throws: MoultError.self) { try verify(lines, by: [other]) }
        #expect(error.code == .unknownKey)
        #expect(
            "\(error)"
                == "f is not signed by a trusted key: its signature is by key \(key.publicKey.id); the trusted key is "
                + "\(other.id). If that key is the publisher's, add it to the trusted keys.")
        #expect(throws: MoultError.self) { try verify(lines, by: []) }
        #expect(try verify(lines, by: [other, key.publicKey]).key == key.publicKey)
    }

    private static func python(_ expression: String) throws -> String {
        String(try Shell.must(["python3", "-c", "import base64; print(\(expression).decode())"]).dropLast())
    }

    /// With one of these keys, anyone could make valid signatures. Only ten points have such a small order.
    @Test(
        arguments: [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000080",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        ])
    func `a weak public key is refused`(_ hex: String) throws {
        let line = try Self.python("base64.b64encode(b'Ed' + bytes(8) + bytes.fromhex('\(hex)'))")
        let error = try #require(throws: MoultError.self) { try PublicKey(base64: line, named: "key") }
        #expect(error.why == "it is a weak key, for which anyone can forge signatures")
    }

    /// Two signatures by one key must not reach a threshold of two.
    @Test func `a trusted key that appears twice with different IDs is refused`() throws {
        let line = key.publicKey.base64
        let second = try Self.python(
            "(lambda k: base64.b64encode(k[:2] + bytes(8) + k[10:]))(base64.b64decode('\(line)'))")
        let text = #"{"threshold": 2, "trusted": [{"key": "\#(line)"}, {"key": "\#(second)"}]}"#
        let fields = try Fields(JSON(parsing: text, source: "keys")) { place, why, _ in
            MoultError(.unsigned, what: "\(place) \(why)")
        }
        let error = try #require(throws: MoultError.self) { try TrustedKeys(fields) }
        #expect(error.what == "trusted[1] is the same key as \(key.publicKey.id)")
    }

    @Test func `a changed file is detected`() throws {
        let signature = try key.sign(text, trustedComment: "")
        for changed in [text + [0], Array(text.dropLast()), [], Array(text.reversed())] {
            let error = try #require(throws: MoultError.self) {
                try signature.verify(changed, named: "f", by: [key.publicKey])
            }
            #expect(error.code == .badSignature)
        }
    }

    /// A signature must cover the whole file, including a byte after the fourth gibibyte.
    @Test(.tags(.thorough)) func `a signature covers files above four gibibytes`() throws {
        let scratch = try Scratch()
        let path = try scratch.write("huge", [])
        #expect(truncate(path, (4 << 30) + 10) == 0)
        // From coreutils: head -c 4294967306 /dev/zero | b2sum
        let expected =
            "e9377368744e41edf4b25754bdcd2d91eebee4d3ffba18f1d839dcd0174fd9e3"
            + "6b6a0113e6b3cfd9b167c29a9f4df2db2cf36b596364e90ddb5919cb6d657929"
        let digest = try blake2b512(ofFileAt: path)
        #expect(digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == expected)
    }

    @Test(arguments: [
        ("", "it has 0 lines instead of 4"),
        ("a\nb\n", "it has 2 lines instead of 4"),
        ("1\n2\n3\n4\n\n", "it has 5 lines instead of 4"),
        ("comment\n$1\n$2\n$3", "line 1 does not begin with \"untrusted comment: \""),
        ("$0\r\n$1\r\n$2\r\n$3\r\n", "it has Windows line endings"),
        ("$0\nnot Base64\n$2\n$3", "line 2 is not Base64"),
        ("$0\nRUQ=\n$2\n$3", "line 2 has 2 bytes in Base64 instead of 74"),
        ("$0\n$1 \n$2\n$3", "line 2 is not Base64"),
        ("$0\n$3\n$2\n$3", "line 2 has 64 bytes in Base64 instead of 74"),
        ("$0\n$1\ntrusted: x\n$3", "line 3 does not begin with \"trusted comment: \""),
        ("$0\n$1\ntrusted comment: \u{1b}[2J\n$3", "the comment on line 3 has characters that cannot be printed"),
        ("$0\n$1\n$2\n", "it has 3 lines instead of 4"),
        ("$0\n$1\n$2\n$1", "line 4 has 74 bytes in Base64 instead of 64"),
    ])
    func `signatures in other formats are refused`(form: String, why: String) throws {
        var file = form
        // A dollar sign is not a Base64 character.
        for (index, line) in lines.enumerated() { file.replace("$\(index)", with: line) }
        let error = try #require(throws: MoultError.self) { try Signature(file: Array(file.utf8), named: "f.minisig") }
        #expect(
            "\(error)" == "f.minisig is not a minisign signature: \(why). Copy the file again from its source.")
        #expect(error.code == .minisignForm && error.outcome == .refused)
    }

    @Test func `signature files that are too large and unknown algorithms are refused`() throws {
        let large = [UInt8](repeating: 0x61, count: (1 << 20) + 1)
        let error = try #require(throws: MoultError.self) { try Signature(file: large, named: "x") }
        #expect(error.why == "it is larger than 1 MiB")
        var lines = lines
        // The algorithm “ED” becomes another one.
        lines[1].replace("RU", with: "RV", maxReplacements: 1)
        let unknown = try #require(throws: MoultError.self) { try verify(lines) }
        #expect(unknown.why == "its algorithm is not Ed25519")
    }

    @Test(arguments: ["two\nlines", "\u{1b}[31mred", String(repeating: "x", count: 1_001)])
    func `invalid comments are not written to a signature`(comment: String) throws {
        let error = try #require(throws: MoultError.self) { try key.sign(text, trustedComment: comment) }
        #expect(error.code == .minisignComment)
        let signature = try key.sign(text, trustedComment: "")
        #expect(throws: MoultError.self) { try signature.file(untrustedComment: comment) }
    }
}
