#if MOULT_PORTABLE
    import Moult
    import MoultBasics
    import MoultFiles
    import TestSupport
    import Testing

    /// A build without Linux-only calls: its fallbacks, and the operations that it refuses.
    @Suite struct PortableBuildTests {
        let scratch: Scratch
        let maker: ReleaseMaker
        let store: Store

        init() throws {
            scratch = try Scratch()
            maker = try ReleaseMaker(in: scratch.path("releases"))
            store = Store(at: scratch.path("store"))
        }

        private func make(_ number: Int) throws -> String {
            try maker.make(
                "\(number).0.0", sequence: number,
                [
                    .reference("food", "CREATE TABLE food(release); INSERT INTO food VALUES(\(number))"),
                    .user("notes", "CREATE TABLE note(value)"),
                    .shared("price", "CREATE TABLE price(release); INSERT INTO price VALUES(\(number))", more: []),
                ])
        }

        @Test func `an update installs all kinds of databases, and a rollback restores the old release`() async throws {
            let (first, second) = (try make(1), try make(2))
            try await store.update(to: first)
            let before = try store.connect()
            try before.execute("INSERT INTO note VALUES ('mine')")
            var events = store.events.makeAsyncIterator()
            try await store.update(to: second)
            #expect(try await events.next()?.version == "2.0.0")
            // A reader keeps its release, but shared content is replaced in place.
            #expect(try before.rows("SELECT release FROM food.food") == [[1]])
            #expect(try before.rows("SELECT release FROM price.price") == [[2]])
            let after = try store.connect()
            #expect(try after.rows("SELECT release, value FROM food.food, note") == [[2, "mine"]])
            try await store.rollback(reason: "a test")
            #expect(
                try store.connect().rows("SELECT food.release, price.release FROM food.food, price.price") == [[1, 1]])
            #expect(try await store.verify(deep: true).isEmpty)
        }

        @Test func `a generation is kept while it has a lease`() async throws {
            try await store.update(to: make(1))
            try scratch.must("sed -i 's/\"keep\": 2/\"keep\": 1, \"minimumAge\": 0/' store/moult.json")
            var lease: StoreLease? = try store.lease()
            let generation = try #require(lease?.generation)
            try await store.update(to: make(2))
            try await store.clean()
            #expect(try Files.facts(scratch.path("store/.moult/generations/\(generation)")) != nil)
            lease = nil
            try await store.clean()
            #expect(try Files.facts(scratch.path("store/.moult/generations/\(generation)")) == nil)
        }

        @Test func `a portable build refuses to run a program`() throws {
            let error = #expect(throws: MoultError.self) { try Subprocess.run(["true"]) }
            #expect(
                error?.description
                    == "cannot run true: this build of moult cannot start other programs. Use a build for Linux."
            )
            #expect(error?.outcome == .refused)
        }

        @Test func `a sound database is reset, and its rows are kept`() async throws {
            try await store.update(to: make(1))
            let connection = try store.connect()
            try connection.execute("INSERT INTO note VALUES ('mine')")
            try connection.close()
            try store.reset("notes", settingUserDataAside: true)
            #expect(try store.connect().rows("SELECT value FROM note") == [])
            let set = try #require(try store.quarantine().first)
            let kept = try Shell.must(["sqlite3", "\(set.directory)/notes.db", "SELECT value FROM note"])
            #expect(kept == "mine\n")
            #expect(try await store.verify(deep: true).isEmpty)
        }

        @Test func `a portable build refuses to reset a file that is not a database`() async throws {
            try await store.update(to: make(1))
            try scratch.must("printf 'not a database' > store/notes.db")
            let error = #expect(throws: MoultError.self) { try store.reset("notes", settingUserDataAside: true) }
            #expect(
                error?.why?.contains("this build of moult cannot tell whether another process has a file open") == true,
                "\(error?.description ?? "")")
            #expect(error?.code == .portableBuild && error?.outcome == .refused, "\(String(describing: error))")
            #expect(try scratch.must("cat store/notes.db") == "not a database")
        }

        @Test func `an error does not say that no other process has locked a database`() async throws {
            try await store.update(to: make(1))
            try scratch.must("sed -i '0,/{/s//{ \"waitForApps\": 0,/' store/moult.json")
            let other = try Program.python(
                "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); "
                    + "d.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()",
                store.path(of: "notes"))
            #expect(other.line() == "locked")
            let error = #expect(throws: MoultError.self) { try store.reset("notes", settingUserDataAside: true) }
            #expect(error?.why == "another process or a connection of this one has locked it")
        }

        @Test func `a portable build refuses to exchange two files, and does not rename a file over an existing one`()
            throws
        {
            try scratch.must("echo 1 > one; echo 2 > two")
            let error = #expect(throws: MoultError.self) {
                try Files.exchange(scratch.path("one"), scratch.path("two"))
            }
            #expect(error?.why == "this build of moult cannot exchange two files in one step")
            #expect(try !Files.renameIfFree(scratch.path("one"), to: scratch.path("two")))
            #expect(try Files.renameIfFree(scratch.path("one"), to: scratch.path("three")))
            try scratch.must("test $(cat two) = 2 && test $(cat three) = 1 && test ! -e one")
        }
    }
#endif
