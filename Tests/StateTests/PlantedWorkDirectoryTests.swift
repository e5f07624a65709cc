import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Commands write next to their results, in directories with predictable names. Other users who can write to the parent
/// directory can plant such a directory, or a link. Even then, nothing outside the directory changes, and the command
/// of root completes.
@Suite(.serialized, .enabled(if: geteuid() == 0, "only root may become another user")) struct PlantedWorkDirectoryTests
{
    private let scratch: Scratch
    private var open: String { scratch.path("open") }
    private var victim: String { scratch.path("victim") }

    init() throws {
        scratch = try Scratch()
        try Shell.must(["chmod", "755", scratch.path])
        try scratch.must(
            """
            mkdir -p victim/ready victim/old open
            echo VICTIM > victim/file; echo VICTIM > victim/ready/feed.json; chmod -R go-rwx victim
            mkdir draft; cd draft
            printf 'CREATE TABLE t(x); INSERT INTO t VALUES (1);' > make.sql
            printf '%s' '{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"food":{"kind":"reference","path":"food.db","build":{"script":"make.sql"}}}}' > draft.json
            moult keygen --no-password key && moult build make.sql -o food.db && moult pack draft.json -o release
            """)
    }

    /// Commands that write to `open`, each with the name of its work directory.
    private static let commands = [
        ("moult pack draft/draft.json -o open", ".moult-pack"),
        ("moult keygen --no-password open/new", ".new.key.making"),
        ("moult build draft/make.sql -o open/new.db", ".new.db.building"),
        ("moult publish open draft/release/x-1.0.0.json --key draft/key.key", ".moult-publish"),
    ]

    private func plant(_ line: String) throws {
        try scratch.must("setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '\(line)'")
    }

    private func attacked(_ command: String) throws {
        let before = try Tree(victim)
        let ended: Shell.Ended = try scratch.run(command)
        #expect(ended.status == 0, "\(ended)")
        #expect(try Tree(victim) == before, "\(ended)")
    }

    @Test(arguments: commands, ["777", "1777"])
    func `a planted link in place of a work directory is not followed`(
        _ command: (line: String, work: String), _ mode: String
    ) throws {
        try Shell.must(["chmod", mode, open])
        try plant("ln -s ../victim open/\(command.work).0; ln -s ../victim open/\(command.work).1")
        try attacked(command.line)
        #expect(try Files.target(ofLink: "\(open)/\(command.work).0") == "../victim")
    }

    @Test(arguments: commands)
    func `a planted work directory is neither used nor removed`(_ command: (line: String, work: String)) throws {
        try Shell.must(["chmod", "1777", open])
        try Shell.must(["chown", "65534", victim])
        // Files that a command of root would move from the work directory to its own directory, and files that it would
        // remove.
        let set = #"{"mode":"replacing","head":"head","first":[],"last":["cron"],"stale":["mine"]}"#
        try scratch.must("touch open/mine")
        try plant(
            """
            mkdir -m 755 open/\(command.work).0; cd open/\(command.work).0; mkdir ready old
            echo PLANTED > ready/cron; ln -s ../../victim below; echo \"\(set.replacing("\"", with: "\\\""))\" > set.json
            """)
        let before = try Tree("\(open)/\(command.work).0")
        try attacked(command.line)
        #expect(try Tree("\(open)/\(command.work).0") == before)
        #expect(try Files.facts("\(open)/mine") != nil)
        #expect(try Files.facts("\(open)/cron") == nil)
    }

    @Test func `a leftover directory that other users can write to is not removed`() throws {
        try Shell.must(["chmod", "1777", open])
        try scratch.must("mkdir -m 777 open/.moult-pack.0; echo x > open/.moult-pack.0/file")
        try attacked("moult pack draft/draft.json -o open")
        #expect(try Files.facts("\(open)/.moult-pack.0/file") != nil)
    }

    @Test func `a leftover directory of this user is removed`() throws {
        try Shell.must(["chmod", "1777", open])
        try scratch.must(
            "mkdir -m 700 open/.moult-pack.0; echo x > open/.moult-pack.0/file; > open/.moult-pack.0/.moult-work")
        try attacked("moult pack draft/draft.json -o open")
        #expect(try Files.facts("\(open)/.moult-pack.0") == nil)
    }

    /// A user who owns the parent directory can rename a directory of root, but not remove it.
    @Test(arguments: commands, ["755", "700"])
    func `a directory that was renamed to that of a work directory is not removed`(
        _ command: (line: String, work: String), _ mode: String
    ) throws {
        try Shell.must(["chown", "65534", open])
        try scratch.must("mkdir -p open/backup/deep; echo precious > open/backup/deep/file; chmod \(mode) open/backup")
        try plant("mv open/backup open/\(command.work).0")
        try attacked(command.line)
        #expect(try Files.facts("\(open)/\(command.work).0/deep/file") != nil)
    }

    @Test func `no write is redirected if an attacker replaces a work directory`() throws {
        try Shell.must(["chmod", "777", open])
        let work = try WorkDirectory(in: open, named: ".work")
        try plant("mv open/.work.0 open/stolen && ln -s ../victim open/.work.0")
        let before = try Tree(victim)
        // Both files are in the directory that this process created.
        try work.add("feed.json", Array("new".utf8))
        #expect(try Files.facts("\(open)/stolen/ready/feed.json") != nil)
        try Files.setMode("\(work.path)/ready/feed.json", 0o600)
        try work.deliver(FileSet(.added, head: "feed.json"))
        work.remove()
        #expect(try Tree(victim) == before)
        #expect(try Files.target(ofLink: "\(open)/.work.0") == "../victim")
    }

    @Test func `no write is redirected if an attacker replaces an output directory`() throws {
        try Shell.must(["chmod", "777", scratch.path])
        let work = try WorkDirectory(in: open, named: ".work")
        try work.add("new.json", Array("new".utf8))
        try Shell.must(["chown", "65534", open])
        try plant("mv open moved && ln -s victim open")
        let before = try Tree(victim)
        try work.deliver(FileSet(.added, head: "new.json"))
        work.remove()
        #expect(try Tree(victim) == before)
        #expect(try Files.list(scratch.path("moved")) == ["new.json"])
    }

    @Test func `a tree that replaced another tree is not removed`() throws {
        let known = try #require(try Files.facts(open))
        try scratch.must("mv open moved; cp -a victim open")
        #expect(throws: MoultError.self) { try Files.removeTree(open, knownAs: known) }
        #expect(try Files.facts("\(open)/file") != nil)
    }

    @Test func `root refuses a planted store of a single file`() throws {
        try Shell.must(["chmod", "1777", open])
        try scratch.must("cp draft/food.db open/app.db; cp draft/food.db new.db")
        for line in ["mkdir -m 777 open/.app.db.moult", "ln -s ../victim open/.app.db.moult"] {
            try plant(line)
            let before = try Tree(victim)
            let ended: Shell.Ended = try scratch.run("moult replace open/app.db new.db")
            #expect(ended.status == 3, "\(ended)")
            #expect(try Tree(victim) == before, "\(ended)")
            try scratch.must("rm -r open/.app.db.moult")
        }
    }
}
