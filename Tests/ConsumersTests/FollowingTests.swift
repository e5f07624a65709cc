import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Tests how another process or task is notified of a release.
@Suite struct FollowingTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1, writable: false))
    }

    @Test func `events arrive as they happen`() async throws {
        let first = try shop.store.lease()
        var events = shop.store.events(since: first).makeAsyncIterator()
        for number in 2...3 {
            try await shop.store.update(to: shop.release(number, writable: false))
            let event = try await events.next()
            #expect(event?.version == "\(number).0.0")
            let current = try shop.store.lease().generation
            #expect(event?.generation == current)
            #expect(event?.databases == ["food"])
        }
    }

    @Test func `an event from before the first check is reported once`() async throws {
        let first = try shop.store.lease()
        for number in 2...3 { try await shop.store.update(to: shop.release(number, writable: false)) }
        var events = shop.store.events(since: first).makeAsyncIterator()
        #expect(try await events.next()?.version == "3.0.0")
    }

    @Test func `the watching thread ends when its task is cancelled`() async throws {
        func watches() throws -> Int {
            try Files.list("/proc/self/fd").count {
                (try? Files.target(ofLink: "/proc/self/fd/\($0)")) == "anon_inode:inotify"
            }
        }
        let before = try watches()
        let store = shop.store
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let task = Task {
            var events = store.events.makeAsyncIterator()
            beginning.finish()
            return try await events.next()
        }
        for await _ in begun {}
        task.cancel()
        #expect(try await task.value == nil)
        // The watch is closed when its thread has noticed the cancellation.
        while try watches() > before { await Task.yield() }
    }

    @Test func `following a missing store fails`() async throws {
        var events = Store(at: shop.scratch.path("nothing")).events.makeAsyncIterator()
        await #expect(throws: MoultError.self) { try await events.next() }
    }

    @Test func `watch prints a line for each event`() throws {
        let first = try shop.store.lease().generation
        let watch = try Program([BuiltMoult.path(), "watch", "--store", shop.root, "--since", first, "--json"])
        for number in 2...3 {
            try shop.store.updateBlocking(to: shop.release(number, writable: false))
            let line = try #require(watch.line())
            let event = try JSON(parsing: Array(line.utf8), source: "watch")
            #expect(event["event"]?.string == "generation")
            #expect(event["version"]?.string == "\(number).0.0")
            #expect(event["databases"]?.array?.compactMap(\.string) == ["food"])
        }
    }

    @Test func `watch runs a program and fails if the program fails`() throws {
        let first = try shop.store.lease().generation
        try shop.store.updateBlocking(to: shop.release(2, writable: false))
        let print = ["sh", "-c", "echo $MOULT_STORE $MOULT_VERSION $MOULT_CHANGED; exit $STATUS"]
        let command = try [
            BuiltMoult.path(), "watch", "--store", shop.root, "--since", first, "--once", "--exec", "--",
        ]
        let good = try Shell.run(command + print, environment: ["STATUS": "0"])
        #expect(good.status == 0)
        #expect(good.output.split(separator: "\n").last == "\(shop.root) 2.0.0 food")
        let bad = try Shell.run(command + print, environment: ["STATUS": "7"])
        #expect(bad.status == 1)
        #expect(bad.errors.contains("it ended with status 7"))
        #expect(try BuiltMoult.run("watch", "--store", shop.root, "--exec").status == 64)
    }

    @Test func `the recipe in Python follows releases`() throws {
        let recipes = try Recipes.all(in: "in-an-app.md", "python")
        try #require(recipes.count == 2)
        let reader = try Program.python(
            recipes[0] + """

                import sys
                for line in sys.stdin: print(query(sys.argv[1], "food.db", "SELECT release FROM food")[0][0])
                """, shop.root)
        for number in 1...3 {
            if number > 1 { try shop.store.updateBlocking(to: shop.release(number, writable: false)) }
            reader.write("next\n")
            #expect(reader.line() == "\(number)")
        }
        let holder = try Program.python(
            recipes[1] + "\nimport sys\nheld, path = lease(sys.argv[1]); print(path); sys.stdin.read()", shop.root)
        let path = try #require(holder.line())
        #expect(try LeaseFile.holders(of: Files.name(of: path), shop.layout).map(\.pid) == [holder.pid])
    }

    @Test func `the recipes in sh follow releases`() throws {
        let recipes = try Recipes.all(in: "in-an-app.md", "sh")
        try #require(recipes.count == 2)
        let query = try Shell.run(
            ["sh", "-c", recipes[0]], environment: ["STORE": shop.root, "SQL": "SELECT release FROM food"])
        #expect(query.output == "1\n", "\(query.errors)")
        let loop = try Program(
            ["sh", "-c", "echo begun; " + recipes[1]],
            environment: [
                "STORE": shop.root, "PATH": "\(BuiltMoult.directory()):/usr/bin:/bin",
            ])
        // The recipe reads the current release before it waits, so a release that is installed earlier would not be
        // reported.
        #expect(loop.line() == "begun")
        while try !Files.list("/proc").contains(where: { pid in
            // A process that ends during the search is not counted.
            let line = (try? Files.read("/proc/\(pid)/cmdline", limit: 1 << 16)) ?? []
            return line.starts(with: "moult\0watch\0--store\0\(shop.root)\0".utf8)
        }) {}
        try shop.store.updateBlocking(to: shop.release(2, writable: false))
        #expect(loop.line()?.hasPrefix("reloading for 2.0.0+") == true)
    }
}

/// The programs in the documentation, as a user would copy them.
enum Recipes {
    /// Returns the blocks of one language in a page of `docs/`, in order.
    static func all(in page: String, _ language: String) throws -> [String] {
        let text = try Project.text("docs/\(page)")
        var recipes: [String] = []
        var current: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line == "```\(language)" {
                current = []
            } else if line == "```", let lines = current {
                recipes.append(lines.joined(separator: "\n") + "\n")
                current = nil
            } else {
                current?.append(line)
            }
        }
        return recipes
    }
}
