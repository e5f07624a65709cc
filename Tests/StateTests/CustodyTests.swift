import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// moult as root runs no program that another user can choose, and follows no link that another user can change.
@Suite(.serialized, .enabled(if: geteuid() == 0)) struct CustodyTests {
    private let scratch: Scratch
    private let path: String
    private let manifest: String
    private var trace: String { scratch.path("trace") }

    init() throws {
        scratch = try Scratch()
        manifest = try ReleaseMaker(in: scratch.path("rel")).make(
            "1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(x)"), .user("diary", "CREATE TABLE note(t)")])
        path = scratch.path("store")
        try Shell.must(["chmod", "755", scratch.path])
        try Shell.must([BuiltMoult.path(), "init", path, "--product", "org.example.test"])
        // The settings name a program that would create this file.
        let settings = try #require(try Files.read("\(path)/moult.json", limit: 4096))
        let reload = #""consumers":[{"name":"x","command":{"reload":["touch","\#(trace)"]}}],"#
        let text = "{" + reload + String(decoding: settings, as: UTF8.self).dropFirst()
        try Files.replace("\(path)/moult.json", with: Array(text.utf8), mode: 0o644)
    }

    private func moult(_ words: [String], store: String? = nil, as user: UInt32 = 0) throws -> Shell.Ended {
        let prefix = user == 0 ? [] : ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        return try Shell.run(prefix + [BuiltMoult.path()] + words + ["--store", store ?? path])
    }

    private func isRefused(_ culprit: String, store: String? = nil) throws {
        for words in [
            ["apply", manifest], ["status"], ["plan", manifest], ["clean"], ["recover"], ["sql", "SELECT 1"],
        ] {
            let ended = try moult(words, store: store)
            #expect(ended.status == 3, "\(words): \(ended)")
            #expect(ended.errors.contains("root does not use the store"), "\(words): \(ended)")
            #expect(ended.errors.contains(culprit), "\(words): \(ended)")
        }
        let deep = try moult(["status", "--deep"], store: store)
        #expect(deep.status == 1)
        // The text is wrapped, and names the file first.
        let said = deep.output.replacing("\n", with: " ").replacing(": it ", with: " ")
        #expect(said.contains(culprit), "\(deep)")
        #expect(try Files.facts(trace) == nil)
    }

    @Test func `a store that belongs to root is used`() throws {
        #expect(try moult(["apply", manifest]).status == 0)
        #expect(try Files.facts(trace) != nil)
    }

    @Test(arguments: ["", "/moult.json", "/.moult", "/.moult/generations", "/.moult/history.jsonl"])
    func `root refuses a store that belongs partly to another user`(_ part: String) throws {
        #expect(try moult(["apply", manifest]).status == 0)
        try Files.remove(trace)
        try Shell.must(["chown", "65534", path + part])
        try isRefused("\(path + part) belongs to user nobody")
    }

    @Test(arguments: [("", "775", "chmod +t"), ("/moult.json", "664", "chmod go-w"), ("/.moult", "777", "chmod go-w")])
    func `root refuses a store that other users can write to until its mode is changed`(
        _ part: String, _ mode: String, _ command: String
    ) throws {
        #expect(try moult(["apply", manifest]).status == 0)
        try Files.remove(trace)
        try Shell.must(["chmod", mode, path + part])
        try isRefused("\(command) \(path + part)")
        try Shell.must(command.split(separator: " ").map(String.init) + [path + part])
        #expect(try moult(["status"]).status == 0)
        #expect(try moult(["status", "--deep"]).status == 0)
    }

    @Test func `root refuses a store below a directory or a link that another user can change`() throws {
        let home = try scratch.directory("home")
        try Shell.must(["cp", "-a", path, "\(home)/store"])
        try Shell.must(["chown", "65534", home])
        try isRefused("\(home) belongs to user nobody", store: "\(home)/store")
        let link = scratch.path("link")
        try Files.symlink(to: path, at: link)
        #expect(try moult(["verify", "--store", link]).status != 3)
        try Shell.must(["chown", "-h", "65534", link])
        try isRefused("\(link) belongs to user nobody", store: link)
    }

    @Test(arguments: ["moult.json", ".moult"])
    func `if root has put a part of the store behind a link, the target is checked`(_ part: String) throws {
        #expect(try moult(["apply", manifest]).status == 0)
        try Files.remove(trace)
        let home = try scratch.directory("home")
        try Shell.must(["mv", "\(path)/\(part)", "\(home)/part"])
        try Files.symlink(to: "\(home)/part", at: "\(path)/\(part)")
        #expect(try moult(["status"]).status == 0)
        try Shell.must(["chown", "65534", home])
        try isRefused("\(home) belongs to user nobody")
    }

    @Test func `root can list another user's store as trusted`() throws {
        try Shell.must(["chown", "-R", "65534", path])
        let ended = try moult(["apply", manifest])
        let list = "/etc/moult/trusted-stores"
        let command = try #require(ended.errors.split(separator: "write there: ").last).split(separator: "\n")[0]
        let before = try Files.read(list, limit: 1 << 20)
        try Shell.must(["sh", "-ec", String(command)])
        defer {
            if let before { try? Files.replace(list, with: before, mode: 0o644) } else { try? Files.remove(list) }
        }
        #expect(try moult(["apply", manifest]).status == 0)
        #expect(try Files.facts(trace) != nil)
    }

    /// A process that can open a file for reading could lock it and block every update.
    @Test func `a user who may only read cannot take the lock of the store`() throws {
        #expect(try moult(["apply", manifest]).status == 0)
        // An older version created the lock file with this mode.
        try Shell.must(["chmod", "644", "\(path)/.moult/lock"])
        #expect(try moult(["clean"]).status == 0)
        let ended = try Shell.run([
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "flock", "-n", "\(path)/.moult/lock", "true",
        ])
        #expect(ended.status != 0)
        #expect(ended.errors.contains("Permission denied"))
        #expect(try moult(["status"], as: 65534).status == 0)
    }

    @Test func `no program in settings that another user can write to is run`() throws {
        try Shell.must(["chown", "-R", "65534:65534", path])
        #expect(try moult(["plan", manifest], as: 65534).status == 2)
        try Shell.must(["chmod", "666", "\(path)/moult.json"])
        let ended = try moult(["apply", manifest], as: 65534)
        #expect(ended.status == 3)
        #expect(ended.errors.contains("To fix this: chmod go-w \(path)/moult.json"), "\(ended)")
        try Shell.must(["chown", "65533", "\(path)/moult.json"])
        #expect(try moult(["plan", manifest], as: 65534).status == 3)
        #expect(try moult(["status"], as: 65534).status == 0)
        #expect(try Files.facts(trace) == nil)
    }

    /// The plan names the store, so that no option does.
    @Test func `root applies a saved plan only in a store that no other user can change`() throws {
        let plan = scratch.path("saved.plan")
        #expect(try moult(["plan", manifest, "--output", plan]).status == 2)
        try Shell.must(["chown", "65534", "\(path)/.moult"])
        let ended = try Shell.run([BuiltMoult.path(), "apply", "--plan", plan])
        #expect(ended.status == 3 && ended.errors.contains("root does not use the store"), "\(ended)")
    }

    @Test(arguments: [
        ("chown 65534", "plan", "belongs to user \(Files.userName(65534))"),
        ("chmod 666", "plan", "is writable by other users"),
        ("chown 65534", "", "belongs to user \(Files.userName(65534))"), ("chmod 775", "", "is writable by its group"),
        ("chown -h 65534", "link", "is a link of user \(Files.userName(65534))"),
    ])
    func `root applies no saved plan that another user can change`(
        _ change: String, _ part: String, _ why: String
    ) throws {
        let home = try scratch.directory("home")
        try Shell.must(["chmod", "755", home])
        #expect(try moult(["plan", manifest, "--output", "\(home)/plan"]).status == 2)
        try Files.symlink(to: "\(home)/plan", at: "\(home)/link")
        let changed = part.isEmpty ? home : "\(home)/\(part)"
        try Shell.must(change.split(separator: " ").map(String.init) + [changed])
        let plan = "\(home)/\(part == "link" ? "link" : "plan")"
        let ended = try Shell.run([BuiltMoult.path(), "apply", "--plan", plan])
        #expect(ended.status == 3)
        #expect(
            ended.errors == """
                moult: error: root does not apply the plan \(plan): \(changed) \(why): a user who can change the plan determines which release is installed, and with which options
                  Copy the plan to a directory that only root can write to, read the copy, and apply it. To copy it: install -m 600 \(plan) ~root/

                """, "\(ended)")
        #expect(try Files.facts(trace) == nil)
        try Shell.must(["chown", "-h", "0", home, "\(home)/plan", "\(home)/link"])
        try Shell.must(["chmod", "go-w", home, "\(home)/plan"])
        #expect(try Shell.run([BuiltMoult.path(), "apply", "--plan", plan]).status == 0)
    }

    /// A user who can write to the settings can also remove the keys and the programs from them.
    @Test(arguments: ["every user", "a group with other members", "an access control list"])
    func `settings that another user can write to are refused, whatever they specify`(_ writer: String) throws {
        try Shell.must(["chown", "-R", "65534:65534", path])
        let settings = "\(path)/moult.json"
        try Files.replace(settings, with: Array(#"{"moult": 1, "product": "org.example.test"}"#.utf8), mode: 0o644)
        var group = "65534"
        switch writer {
        case "every user": try Shell.must(["chmod", "666", settings])
        case "a group with other members":
            group = "100"
            try Shell.must(["chmod", "664", settings])
        default:
            let list = """
                import os, struct, sys
                entries = [(1, 6, 0xffffffff), (2, 6, 1), (4, 4, 0xffffffff), (0x10, 6, 0xffffffff), (0x20, 4, 0xffffffff)]
                value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
                os.setxattr(sys.argv[1], "system.posix_acl_access", value)
                """
            let ended = try Shell.run(["python3", "-c", list, settings])
            if ended.status != 0 { try Test.cancel("the file system has no access control lists") }
        }
        try Shell.must(["chown", "65534:\(group)", settings])
        let ended = try Shell.run([
            "setpriv", "--reuid=65534", "--regid=\(group)", "--clear-groups", BuiltMoult.path(), "apply", manifest,
            "--store",
            path,
        ])
        #expect(ended.status == 3 && ended.errors.contains("chmod go-w \(settings)"), "\(ended)")
    }

    @Test func `root creates no cache at a path that another user can change`() throws {
        let home = try scratch.directory("home")
        try Shell.must(["mkdir", scratch.path("own")])
        try Files.writeNew(Array("CREATE TABLE t(x);".utf8), to: scratch.path("s.sql"))
        try Shell.must(["ln", "-s", scratch.path("own"), "\(home)/cache"])
        try Shell.must(["chown", "-h", "65534", home, "\(home)/cache"])
        let words = ["cache", "\(home)/cache/app.db", "--schema", scratch.path("s.sql")]
        let ended = try Shell.run([BuiltMoult.path()] + words)
        let why = "\(home) belongs to user \(Files.userName(65534))"
        #expect(ended.status == 3 && ended.errors.contains(why), "\(ended)")
        #expect(try Files.list(scratch.path("own")) == [])
    }

    /// Any user who may read a directory can lock it.
    @Test func `a lock on the directory of a cache does not block the cache`() throws {
        try Files.writeNew(Array("CREATE TABLE t(x);".utf8), to: scratch.path("s.sql"))
        let home = try scratch.directory("home")
        let words = ["cache", "\(home)/app.db", "--schema", scratch.path("s.sql")]
        let ended = try Shell.run(["timeout", "10", "flock", home, BuiltMoult.path()] + words)
        #expect(ended.status == 2, "\(ended)")
    }

    /// In a directory in which an app may create files, the app could exchange a directory behind its link at any moment.
    @Test func `root opens no database through a link of an app, not even to a file of the app`() throws {
        #expect(try moult(["apply", manifest]).status == 0)
        let data = try scratch.directory("data")
        try Shell.must(["chmod", "1777", path])
        try Shell.must(["mv", "\(path)/diary.db", "\(data)/diary.db"])
        try Files.symlink(to: "\(data)/diary.db", at: "\(path)/diary.db")
        try Shell.must(["chown", "-hR", "65534", data, "\(path)/diary.db"])
        let why = "the symbolic link \(path)/diary.db belongs to user \(Files.userName(65534))"
        for words in [["sql", "SELECT * FROM diary.note"], ["sql", "--write", "INSERT INTO diary.note VALUES(1)"]] {
            let ended = try moult(words)
            #expect(ended.status == 3 && ended.errors.contains(why), "\(words): \(ended)")
        }
        for words in [["verify"], ["verify", "--deep"], ["status"]] {
            let ended = try moult(words)
            #expect(ended.output.contains(/✗ +diary/), "\(words): \(ended)")
        }
        #expect(try Files.list(data) == ["diary.db"])
    }

    /// The link could lead to the other store after the check.
    @Test func `a link of another user to a trusted store is not trusted`() throws {
        #expect(try moult(["apply", manifest]).status == 0)
        try Shell.must(["chown", "-R", "65533", path])
        let home = try scratch.directory("home")
        try Files.symlink(to: path, at: "\(home)/store")
        try Shell.must(["chown", "-hR", "65534", home])
        func status(_ store: String) throws -> Shell.Ended {
            try Shell.run([
                "unshare", "-m", "sh", "-c",
                #"mkdir -p /etc/moult && mount -t tmpfs none /etc/moult && echo "$1" > /etc/moult/trusted-stores && exec "$0" status --store "$2""#,
                BuiltMoult.path(), path, store,
            ])
        }
        #expect(try status(path).status == 0)
        let ended = try status("\(home)/store")
        #expect(ended.status == 3 && ended.errors.contains("root does not use the store \(home)/store"), "\(ended)")
        try Shell.must(["chown", "-h", "0", home, "\(home)/store"])
        #expect(try status("\(home)/store").status == 0)
    }
}
