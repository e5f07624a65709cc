import MoultBasics
import MoultFiles
import MoultStore
import TestSupport

/// The golden files of a format, which `Tests/Golden/make` created once.
struct Golden {
    let directory: String

    init(format: Int = 1) {
        let tests = #filePath.split(separator: "/").dropLast(2).reduce("") { "\($0)/\($1)" }
        directory = "\(tests)/Golden/format-\(format)"
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }
    func release(_ number: Int) -> String { path("releases/golden-\(number).0.0.json") }

    func json(_ name: String) throws -> JSON {
        try JSON(parsing: Files.read(path(name), limit: 1 << 20) ?? [], source: name)
    }
}

/// A golden store, adjusted to this disk: records that identify files by inode get the new inodes.
struct GoldenStore {
    let scratch: Scratch
    let root: String
    let layout: StoreLayout
    /// The path of each file in the store, by the inode that it had in the original store.
    private let places: [UInt64: String]

    init(_ name: String, of golden: Golden = Golden()) throws {
        scratch = try Scratch()
        root = scratch.path("store")
        layout = try StoreLayout(root: root)
        try Shell.must(["tar", "-xJpf", golden.path("\(name).tar.xz"), "--no-same-owner", "-C", scratch.path])
        let lines = String(decoding: try Files.read(scratch.path("inodes"), limit: 1 << 20) ?? [], as: UTF8.self)
        var places: [UInt64: String] = [:]
        for line in lines.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            if parts.count == 2, let inode = UInt64(parts[0]) { places[inode] = "\(root)/\(parts[1])" }
        }
        self.places = places
        for generation in try Generation.names(layout) { try seal(layout.generation(generation)) }
        for transaction in try Files.list(layout.transactions) where transaction != "CACHEDIR.TAG" {
            try seal("\(layout.transactions)/\(transaction)/generation")
            try journal("\(layout.transactions)/\(transaction)/journal.jsonl")
        }
    }

    private func seal(_ directory: String) throws {
        let path = "\(directory)/\(Seal.fileName)"
        guard let bytes = try Files.read(path, limit: 1 << 20), let mode = try Files.facts(directory)?.mode else {
            return
        }
        var seal = try Seal(parsing: bytes, source: path)
        seal.entries = try seal.entries.compactMap { entry in
            try Files.facts("\(directory)/\(entry.member)").map {
                Seal.Entry(member: entry.member, sha256: entry.sha256, facts: $0)
            }
        }
        try Files.setMode(directory, 0o700)
        try Files.replace(path, with: Array(seal.json.pretty.utf8))
        try Files.setMode(directory, mode & 0o7777)
    }

    private func journal(_ path: String) throws {
        let bytes = try Files.read(path, limit: 1 << 20) ?? []
        let lines = try bytes.split(separator: UInt8(ascii: "\n")).map { line in
            let record = try JSON(parsing: Array(line), source: path)
            guard let inodes = record["inodes"]?.members else { return record.line }
            let new = try inodes.map { JSON.Member($0.name, try inode($0)) }
            return record.setting("inodes", to: .object(new)).line
        }
        try Files.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// Returns the new inode of a file. Records that identify files by their change counter stay unchanged.
    private func inode(_ member: JSON.Member) throws -> JSON {
        guard !member.name.hasPrefix("counter/"), let old = member.value.integer,
            let place = places[UInt64(bitPattern: old)], let facts = try Files.facts(place)
        else { return member.value }
        return .integer(Int64(bitPattern: facts.inode))
    }

    // MARK: the view of apps

    /// Returns the releases of the read-only and the shared databases, user data, and the schema versions.
    func found() throws -> [String] {
        func value(_ name: String, _ sql: String) throws -> String {
            try Shell.must(["sqlite3", "\(root)/\(name).db", sql]).split(separator: "\n").joined(separator: " ")
        }
        let food = "SELECT group_concat(name, ', ') FROM food"
        return try [
            value("food", "SELECT release FROM food"), value("pantry", food), value("prices", food),
            value("user", "SELECT (SELECT user_version FROM pragma_user_version), group_concat(text) FROM note"),
            value("thumbs", "SELECT name FROM pragma_table_info('thumb') WHERE cid = 1"),
        ]
    }

    static let first = ["1", "shipped 1, mine", "shipped 1, mine", "1|mine", "image1"]
    static let second = ["2", "shipped 2, mine", "shipped 2, mine", "2|mine", "image2"]
}
