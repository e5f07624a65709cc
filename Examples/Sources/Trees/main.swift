import Foundation
import Moult

// An app whose build also builds its database: see Database/ next to this file. The database stays in the app's
// resources; it is attached there and never copied.
//
//     Trees STORE
//
// STORE is a directory that the app may write to.
guard CommandLine.arguments.count == 2, let resources = Bundle.module.resourcePath else {
    print("usage: Trees STORE")
    exit(64)
}
do {
    let store = Store(at: CommandLine.arguments[1])
    let update = try await store.update(to: "\(resources)/Database/release.json")
    print(update.isInstalled ? "installed \(update.generation ?? "")" : "nothing new")
    let connection = try store.connect()
    for row in try connection.rows("SELECT name, metres FROM trees.tree ORDER BY metres DESC LIMIT 3") {
        print("\(row[0]) \(row[1]) m")
    }
    try connection.close()
} catch {
    print("cannot open the trees: \(error)")
    exit(1)
}
