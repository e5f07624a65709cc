import Glibc
import Moult

// A price board that keeps running while new prices are installed.
//
//     Board STORE MANIFEST...
//
// The first MANIFEST is the release that is installed before the board starts; the others are installed while it runs.
guard CommandLine.arguments.count >= 3 else {
    print("usage: Board STORE MANIFEST...")
    exit(64)
}
let store = Store(at: CommandLine.arguments[1])
let releases = CommandLine.arguments.dropFirst(2)

/// Keeps the prices open, and closes them while an update replaces them.
actor Board: DatabaseConsumer {
    private let store: Store
    private var connection: StoreConnection?

    init(_ store: Store) throws {
        self.store = store
        connection = try store.connect()
    }

    func release(_ change: DatabaseChange) throws {
        try connection?.close()
        connection = nil
        print("closed for a moment")
    }

    func reload(_ change: DatabaseChange) throws {
        connection = try store.connect()
        // Only changed tables have to be drawn again.
        for database in change.databases { print("new: \(database.tables?.joined(separator: ", ") ?? database.name)") }
        try show()
    }

    func show() throws {
        guard let connection else { return }
        print("prices \(connection.lease.version)")
        for row in try connection.rows("SELECT item, cents FROM prices.price ORDER BY item LIMIT 2") {
            print("  \(row[0]): \(row[1])")
        }
    }
}

do {
    try await store.update(to: releases.first ?? "")
    let board = try Board(store)
    try await board.show()
    store.register(board, for: ["prices"])
    for release in releases.dropFirst() { try await store.update(to: release) }
} catch {
    print("the board is closed: \(error)")
    exit(1)
}
