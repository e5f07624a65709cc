import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Each sync costs milliseconds, so an update makes only those in the table of `Journal`.
@Suite struct SyncTests {
    private let scratch: Scratch
    private let moult: String

    init() throws { (scratch, moult) = (try Scratch(), try BuiltMoult.path()) }

    /// Packs two releases with one database of a kind, and installs the first; returns the manifest of the second.
    private func store(_ kind: String) throws -> String {
        for version in 1...2 {
            let source = scratch.path("\(version).db")
            try Shell.must(["sqlite3", source, "CREATE TABLE t(v); INSERT INTO t VALUES(\(version))"])
            let preserve = kind == "shared" ? ", \"preserve\": []" : ""
            let draft = """
                { "manifest": 1, "product": "org.example.test", "version": "\(version).0.0", "sequence": \(version),
                  "databases": { "d": { "kind": "\(kind)", "source": "\(version).db"\(preserve) } } }
                """
            try Files.writeNew(Array(draft.utf8), to: scratch.path("v\(version).draft.json"))
            try Shell.must(
                [
                    moult, "pack", "-q", "--patches", "0", scratch.path("v\(version).draft.json"), "-o",
                    scratch.path("out"),
                ])
        }
        try Shell.must([moult, "init", scratch.path("store"), "--product", "org.example.test"])
        try Shell.must([moult, "apply", scratch.path("out/test-1.0.0.json"), "--store", scratch.path("store")])
        return scratch.path("out/test-2.0.0.json")
    }

    /// Returns what a command syncs, with the names of the table.
    private func syncs(_ words: String...) throws -> [String] {
        let log = scratch.path("syncs")
        let traced = "trace=fsync,fdatasync,syncfs,sync,msync"
        let ended = try Shell.run(
            ["strace", "-f", "-y", "-qq", "-e", traced, "-o", log, moult] + words + ["--store", scratch.path("store")])
        #expect(ended.status == 0, "\(ended)")
        return String(decoding: try Files.read(log, limit: 1 << 26) ?? [], as: UTF8.self).split(separator: "\n")
            .compactMap { line in
                guard let start = line.firstIndex(of: "<"), let end = line.lastIndex(of: ">") else {
                    return line.contains("---") ? nil : String(line)
                }
                var parts = line[line.index(after: start)..<end].split(separator: "/").map { String($0) }
                guard var name = parts.popLast() else { return nil }
                let above = parts.last ?? ""
                if name.hasSuffix(".moult-new") { name = String(name.dropFirst().dropLast(".moult-new".count)) }
                return switch (above, name) {
                case ("transactions", _): "ID"
                case ("generation", "d.db"): "generation/DB"
                case (_, "d.db"): "DB"
                case (_, "d.db-journal"): "DB-journal"
                default: name
                }
            }
    }

    /// Returns the rows of the table for one kind of update.
    private func table(_ letter: Character) throws -> [String] {
        let text = try Project.text("Sources/Moult/Execution/Journal.swift")
        return text.split(separator: "\n").filter { $0.hasPrefix("///     ") }.compactMap { line in
            let words = line.dropFirst(8).split(separator: " ")
            guard words.count >= 2, words[1].allSatisfy({ "rsb".contains($0) }), words[1].contains(letter) else {
                return nil
            }
            return String(words[0])
        }
    }

    @Test func `a new reference database`() throws {
        let next = try store("reference")
        #expect(try syncs("apply", "-q", next) == table("r"))
    }

    @Test func `a shared database, and its rollback`() throws {
        let next = try store("shared")
        #expect(try syncs("apply", "-q", next) == table("s"))
        #expect(try syncs("rollback", "-q") == table("b"))
    }
}
