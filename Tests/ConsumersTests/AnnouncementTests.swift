import Moult
import MoultFiles
import TestSupport
import Testing

/// A release is reported when the content of all its databases is there, and not before.
@Suite struct AnnouncementTests {
    private let scratch: Scratch
    private let store: Store

    init() throws {
        scratch = try Scratch()
        store = Store(at: scratch.path("store"))
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        for number in 1...3 {
            let rows = "CREATE TABLE item(release); INSERT INTO item VALUES(\(number));"
            try maker.make(
                "\(number).0.0", sequence: number,
                [
                    .reference("food", rows),
                    .shared("first", rows, more: [.init("preserve", [])]),
                    .shared("last", rows, more: [.init("preserve", [])]),
                ])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
    }

    /// The numbers of the release in all databases.
    private func content() throws -> [String] {
        let connection = try store.connect()
        defer { try? connection.close() }  // Only read.
        return try ["food", "first", "last"].map { name in
            try connection.texts("SELECT release FROM \(name).item")[0][0] ?? ""
        }
    }

    /// Kills an update after the switch of the pointer, at a call on a path.
    private func kill(_ call: String, _ path: String) throws {
        let first = try scratch.callAfterDecision(call, on: path, of: "store", to: "rel/test-2.0.0.json")
        try scratch.must(
            """
            mv store base
            for number in $(seq \(first) 200); do
                rm -rf store; cp -a base store
                if strace -f -qq -o /dev/null -P $PWD/store/\(path) -e trace=\(call) \
                    -e inject=\(call):signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-2.0.0.json; then exit 9; fi
                if readlink store/.moult/current > found && grep -q 2.0.0 found; then exit 0; fi
            done
            exit 8
            """)
    }

    @Test(arguments: ["delete", "wal"])
    func `a program reads the content of the release that is reported`(mode: String) async throws {
        for name in ["first", "last"] {
            try scratch.must("sqlite3 store/\(name).db 'PRAGMA journal_mode = \(mode)'")
        }
        var events = store.events(since: try store.lease()).makeAsyncIterator()
        let scratch = scratch
        for round in 0..<6 {
            let number = 1 + (round + 1) % 3
            let update = Task.detached {
                try scratch.must("moult apply -q --follow match --store store rel/test-\(number).0.0.json")
            }
            #expect(try await events.next()?.version == "\(number).0.0")
            #expect(try content() == Array(repeating: "\(number)", count: 3))
            _ = try await update.value
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a lease from the middle of an update is outdated when the update is complete`() async throws {
        try kill("pwrite64", "last.db")
        let lease = try store.lease()
        #expect(lease.version == "2.0.0")
        #expect(try !lease.isOutdated())
        var events = store.events(since: lease).makeAsyncIterator()
        let others = try Program(
            [
                "moult", "watch", "--store", scratch.path("store"), "--since", lease.generation,
            ], environment: ["PATH": "\(BuiltMoult.directory()):/usr/bin:/bin"])
        try await store.recover()
        let event = try await events.next()
        #expect(event?.version == "2.0.0" && event?.databases == ["first", "last"])
        #expect(others.line()?.hasPrefix("2.0.0+") == true)
        #expect(try lease.isOutdated())
        #expect(try content() == ["2", "2", "2"])
    }

    @Test(.timeLimit(.minutes(2)))
    func `a lease from the middle of an update is outdated when the update was undone`() async throws {
        try kill("fsync", ".moult")
        let lease = try store.lease()
        var events = store.events(since: lease).makeAsyncIterator()
        try scratch.must("moult recover --undo --store store")
        let event = try await events.next()
        #expect(event?.version == "1.0.0" && event?.databases == ["food", "first", "last"])
        #expect(try content() == ["1", "1", "1"])
    }

    /// Kills an update of a store with read-only databases before it enters the history.
    private func killAnnounced(_ release: String) throws {
        try scratch.must(
            """
            strace -f -qq -o /dev/null -P $PWD/plain/.moult/history.jsonl -e trace=write \
                -e inject=write:signal=SIGKILL:when=1 moult apply -q --create --store plain plain-rel/test-\(release).json && exit 9
            grep -q '^\(release)+' plain/.moult/announced
            """)
    }

    @Test(.timeLimit(.minutes(2)))
    func `the undo of a release that was reported is reported`() async throws {
        let maker = try ReleaseMaker(in: scratch.path("plain-rel"))
        for number in 1...2 {
            try maker.make(
                "\(number).0.0", sequence: number,
                [.reference("food", "CREATE TABLE item(release); INSERT INTO item VALUES(\(number));")])
        }
        try killAnnounced("1.0.0")
        try scratch.must("moult recover -q --undo --store plain && [ ! -e plain/.moult/announced ]")

        try scratch.must("moult apply -q --store plain plain-rel/test-1.0.0.json")
        let plain = Store(at: scratch.path("plain"))
        var events = plain.events(since: try plain.lease()).makeAsyncIterator()
        try killAnnounced("2.0.0")
        #expect(try await events.next()?.version == "2.0.0")
        let seen = try plain.lease()
        #expect(seen.version == "2.0.0")
        try scratch.must("moult recover -q --undo --store plain")
        let event = try await events.next()
        #expect(event?.version == "1.0.0" && event?.databases == ["food"])
        #expect(try seen.isOutdated() && !plain.lease().isOutdated())
    }

    @Test func `new content of the same release is reported`() async throws {
        let lease = try store.lease()
        var events = store.events(since: lease).makeAsyncIterator()
        try store.reset("first", settingUserDataAside: true)
        let event = try await events.next()
        #expect(event?.version == "1.0.0" && event?.databases == ["first", "last"])
    }

    @Test(arguments: [
        "rm announced", "> announced", "rm announced; mkdir -p announced/own", "rm announced; mkfifo announced",
    ])
    func `an update replaces a damaged record, and readers wait for it`(damage: String) async throws {
        try scratch.must("cd store/.moult; \(damage)")
        let lease = try store.lease()
        #expect(try !lease.isOutdated())
        var events = store.events(since: lease).makeAsyncIterator()
        try scratch.must(
            "moult apply -q --store store rel/test-2.0.0.json; [ $(ls store/.moult/transactions | wc -l) = 0 ]")
        #expect(try await events.next()?.version == "2.0.0")
        #expect(try content() == ["2", "2", "2"])
    }

    @Test func `an update that changes nothing visible is not reported`() throws {
        let before = try Files.read(scratch.path("store/.moult/announced"), limit: 1 << 12)
        try scratch.must("moult apply -q --store store rel/test-1.0.0.json")
        #expect(try Files.read(scratch.path("store/.moult/announced"), limit: 1 << 12) == before)
        #expect(try !store.lease().isOutdated())
    }
}
