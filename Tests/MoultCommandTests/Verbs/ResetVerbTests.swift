import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Scenario 5 on the command line: whatever file is at the path of a database, a reset results in a database that can
/// be opened, or in an error that names the file.
@Suite struct ResetVerbTests {
    private let scratch: Scratch
    private var store: String { scratch.path("store") }

    init() throws {
        scratch = try Scratch()
        _ = try BrokenStore.release(in: scratch.path("rel"))
        try must("moult init --product org.example.test")
        try must("moult apply -q rel/test-1.0.0.json")
        try must("sqlite3 store/user.db \"INSERT INTO note(text) VALUES('one'), ('two')\"")
    }

    @discardableResult
    private func must(_ line: String) throws -> String { try scratch.mustMoult(line) }

    /// The rows are in one set: the second attempt finishes the first, or repeats it.
    @Test(.tags(.thorough)) func `a reset killed at any call and repeated sets the data aside once`() throws {
        try must("mkdir pristine && cp -a store pristine")
        let calls = "renameat2,unlinkat,mkdirat,fsync,linkat"
        var number = 1
        while true {
            try must("rm -rf store; cp -a pristine/store store")
            let ended = try scratch.moult(
                "strace -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult reset user --set-user-data-aside"
            )
            try must("moult reset user --set-user-data-aside")
            #expect(try must("sqlite3 store/user.db 'SELECT count(*) FROM note'") == "0\n", "call \(number)")
            let sets = try Files.list("\(store)/.moult/quarantine").filter { $0.hasSuffix("-user") }
            let counts = try sets.map {
                try must("sqlite3 store/.moult/quarantine/\($0)/user.db 'SELECT count(*) FROM note'")
            }
            // If the first reset had ended, the second one has set the empty file aside.
            #expect([["2\n"], ["0\n", "2\n"]].contains(counts.sorted()), "call \(number): \(counts)")
            if ended.status == 0 { break }
            number += 1
        }
        #expect(number > 20, "\(number)")
    }

    @Test func `salvage is repeated on request and replaces only its own files`() throws {
        try Broken.tornHeader.make("user.db", in: store)
        try must("moult reset user --set-user-data-aside")
        let aside = try must("ls -d store/.moult/quarantine/*-user").dropLast()
        try must("echo old > \(aside)/salvaged.db")
        let set = "find \(aside) -type f ! -name 'salvaged.*' -exec sha256sum {} + | sort"
        let before = try must(set)
        let out = try must("moult reset user --salvage-again")
        #expect(
            out == """
                ~ user was salvaged again
                  the old files are in \(scratch.path(String(aside)))
                  2 rows salvaged to \(scratch.path(String(aside)))/salvaged.db
                  To put rows back, table by table: moult quarantine --restore \(Files.name(of: String(aside))) --table note

                """)
        #expect(try must("sqlite3 \(aside)/salvaged.db 'SELECT text FROM note'") == "one\ntwo\n")
        #expect(try must(set) == before)
        let json = try JSON(parsing: try must("moult reset user --salvage-again --json"), source: "reset")
        #expect(json["salvage"]?["whole"]?.bool == true && json["salvage"]?["rows"]?.integer == 2)
        let both = try scratch.moult("moult reset user --salvage-again --dry-run")
        #expect(both.status == 64)
        #expect(both.err.contains("--salvage-again and --dry-run cannot be used together"))
        let cache = try scratch.moult("moult reset thumbs --salvage-again")
        #expect(cache.status == 3)
        #expect(cache.err.contains("cannot salvage thumbs again"))
    }

    @Test func `the error for a damaged cache in quarantine advises no salvage`() throws {
        try must(
            "head -c 5000 /dev/urandom >> store/thumbs.db; dd if=/dev/urandom of=store/thumbs.db bs=100 seek=1 count=30 conv=notrunc 2>/dev/null"
        )
        try must("moult reset -q thumbs")
        let ended = try scratch.moult("moult quarantine --restore thumbs")
        #expect(ended.status == 3 && ended.err.hasSuffix("\n  The damaged file stays in quarantine.\n"), "\(ended)")
    }

    @Test func `the error for an older damaged set does not advise to salvage the newest one`() throws {
        try must(
            "dd if=/dev/urandom of=store/user.db bs=100 seek=1 count=30 conv=notrunc 2>/dev/null; moult reset -q user --set-user-data-aside"
        )
        let old = try #require(try Files.list("\(store)/.moult/quarantine").first { $0.hasSuffix("user") })
        try must(
            "rm -f store/.moult/quarantine/\(old)/salvaged.db; sqlite3 store/user.db \"INSERT INTO note(text) VALUES('x')\""
        )
        try must("moult reset -q user --set-user-data-aside")
        let ended = try scratch.moult("moult quarantine --restore \(old)")
        #expect(ended.status == 3 && !ended.err.contains("--salvage-again"), "\(ended)")
    }

    @Test(.enabled(if: getuid() == 0))
    func `a reset on a full disk says that nothing was salvaged, and how to try again`()
        throws
    {
        try must("mkdir small")
        let mounted = try scratch.moult("mount -t tmpfs -o size=6m tmpfs small")
        if mounted.status != 0 { try Test.cancel("this container may not mount a small disk: \(mounted.err)") }
        defer { _ = try? scratch.moult("umount small") }
        try must("mv store small/store && ln -s small/store store")
        try must(
            "sqlite3 store/user.db \"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
                + "INSERT INTO note(text) SELECT hex(zeroblob(500)) FROM n\"")
        // SQLite cannot replace the content of a damaged file. The free space is enough for the reset, but not for salvage.
        try must("dd if=/dev/zero of=store/user.db bs=4096 seek=200 count=1 conv=notrunc status=none")
        try must("dd if=/dev/zero of=small/ballast bs=1k count=2000 status=none")
        let ended = try scratch.moult("moult reset user --set-user-data-aside --store small/store")
        #expect(ended.status == 0, "\(ended.err)")
        #expect(ended.out.contains("  nothing was salvaged: "), "\(ended.out)")
        #expect(
            ended.out.contains(
                "  Remove the cause, then salvage the old files: moult reset user --salvage-again --store small/store\n"
            ))
        let again = try scratch.moult("moult reset user --salvage-again --store small/store")
        #expect(again.status != 0)
        #expect(again.err.contains("cannot salvage user again"), "\(again.err)")
        try must("rm small/ballast && mount -o remount,size=64m small")
        let out = try must("moult reset user --salvage-again --store small/store")
        #expect(out.contains(" rows salvaged to "))
    }

    @Test func `a dry run of a reset changes nothing`() throws {
        try Broken.noDatabase.make("user.db", in: store)
        let before = try Tree(store)
        let ended = try scratch.moult("moult reset user --set-user-data-aside --dry-run")
        #expect(ended.status == 2)
        #expect(ended.out.contains("user.db and its sidecar files go to quarantine"))
        #expect(try Tree(store) == before)
    }

    // MARK: permissions

    /// Gives the store to an unprivileged user, who then runs the command.
    private func giveToOrdinaryUser() throws {
        try must("sed -i '0,/{/s//{ \"waitForApps\": 0,/' store/moult.json")
        try must("chmod a+rx . && cp $(command -v moult) moult && chown -R 65534 store")
        try must("\(Self.asNobody)moult status")
    }

    private static let asNobody = "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs -- ./"

    /// The file belongs to another user, so this user cannot tell whether a process has it open.
    @Test(.enabled(if: getuid() == 0), arguments: ["thumbs", "user"])
    func `a reset of a database that the user may not read is left to the owner`(name: String) throws {
        try giveToOrdinaryUser()
        try must("chown 0 store/\(name).db && chmod 000 store/\(name).db")
        let words = "moult reset \(name)\(name == "user" ? " --set-user-data-aside" : "")"
        let before = try Tree(store, skipping: [".moult/history.jsonl", ".moult/transactions"])
        let ended = try scratch.moult("\(Self.asNobody)\(words)")
        #expect(ended.status == 75, "\(ended.err)")
        #expect(ended.err.contains("Run the command as the owner of the file, or as root."), "\(ended.err)")
        #expect(try Tree(store, skipping: [".moult/history.jsonl", ".moult/transactions"]) == before)
        // A user can change the mode of an own file.
        try must("chown 65534 store/\(name).db")
        let own = try scratch.moult("\(Self.asNobody)\(words)")
        #expect(own.status != 0, "\(own)")
        #expect(own.err.contains("chmod u+rw \(store)/\(name).db"), "\(own)")
        try must("chmod u+rw store/\(name).db")
        #expect(try scratch.moult("\(Self.asNobody)\(words)").status == 0)
    }

    /// If the user may not write to the directory, the error names the directory, and nothing has changed.
    @Test(.enabled(if: getuid() == 0))
    func `a reset in a directory without write permission fails and keeps the data`() throws {
        try giveToOrdinaryUser()
        try Broken.noDatabase.make("user.db", in: store)
        try must("chown 0 store && chmod 755 store")
        // The set's directory in quarantine is created first, and stays empty.
        let ours: Set = [".moult/history.jsonl", ".moult/transactions", ".moult/quarantine"]
        func tree() throws -> Tree { try Tree(store, times: false, skipping: ours) }
        let before = try tree()
        let ended = try scratch.moult("\(Self.asNobody)moult reset user --set-user-data-aside")
        #expect([1, 5].contains(ended.status))
        #expect(ended.err.contains(store), "\(ended.err)")
        #expect(try tree() == before)
        #expect(try Files.list("\(store)/.moult/quarantine").isEmpty)
    }
}
