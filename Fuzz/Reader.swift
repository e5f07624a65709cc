import MoultBasics
import MoultFiles
import MoultLibc
import MoultTrust
import StepKit
import Synchronization

@testable import MoultArchive
@testable import MoultPublish

/// The readers of untrusted bytes, by name.
enum Reader {
    static let all: [String: @Sendable ([UInt8]) throws -> Void] = [
        "json": { bytes in
            let json = try JSON(parsing: bytes, source: "f")
            try same(JSON(parsing: Array(json.line.utf8), source: "again"), json)
            try same(JSON(parsing: Array(json.pretty.utf8), source: "again"), json)
        },
        "manifest": { bytes in
            let manifest = try Manifest(parsing: bytes, as: .sealed, source: "f")
            let again = Array(manifest.sealedJSON().line.utf8)
            try same(Manifest(parsing: again, as: .sealed, source: "again").sealedJSON(), manifest.sealedJSON())
        },
        "draft": { _ = try Manifest(parsing: $0, as: .draft, source: "f") },
        "feed": { bytes in
            let feed = try Feed(parsing: bytes, source: "f")
            try same(Feed(parsing: Array(feed.json.line.utf8), source: "again"), feed)
        },
        "signature": { _ = try Signature(file: $0, named: "f") },
        "key": { bytes in
            _ = try? PublicKey(file: bytes, named: "f")
            _ = try? KeyList(parsing: bytes, source: "f")
            // Deriving a key from a password would take a second each time.
            _ = try SecretKey(file: bytes, named: "f") { throw MoultError(.json, what: "no password") }
        },
        "versions": { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            if let range = VersionRange(text) { _ = range.contains(Version(2, 1, 0)) }
            if let version = Version(text) { try same(Version(version.description), version) }
            _ = Expectation(text)?.isMet(by: "5")
        },
        "script": { bytes in
            let path = try File.put(bytes)
            let reader = try ScriptReader(path: path, file: "f") { text, _ in text }
            while try reader.next() != nil {}
        },
        "archive": { bytes in
            let path = try File.put(bytes)
            for name in ["a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst", "a.zip", "a.7z"] {
                // Each kind of archive refuses most inputs, so all kinds read the same input.
                try? archive(path, ArchiveKind(fileName: name))
            }
        },
        "patch": { bytes in
            // The size of the file that the patches in the corpus produce.
            let reader = try PatchReader(
                Descriptor(File.put(bytes), .read), base: Descriptor("Fuzz/old.db", .read), resultSize: 2048)
            let filled = Mutex(0)
            try reader.read(threads: 1) { _, piece in filled.withLock { $0 += piece.count } }
            if filled.withLock({ $0 }) != 2048 { preconditionFailure("a part is missing") }
        },
        // The part of a patch after its checksum.
        "difference": { bytes in
            let old = Array(UInt8.min...UInt8.max)
            var piece = [UInt8](repeating: 0, count: 16)
            try bytes.withUnsafeBytes { columns in
                try old.withUnsafeBytes { old in
                    var reader = try DifferenceReader(columns, old: OldBytes(old), start: 0)
                    try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
                }
            }
        },
    ]

    /// Not a bare closure: reading a closure from a `Mutex` wraps it once more each time, until the stack overflows. A struct
    /// is not wrapped.
    private struct Chosen {
        let read: @Sendable ([UInt8]) throws -> Void
    }
    private static let chosen = Mutex<Chosen?>(nil)

    static func choose(_ name: String) -> Bool {
        let reader = all[name].map { Chosen(read: $0) }
        chosen.withLock { $0 = reader }
        return reader != nil
    }

    static func read(_ bytes: [UInt8]) {
        let reader = chosen.withLock { $0 }
        do { try reader?.read(bytes) } catch let difference as Difference { preconditionFailure("\(difference)") } catch
        {}
    }

    /// Writing a value and reading it again gave a different value.
    private struct Difference: Error {
        let one: String
        let other: String
    }

    private static func same<Value: Equatable>(_ one: @autoclosure () throws -> Value, _ other: Value) throws {
        do {
            let one = try one()
            if one != other { throw Difference(one: "\(one)", other: "\(other)") }
        } catch let error as MoultError { throw Difference(one: "\(error)", other: "\(other)") }
    }

    private static func archive(_ path: String, _ kind: ArchiveKind) throws {
        let declared = ["food.db": 6, "notes/0001.sql": 3]
        var sizes: [String: Int] = [:]
        try ArchiveReader(Descriptor(path, .read), kind: kind).read(members: declared) {
            name, part in
            if case .bytes(let bytes) = part { sizes[name, default: 0] += bytes.count }
            if sizes[name, default: 0] > declared[name, default: -1] { preconditionFailure("more of \(name)") }
        }
        if sizes != declared { preconditionFailure("\(sizes) came") }
    }
}

/// Runs the chosen reader on one input. libFuzzer's main function expects a symbol of this name.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Reader.read(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

/// The file for readers that need one.
private enum File {
    static func put(_ bytes: [UInt8]) throws -> String {
        let path = "/dev/shm/moult-fuzz-\(getpid())"
        try Files.remove(path)
        try Files.writeNew(bytes, to: path)
        return path
    }
}
