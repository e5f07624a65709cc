import MoultBasics
import MoultTrust
import TestSupport
import Testing

/// moult and the real `minisign` program read each other's files. Each protected key takes 1 GiB and several seconds,
/// so the tests run one at a time.
@Suite(.tags(.thorough), .serialized) struct MinisignProgramTests {
    private let text = Array("{\"manifest\": 1}\n".utf8)
    private let comment = "release 2.1.0\tsequence 41 é"

    @Test func `minisign accepts a signature by moult`() throws {
        let scratch = try Scratch()
        let key = try SecretKey.generate()
        try scratch.write("m.json", text)
        try scratch.write("ours.pub", key.publicKey.file)
        let signature = try key.sign(text, trustedComment: comment)
        try scratch.write("m.json.minisig", signature.file(untrustedComment: "signature of a test"))

        #expect(scratch.run("minisign -V -Q -H -p ours.pub -m m.json") == 0)
        #expect(try scratch.read("out") == Array("\(comment)\n".utf8))
        #expect(scratch.run("minisign -V -P \(key.publicKey.base64) -m m.json") == 0)
        try scratch.write("m.json", text + [0x20])
        #expect(scratch.run("minisign -V -p ours.pub -m m.json") == 1)
    }

    @Test func `moult accepts a signature by minisign`() throws {
        let scratch = try Scratch()
        try scratch.write("m.json", text)
        #expect(scratch.run("minisign -G -W -p a.pub -s a.key && minisign -S -s a.key -m m.json -t '\(comment)'") == 0)
        let key = try PublicKey(file: scratch.read("a.pub"), named: "a.pub")
        let signature = try Signature(file: scratch.read("m.json.minisig"), named: "m.json.minisig")
        let verified = try signature.verify(text, named: "m.json", by: [key])
        #expect(verified.key == key && verified.trustedComment == comment)
        #expect(try PublicKey(base64: key.base64, named: "settings") == key)
        #expect(try key.file == scratch.read("a.pub"))
        #expect("\(signature.keyID)" == "\(key.id)")
    }

    @Test func `keys without a password work in both programs`() throws {
        let scratch = try Scratch()
        try scratch.write("f", text)
        #expect(scratch.run("minisign -G -W -p a.pub -s a.key") == 0)
        let theirs = try SecretKey(file: scratch.read("a.key"), named: "a.key") { throw Asked() }
        #expect(try theirs.publicKey == PublicKey(file: scratch.read("a.pub"), named: "a.pub"))

        let ours = try SecretKey.generate()
        try scratch.write("b.key", ours.file(password: nil))
        #expect(
            scratch.run("minisign -R -s b.key -p b.pub && minisign -S -s b.key -m f && minisign -V -p b.pub -m f") == 0)
        #expect(try scratch.read("b.pub") == ours.publicKey.file)
    }

    @Test func `moult opens a key that minisign protected with a password`() throws {
        let scratch = try Scratch()
        #expect(scratch.run("printf 'slow feather\\nslow feather\\n' | minisign -G -p a.pub -s a.key") == 0)
        let file = try scratch.read("a.key")
        let key = try SecretKey(file: file, named: "a.key") { Array("slow feather".utf8) }
        #expect(try key.publicKey == PublicKey(file: scratch.read("a.pub"), named: "a.pub"))
        let error = try #require(throws: MoultError.self) {
            try SecretKey(file: file, named: "a.key") { Array("fast feather".utf8) }
        }
        #expect(
            "\(error)" == "cannot open the secret key a.key: the password is wrong. Try again; a forgotten password "
                + "cannot be recovered.")
        #expect(error.code == .password)
    }

    @Test func `minisign opens a key that moult protected with a password`() throws {
        let scratch = try Scratch()
        let key = try SecretKey.generate()
        try scratch.write("f", text)
        try scratch.write("a.key", key.file(password: Array("slow feather".utf8)))
        #expect(scratch.run("echo 'slow feather' | minisign -S -s a.key -m f") == 0)
        let signature = try Signature(file: scratch.read("f.minisig"), named: "f.minisig")
        #expect(try signature.verify(text, named: "f", by: [key.publicKey]).key == key.publicKey)
    }

    @Test func `legacy signatures are refused unless allowed`() throws {
        let scratch = try Scratch()
        try scratch.write("f", text)
        #expect(scratch.run("minisign -G -W -p a.pub -s a.key && minisign -S -l -s a.key -m f") == 0)
        let key = try PublicKey(file: scratch.read("a.pub"), named: "a.pub")
        let signature = try Signature(file: scratch.read("f.minisig"), named: "f.minisig")
        let error = try #require(throws: MoultError.self) { try signature.verify(text, named: "f", by: [key]) }
        #expect(
            "\(error)"
                == "the signature of f is in minisign's legacy format: the signature was created by an old minisign, or with minisign -l. "
                + "Sign the file again with minisign 0.10 or later.")
        #expect(error.code == .legacySignature && error.outcome == .refused)
        #expect(try signature.verify(text, named: "f", by: [key], allowLegacy: true).key == key)
        #expect(throws: MoultError.self) { try signature.verify(text + [0], named: "f", by: [key], allowLegacy: true) }
    }

    private struct Asked: Error {}
}
