import Moult
import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

/// Reading a store in which an update is unfinished: its journal, settings and links may come from an archive.
@Suite struct UnfinishedReadTests {
    private let scratch: Scratch
    private var store: String { scratch.path("store") }
    private var app: String { scratch.path("home/app.db") }

    /// Makes a store whose update to 2.0.0 was killed after its decision, when nothing was in place yet.
    init() throws {
        scratch = try Scratch()
        let releases = try ReleaseMaker(in: scratch.path("rel"))
        for number in 1...2 {
            try releases.make(
                "\(number).0.0", sequence: number,
                [
                    .reference("food", "CREATE TABLE food AS SELECT \(number) AS release;"),
                    .shared(
                        "items", "CREATE TABLE item(release); INSERT INTO item VALUES(\(number));",
                        more: [.init("preserve", [])]),
                    .cache("thumbs", "CREATE TABLE thumb(x\(number))"),
                ])
        }
        try scratch.must(
            """
            moult init -q base --product org.example.test; moult apply -q --store base rel/test-1.0.0.json; mkdir home
            sqlite3 home/app.db "CREATE TABLE item(release); INSERT INTO item VALUES('precious')"
            """)
        let first = try Self.first.withLock { first in
            let number = try first ?? scratch.callAfterDecision("renameat2", of: "base", to: "rel/test-2.0.0.json")
            first = number
            return number
        }
        try scratch.must(
            """
            for number in $(seq \(first) 30); do
                rm -rf store; cp -a base store
                if strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-2.0.0.json; then exit 9; fi
                if ls store/.moult/transactions/*/decided.json > found 2> /dev/null; then exit 0; fi
            done
            exit 8
            """)
    }

    /// The first rename that may have come after the decision, which is the same in each test.
    private static let first = Mutex<Int?>(nil)

    private func run(_ script: String) throws -> Shell.Ended { try scratch.run(script) }

    private func settings(_ more: String) throws {
        try Files.replace(
            "\(store)/moult.json", with: Array("{\"moult\": 1, \"product\": \"org.example.test\", \(more)}".utf8))
    }

    /// Adds a consumer to the settings and to the plan in the journal.
    private func addConsumer() throws {
        try settings(
            "\"consumers\": [{\"name\": \"web\", \"command\": {\"reload\": [\"touch\", \"\(scratch.path("home/ran"))\"]}}]"
        )
        try edit(
            """
            plan["consumers"] = [{"consumer": "web", "by": "command", "release": False,
                "databases": [{"name": "items", "kind": "shared", "path": "items.db"}]}]
            """)
    }

    /// Edits the plan in the journal with a script in Python.
    private func edit(_ script: String) throws {
        try Shell.must(
            ["python3", "-", try journal()],
            input: """
                import json, sys
                record = json.load(open(sys.argv[1]))
                plan = record["plan"]
                \(script)
                json.dump(record, open(sys.argv[1], "w"))
                """)
    }

    private func journal() throws -> String {
        let directory = "\(store)/.moult/transactions"
        return "\(directory)/\(try #require(try Files.list(directory).first))/decided.json"
    }

    /// Copies the store through an archive, and returns the name of the copy.
    private func unpacked() throws -> String {
        try scratch.must("mkdir got; tar -C store -cf - . | tar -C got -xf -")
        return scratch.path("got")
    }

    private func linkToApp() throws {
        try Files.remove("\(store)/items.db")
        try Files.symlink(to: app, at: "\(store)/items.db")
    }

    static let readVerbs = [
        "status", "verify", "verify --deep", "attach", "status --deep", "history", "status --processes", "inspect got",
        "quarantine", "plan rel/test-2.0.0.json", "plan --deep rel/test-2.0.0.json", "diff rel/test-2.0.0.json",
        "check",
        "steps", "clean --dry-run",
    ]

    @Test(.tags(.thorough)) func `no verb that reads recovers an update`() throws {
        try linkToApp()
        try addConsumer()
        _ = try unpacked()
        let before = try Tree(scratch.path)
        for verb in Self.readVerbs {
            _ = try run(verb.hasPrefix("inspect") ? "moult \(verb)" : "moult \(verb) --store got")
            #expect(try Tree(scratch.path) == before, "\(verb)")
        }
    }

    @Test func `sql reads as an app does: SQLite may undo what a killed program left, and the update stays unfinished`()
        throws
    {
        _ = try unpacked()
        let before = try Tree(scratch.path("got/.moult"))
        let ended = try run("moult sql -q 'SELECT release FROM items.item' --store got")
        #expect(ended.status == 0 && ended.errors.contains("unfinished"), "\(ended)")
        #expect(try Tree(scratch.path("got/.moult")) == before)
    }

    @Test func `verbs that read say that an update is unfinished`() throws {
        for verb in [
            "sql -q 'SELECT release FROM items.item'", "attach", "status --processes", "history", "quarantine",
        ] {
            let ended = try run("moult \(verb) --store store")
            #expect(ended.status == 0, "\(ended)")
            #expect(
                ended.errors.replacing("\n", with: " ").contains(
                    "an update to 2.0.0 is unfinished; finish or undo it with: moult recover --store store"), "\(ended)"
            )
        }
        #expect(try Files.facts(journal()) != nil)
    }

    @Test func `connect finishes an update that only changes the store`() throws {
        let connection = try Store(at: store).connect()
        #expect(connection.lease.version == "2.0.0")
        try connection.close()
        #expect(try scratch.must("ls store/.moult/transactions") == "")
    }

    enum Outside: String, CaseIterable, Sendable {
        case link, sidecar, consumer, caches, hidden, step
    }

    /// Makes recovery concern something beyond the store.
    private func prepare(_ kind: Outside) throws {
        switch kind {
        case .link: try linkToApp()
        case .sidecar: try Files.symlink(to: scratch.path("home/other-wal"), at: "\(store)/items.db-wal")
        case .consumer: try addConsumer()
        case .caches:
            let home = scratch.path("home")
            try settings("\"cacheRoot\": \"\(home)\"")
            try scratch.must("sqlite3 home/thumbs.db 'CREATE TABLE thumb(x1)'")
            try edit(
                """
                plan["request"]["cacheRoot"] = "\(home)"
                for effect in plan["effects"]:
                    if effect.get("database") == "thumbs": effect["change"]["path"] = "\(home)/app.db"
                """)
        case .hidden: try scratch.must("mv store/.moult hidden; ln -s ../hidden store/.moult")
        case .step:
            try scratch.must(
                "printf '#!/bin/sh\\ntouch \(scratch.path("home/ran"))\\n' > step; chmod 755 step")
            try settings(
                "\"steps\": {\"evil\": {\"executable\": \"\(scratch.path("step"))\", \"sha256\": \"\(scratch.must("sha256sum < step").prefix(64))\", \"after\": \"copy\"}}"
            )
            try edit(
                """
                plan["effects"].append({"step": "evil", "phase": "copy", "mark": "~", "text": "x",
                    "change": {"do": "custom", "name": "x", "text": "x", "with": {"writes": []}}})
                """)
        }
    }

    @Test(arguments: Outside.allCases)
    func `connect leaves an update whose recovery concerns more than the store`(_ kind: Outside) throws {
        try prepare(kind)
        let got = try kind == .hidden ? store : unpacked()
        let before = try Tree(scratch.path)
        if kind == .sidecar {
            // SQLite would use such a link as part of the database.
            #expect(throws: MoultError.self) { try Store(at: got).connect() }
        } else {
            let connection = try Store(at: got).connect()
            #expect(connection.lease.version == "1.0.0")
            try connection.close()
        }
        // SQLite itself rolls the killed transaction back when the connection opens a writable database.
        func others(_ tree: Tree) -> [String] {
            tree.lines.filter { !$0.contains("/.moult/lock ") && ($0.contains("/.moult/") || $0.hasPrefix("home")) }
        }
        #expect(try others(Tree(scratch.path)) == others(before))
    }

    @Test(arguments: ["link", "consumer"]) func `recover first names the programs and places`(_ kind: String) throws {
        try prepare(kind == "link" ? .link : .consumer)
        let ended = try run("moult recover --store store")
        let text = ended.errors.replacing("\n", with: " ").replacing(/\s+/, with: " ")
        #expect(
            text.contains(
                kind == "link"
                    ? "the recovery of an update to 2.0.0 in \(store) changes files outside the store: \(app) (through the link \(store)/items.db)"
                    : "the recovery of an update to 2.0.0 in \(store) runs the consumer web, with touch \(scratch.path("home/ran"))"
            ),
            "\(ended)")
    }

    @Test func `a store whose first update is unfinished says how to finish it`() throws {
        try scratch.must(
            """
            rm -rf store; moult init -q store --product org.example.test
            for number in $(seq 30); do
                strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-1.0.0.json && exit 9
                if ls store/.moult/transactions/*/decided.json > found 2> /dev/null && ! [ -e store/.moult/current ]; then exit 0; fi
                rm -rf store; moult init -q store --product org.example.test
            done
            exit 8
            """)
        let ended = try run("moult sql --store store 'SELECT 1'")
        #expect(ended.status == 1, "\(ended)")
        #expect(ended.errors.contains("an update to 1.0.0 is unfinished"), "\(ended)")
        #expect(ended.errors.contains("Finish or undo it: moult recover --store store"), "\(ended)")
    }
}
