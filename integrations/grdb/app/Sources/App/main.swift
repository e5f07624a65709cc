import Foundation
import GRDB
import Moult
import Synchronization

// usage: App MOULT RELEASES STORE UPDATES
//
// Follows a store with the classes of the page (`Phrases`, and `PhrasesInQueue` with a DatabaseQueue), while another process installs
// releases. Each view must show the release that was reported, in all databases, and no row of the app may be lost.
let words = CommandLine.arguments
guard words.count == 5, let updates = Int(words[4]) else { fatalError("usage: App MOULT RELEASES STORE UPDATES") }
let (moult, releases, directory) = (words[1], words[2], words[3])

func fail(_ what: String) -> Never {
    print("failed: \(what)")
    exit(1)
}

protocol View {
    var lease: StoreLease { get }
    var writer: any DatabaseWriter { get }
    init(_ store: Store) throws
}
extension Phrases: View { var writer: any DatabaseWriter { pool } }
extension PhrasesInQueue: View { var writer: any DatabaseWriter { pool } }

struct Versions: Equatable {
    var words: [String]
    var places: [String]
    var prices: [String]
    var isWhole: Bool { words.count == 1 && words == places && words == prices }
}

func versions(_ db: GRDB.Database) throws -> Versions {
    Versions(
        words: try String.fetchAll(db, sql: "SELECT DISTINCT version FROM words.word"),
        places: try String.fetchAll(db, sql: "SELECT DISTINCT version FROM geo.place"),
        prices: try String.fetchAll(db, sql: "SELECT DISTINCT version FROM prices.price WHERE own = 0"))
}

@Sendable func migrator() -> DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("stars") { db in try db.execute(sql: "ALTER TABLE note ADD COLUMN stars INTEGER") }
    migrator.registerMigration("index") { db in try db.execute(sql: "CREATE INDEX note_text ON note(text)") }
    return migrator
}

func refuses(_ view: any View, _ sql: String) -> Bool {
    do { try view.writer.write { db in try db.execute(sql: sql) } } catch { return true }
    return false
}

/// The first value of an observation, and the first one that has a row that is written after it.
func observe(_ view: any View, _ text: String) async throws -> Versions {
    let observation = ValueObservation.tracking { db in
        (
            try versions(db),
            try Int.fetchOne(db, sql: "SELECT count(*) FROM note WHERE text = ?", arguments: [text]) ?? 0
        )
    }
    var first: Versions?
    for try await (versions, count) in observation.values(in: view.writer) {
        if count > 0 { return first ?? versions }
        // An observation may report the same values again.
        if first != nil { continue }
        first = versions
        try await view.writer.write { db in
            try db.execute(sql: "INSERT INTO note (text, stars) VALUES (?, 5)", arguments: [text])
            try db.execute(sql: "INSERT INTO prices.price (item, version, own) VALUES (NULL, ?, 1)", arguments: [text])
        }
    }
    fail("the observation ended")
}

/// A list of the rows of a read-only database that reads only the rows that a release changed.
struct List: Equatable {
    var rows: [Int64: String] = [:]

    mutating func read(_ view: any View, _ table: RowChanges.Table?) throws {
        try view.writer.read { db in
            guard let table, table.reload == nil else {
                let all = try Row.fetchAll(db, sql: "SELECT id, version FROM words.word")
                rows = Dictionary(uniqueKeysWithValues: all.map { ($0["id"], $0["version"]) })
                return
            }
            for key in table.deleted { rows[key[0].integer ?? 0] = nil }
            for key in table.updated + table.inserted {
                let id = key[0].integer ?? 0
                rows[id] = try String.fetchOne(db, sql: "SELECT version FROM words.word WHERE id = ?", arguments: [id])
            }
        }
    }
}

/// The values of an observation that began before an update: the update of another process is reported to it as a change of the tables
/// that it really changed.
final class Prices: Sendable {
    private let seen = Mutex<(counts: Int, versions: [String])>((0, []))
    private let task: Mutex<Task<Void, any Error>?> = Mutex(nil)

    init(_ view: any View) {
        let writer = view.writer
        let observation = ValueObservation.tracking { db in
            try String.fetchAll(db, sql: "SELECT DISTINCT version FROM prices.price WHERE own = 0")
        }
        task.withLock { task in
            task = Task { [weak self] in
                for try await versions in observation.values(in: writer) {
                    self?.seen.withLock { $0 = ($0.counts + 1, versions) }
                }
            }
        }
    }

    deinit { task.withLock { $0?.cancel() } }

    /// Makes the observation read again if its table changed, and waits for the value.
    func update(_ view: any View, _ changes: [RowChanges], to version: String) async throws {
        guard changes.first(where: { $0.database == "prices" })?.table("price") != nil else { fail("no change of prices") }
        try await view.writer.write { db in try db.notifyChanges(in: Table("price")) }
        let deadline = ContinuousClock.now + .seconds(30)
        while seen.withLock({ $0.versions != [version] }) {
            if ContinuousClock.now > deadline { fail("the observation shows \(seen.withLock(\.versions)), not \(version)") }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}

func install(_ number: Int) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: moult)
    process.arguments = [
        "apply", "-q", "--wait", "30", "--retry", "60", "--follow", "match", "--store", directory,
        "\(releases)/set-\(number).0.0.json",
    ]
    do { try process.run() } catch { fail("\(moult): \(error)") }
    return process
}

func follow(_ type: any View.Type, _ name: String, _ count: Int) async throws {
    let store = Store(at: directory)
    var view = try type.init(store)
    try migrator().migrate(view.writer)
    var events = store.changes(since: view.lease).makeAsyncIterator()
    var list = List()
    try list.read(view, nil)
    var number = view.lease.version == "1.0.0" ? 2 : 1
    for round in 0..<count {
        let prices = Prices(view)
        let update = install(number)
        guard let event = try await events.next() else { fail("no more events") }
        guard let changes = event.changes else { fail("the event has no changes") }
        try await prices.update(view, changes, to: event.version)
        let next = try type.init(store)
        try list.read(next, changes.first { $0.database == "words" }?.table("word"))
        var fresh = List()
        try fresh.read(next, nil)
        if list != fresh { fail("the list of \(event.version) is not complete") }
        if event.version != "\(number).0.0" { fail("\(event.version) was reported, not \(number).0.0") }
        let seen = try await observe(next, "\(name) \(round)")
        if !seen.isWhole || seen.words != [event.version] {
            fail("\(event.version) was reported, and the view shows \(seen)")
        }
        for sql in ["DELETE FROM words.word", "DELETE FROM geo.place"] where !refuses(next, sql) {
            fail("\(sql) succeeded")
        }
        try view.writer.close()
        view = next
        update.waitUntilExit()
        if update.terminationStatus != 0 { fail("moult apply ended with \(update.terminationStatus)") }
        number = 3 - number
    }
    let (notes, prices, migrations, modes) = try await view.writer.read { db in
        (
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM note WHERE text LIKE ? AND stars = 5", arguments: ["\(name) %"]),
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM prices.price WHERE own = 1 AND version LIKE ?", arguments: ["\(name) %"]),
            try migrator().appliedIdentifiers(db),
            try ["main", "prices"].map { try String.fetchOne(db, sql: "PRAGMA \($0).journal_mode") ?? "" }
        )
    }
    if notes != count || prices != count { fail("\(notes ?? 0) notes and \(prices ?? 0) prices are left of \(count)") }
    if migrations != ["stars", "index"] { fail("the migrations are \(migrations)") }
    try view.writer.close()
    print(
        "\(name): \(count) updates, each view complete and current, no row lost; journal modes \(modes.joined(separator: ", "))"
    )
}

try await follow(PhrasesInQueue.self, "DatabaseQueue", updates / 2)
try await follow(Phrases.self, "DatabasePool", updates - updates / 2)
