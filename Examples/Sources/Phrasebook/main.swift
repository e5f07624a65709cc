import Glibc
import Moult

// An app that ships its phrases in a read-only database and keeps the user's notes in another database.
//
//     Phrasebook MANIFEST STORE [NOTE]
//
// MANIFEST is the release that came with the app, and STORE a directory that the app may write to.
guard (3...4).contains(CommandLine.arguments.count) else {
    print("usage: Phrasebook MANIFEST STORE [NOTE]")
    exit(64)
}
let shipped = CommandLine.arguments[1]
let store = Store(at: CommandLine.arguments[2])

do {
    // 1. Install the data that came with this version of the app, even if it is older. If it is already installed,
    //    this costs a few system calls; if anything goes wrong, the data is as it was before.
    let update = try await store.update(to: shipped)
    for earlier in update.recovered { print(earlier) }
    print(update.isInstalled ? "installed \(update.generation ?? "")" : "nothing new")

    // 2. Open both databases on one connection: the user database is `main`, the shipped database has its own name.
    let connection = try store.connect()
    print("phrases \(connection.lease.version):")
    for row in try connection.rows("SELECT danish, english FROM phrases.phrase ORDER BY danish LIMIT 3") {
        print("  \(row[0]) - \(row[1])")
    }

    // 3. The user's rows stay, whichever release is installed.
    if CommandLine.arguments.count == 4 {
        try connection.execute("INSERT INTO note (text) VALUES (?)", [.text(CommandLine.arguments[3])])
    }
    for row in try connection.rows("SELECT text FROM note ORDER BY id") { print("note: \(row[0])") }
    try connection.close()
} catch {
    print("cannot open the phrases: \(error)")
    exit(1)
}
