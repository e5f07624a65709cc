import Foundation
import GRDB
import Moult

// usage: App STORE DIRECTORY POOL      POOL is true or false
//
// GRDB with the class of docs/in-an-app.md: one task writes, and one replaces the pool or queue for each event. See common.py.
let words = CommandLine.arguments
let (store, directory, isPool) = (Store(at: words[1]), words[2], words[3] == "true")

func fail(_ what: String) -> Never {
    FileHandle.standardError.write(Data("\(what)\n".utf8))
    exit(1)
}

func isStopped() -> Bool { FileManager.default.fileExists(atPath: "\(directory)/stop") }

func open(_ lease: inout StoreLease?) throws -> any DatabaseWriter {
    if isPool {
        let view = try Phrases(store)
        lease = view.lease
        return view.pool
    }
    let view = try PhrasesInQueue(store)
    lease = view.lease
    return view.pool
}

actor Current {
    private var lease: StoreLease?
    private var database: (any DatabaseWriter)?

    func follow() throws -> StoreLease {
        let old = database
        database = try open(&lease)
        try old?.close()
        guard let database, let lease else { fail("not opened") }
        let releases = try database.read { db in
            try ["SELECT group_concat(DISTINCT release) FROM food", "SELECT group_concat(DISTINCT cents) FROM price WHERE own = 0"].map {
                try String.fetchOne(db, sql: $0) ?? ""
            }
        }
        try Data(releases.joined(separator: " ").utf8).write(to: URL(fileURLWithPath: "\(directory)/grdb.view"), options: .atomic)
        return lease
    }

    func insert(_ sql: String, _ arguments: StatementArguments) throws {
        try database?.write { db in try db.execute(sql: sql, arguments: arguments) }
    }
}

let current = Current()
let acks = "\(directory)/grdb.acks"
guard FileManager.default.createFile(atPath: acks, contents: nil), let out = FileHandle(forWritingAtPath: acks) else { fail(acks) }
do {
    let first = try await current.follow()
    let following = Task {
        do { for try await _ in store.events(since: first) { _ = try await current.follow() } } catch { fail("\(error)") }
    }
    var number = 0
    while !isStopped() {
        number += 1
        try await current.insert("INSERT INTO note (writer, number) VALUES ('grdb', ?)", [number])
        out.write(Data("note grdb \(number)\n".utf8))
        try await current.insert("INSERT INTO price (item, cents, own) VALUES (?, ?, 1)", ["grdb \(number)", number])
        out.write(Data("price grdb \(number)\n".utf8))
        try await Task.sleep(for: .milliseconds(30))
    }
    following.cancel()
} catch { fail("\(error)") }
