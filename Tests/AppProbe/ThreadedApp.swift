import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import Synchronization

/// Writes numbered rows to the user database on a connection that stays open, and counts those that were committed.
final class Writer {
    let name: String
    private(set) var rows = 0
    private let connection: StoreConnection

    init(_ store: Store, _ name: String) throws {
        self.name = name
        connection = try store.open("notes")
        // SQLite waits longer after each attempt. A writer that tries again at once is more likely to get a lock that another one
        // has lost.
        _ = try connection.rows("PRAGMA busy_timeout = 0")
    }

    /// Writes a row, unless another connection has the lock.
    func write() throws {
        do { try connection.executeScript("BEGIN IMMEDIATE") } catch let error as MoultError
            where error.outcome == .busy
        {
            usleep(100)
            return
        }
        try connection.execute(
            "INSERT INTO note (writer, number, text) SELECT ?1, ?2, 'note ' || count(*) FROM note WHERE writer = ?1",
            [.text(name), .integer(Int64(rows + 1))])
        while true {
            do { try connection.executeScript("COMMIT") } catch let error as MoultError where error.outcome == .busy {
                usleep(100)
                continue
            }
            rows += 1
            return
        }
    }
}

/// An app that installs releases while its threads use the databases.
final class ThreadedApp: Sendable {
    private let store: Store
    private let manifests: [String]
    private let isDone = Atomic(false)
    private let running = Mutex<(threads: Int, results: [String])>((0, []))

    init(store: Store, manifests: [String]) { (self.store, self.manifests) = (store, manifests) }

    /// Prints what each thread has done, in a line each.
    func run(_ updates: Int) throws {
        for name in ["first", "second"] {
            try start(name) { isDone in
                let writer = try Writer(self.store, name)
                while !isDone() { try writer.write() }
                return "\(name) \(writer.rows)"
            }
        }
        // One reader keeps its connection, the other opens one for each read.
        try start("reader") { isDone in
            let connection = try self.store.open("notes")
            var reads = 0
            while !isDone() {
                _ = try connection.rows("SELECT count(*), max(number) FROM note")
                reads += 1
            }
            return "reader \(reads)"
        }
        try start("visitor") { isDone in
            var visits = 0
            while !isDone() {
                do {
                    let connection = try self.store.connect()
                    _ = try connection.rows("SELECT count(*) FROM note")
                    try connection.close()
                    visits += 1
                } catch let error as MoultError where error.outcome == .busy {}
            }
            return "visitor \(visits)"
        }
        var (installed, busy) = (0, 0)
        while installed < updates {
            do {
                try store.updateBlocking(to: manifests[installed % manifests.count], follow: .match)
                installed += 1
            } catch let error as MoultError where error.outcome == .busy { busy += 1 }
            _ = try store.status()
        }
        isDone.store(true, ordering: .sequentiallyConsistent)
        while running.withLock({ $0.threads > 0 }) { usleep(1000) }
        running.withLock(\.results).forEach { print($0) }
        print("updates \(installed)\nbusy \(busy)")
    }

    /// Runs the body on a thread of its own.
    private func start(
        _ name: String, _ body: @escaping @Sendable (_ isDone: () -> Bool) throws -> String
    ) throws {
        running.withLock { $0.threads += 1 }
        try Threads.detach {
            let result: String
            do { result = try body { self.isDone.load(ordering: .sequentiallyConsistent) } } catch {
                result = "\(name) failed: \(error)"
            }
            self.running.withLock {
                $0.results.append(result)
                $0.threads -= 1
            }
        }
    }
}
