import Glibc
import Moult

// A list on a terminal that stays up to date: after each release, only the rows that changed are read and drawn.
//
//     WordList STORE MANIFEST...
//
// The first MANIFEST is installed before the list is drawn; the others are installed while it is shown.
guard CommandLine.arguments.count >= 3 else {
    print("usage: WordList STORE MANIFEST...")
    exit(64)
}
let store = Store(at: CommandLine.arguments[1])
let releases = CommandLine.arguments.dropFirst(2)

/// The lines on the screen, by the key of their row.
var lines: [String: String] = [:]

/// Reads the rows with these keys, or all rows.
func read(_ connection: StoreConnection, _ keys: [[SQLValue]]? = nil) throws -> [(String, String)] {
    let sql = "SELECT danish, english FROM phrases.phrase"
    let rows = try keys.map { try $0.flatMap { try connection.rows(sql + " WHERE danish = ?", $0) } }
    return try (rows ?? connection.rows(sql)).map { ($0[0].description, "\($0[0]) - \($0[1])") }
}

@MainActor func draw(_ mark: String, _ rows: [(String, String)]) {
    for (key, line) in rows {
        lines[key] = line
        print(mark, line)
    }
}

do {
    try await store.update(to: releases.first ?? "")
    var connection = try store.connect()
    draw(" ", try read(connection))
    var events = store.changes(since: connection.lease).makeAsyncIterator()
    for release in releases.dropFirst() {
        try await store.update(to: release)
        guard let event = try await events.next() else { break }
        let table = event.changes?.first { $0.database == "phrases" }?.table("phrase")
        print("\(event.version):")
        connection = try store.connect()
        guard let table else { continue }
        if table.reload != nil {
            lines = [:]
            draw(" ", try read(connection))
            continue
        }
        for key in table.deleted { print("-", lines.removeValue(forKey: key[0].description) ?? "") }
        draw("~", try read(connection, table.updated))
        draw("+", try read(connection, table.inserted))
    }
    // The list on the screen is what a new program would show.
    let fresh = try Dictionary(uniqueKeysWithValues: read(connection))
    print(fresh == lines ? "the list is complete" : "the list is wrong")
} catch {
    print("the list is closed: \(error)")
    exit(1)
}
