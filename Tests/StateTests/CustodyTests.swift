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
        let doctor = try moult(["doctor"], store: store)
        #expect(doctor.status == 1)
        // The text is wrapped, and names the file first.
        let said = doctor.output.replacing("\n", with: " ").replacing(": it ", with: " ")
        #expect(said.contains(culprit), "\(doctor)")
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
        #expect(try moult(["doctor"]).status == 0)
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
        try Shell.must(["sh", "-c", String(command)])
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
}
