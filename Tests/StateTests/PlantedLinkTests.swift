import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Links in place of internal directories lead to files of other users. No command may remove, change or move these
/// files.
@Suite(.tags(.thorough)) struct PlantedLinkTests {
    private let scratch: Scratch
    private let releases: CopiedStore.Releases
    private let store: CopiedStore
    private var hidden: String { "\(store.path)/.moult" }
    private var victim: String { scratch.path("victim") }

    init() throws {
        scratch = try Scratch()
        releases = try CopiedStore.Releases()
        store = try CopiedStore.make(.quarantine, at: scratch.path("store"), releases)
        // The planted links have valid names of transactions, sets and generations.
        for name in [
            "20260101000000-0a0b0c0d", "20260101000000-0a0b0c0d-diary", "1.0.0+00000000", ".removed-x", "plain",
        ] {
            try Shell.must(["mkdir", "-p", "\(victim)/\(name)/below"])
            try Files.writeNew(Array("VICTIM".utf8), to: "\(victim)/\(name)/file")
            try Files.writeNew(Array("VICTIM".utf8), to: "\(victim)/\(name)/below/file")
        }
        try Files.writeNew(Array("VICTIM".utf8), to: "\(victim)/file")
    }

    private var verbs: [[String]] {
        [
            ["status"], ["verify", "--deep"], ["status", "--deep"], ["history"], ["status", "--processes"],
            ["plan", releases.manifest(2)],
            ["clean", "--keep", "1", "--quarantine-older-than", "0", "--including-user-data"], ["recover"],
            ["apply", releases.manifest(2)], ["apply", releases.manifest(1)], ["rollback"],
            ["reset", "diary", "--set-user-data-aside"], ["quarantine", "list"], ["hold", "9.0.0", "--reason", "x"],
            ["sql", "SELECT 1"],
        ]
    }

    private func attack(through wrapper: [String] = []) throws {
        let before = try Tree(victim)
        for words in verbs {
            let ended = try Shell.run(
                ["timeout", "60"] + wrapper + [BuiltMoult.path()] + words + ["--store", store.path])
            #expect(ended.status != 124 && ended.status >= 0, "\(words): \(ended)")
            #expect(try Tree(victim) == before, "\(words): \(ended)")
        }
    }

    private func plant(_ name: String) throws {
        if try Files.facts("\(hidden)/\(name)") != nil {
            try Files.rename("\(hidden)/\(name)", to: scratch.path("aside"))
        }
        try Files.symlink(to: victim, at: "\(hidden)/\(name)")
    }

    private static let directories = ["transactions", "generations", "quarantine", "downloads", "feed", "leases"]

    /// An ordinary user owns both the store and the files behind the link, so only moult's checks prevent changes to
    /// them.
    private static let ordinary = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    private func giveToOrdinaryUser() throws {
        try Shell.must(["chmod", "755", scratch.path, Files.directory(of: releases.manifest(1))])
        try Shell.must(["chown", "-hR", "65534:65534", store.path, victim])
        #expect(try Shell.run(Self.ordinary + ["touch", "\(victim)/file"]).status == 0)
        let status = try Shell.run(Self.ordinary + [BuiltMoult.path(), "status", "--store", store.path])
        #expect(status.status == 0, "\(status)")
    }

    @Test(arguments: directories) func `no command changes anything behind a link in place of a directory`(
        _ name: String
    ) throws {
        try plant(name)
        try attack()
    }

    @Test(.enabled(if: geteuid() == 0, "only root may become another user"), arguments: directories)
    func `no command of an ordinary user changes anything behind a link in place of a directory`(_ name: String) throws
    {
        try giveToOrdinaryUser()
        try plant(name)
        try Shell.must(["chown", "-h", "65534:65534", "\(hidden)/\(name)"])
        try attack(through: Self.ordinary)
    }

    @Test(arguments: ["transactions", "generations"])
    func `without openat2, no command changes anything behind a link in place of a directory`(_ name: String) throws {
        let older = try OlderKernel.withoutOpenat2(in: scratch.path)
        #expect(try Shell.run([older, BuiltMoult.path(), "status", "--store", store.path]).status == 0)
        try Shell.must([older, BuiltMoult.path(), "apply", releases.manifest(2), "--store", store.path])
        try plant(name)
        try attack(through: [older])
    }

    @Test func `the message about a planted link says how to remove the link`() throws {
        try plant("transactions")
        let ended = try store.moult(["clean"])
        #expect(ended.status == 1, "\(ended)")
        let text = ended.errors.replacing("\n", with: " ")
        #expect(text.contains("\(hidden)/transactions is a symbolic link"), "\(ended)")
        #expect(text.contains("rm \(hidden)/transactions"), "\(ended)")
        try Shell.must(["rm", "\(hidden)/transactions"])
        try store.must("clean")
    }

    @Test func `no command changes anything behind a link in place of a generation, a transaction or a set`() throws {
        let generation = Files.name(of: try Files.resolved("\(hidden)/current"))
        try Files.symlink(to: victim, at: "\(hidden)/generations/0.9.0+00000000")
        try Files.symlink(to: victim, at: "\(hidden)/transactions/20260101000000-0a0b0c0d")
        try Files.symlink(to: victim, at: "\(hidden)/quarantine/20260101000000-0a0b0c0d-diary")
        try attack()
        // An ordinary user can move only a directory that this user may write to.
        try Files.setMode("\(hidden)/generations/\(generation)", 0o755)
        try Files.rename("\(hidden)/generations/\(generation)", to: scratch.path("aside"))
        try Files.symlink(to: victim, at: "\(hidden)/generations/\(generation)")
        try attack()
    }

    @Test func `a store behind the operator's own links works`() throws {
        try Files.symlink(to: store.path, at: scratch.path("link"))
        let behind = CopiedStore(path: scratch.path("link"))
        try behind.must("apply", releases.manifest(2))
        try Files.rename(hidden, to: scratch.path("elsewhere"))
        try Files.symlink(to: scratch.path("elsewhere"), at: hidden)
        try behind.must("rollback")
        try behind.must("clean", "--keep", "1")
        try behind.must("verify", "--deep")
        // The release is read through `current`, the only link in `.moult` that moult creates.
        try behind.must("apply", "\(hidden)/current/manifest.json")
    }

    @Test func `removing a tree follows no link and also removes directories without permissions`() throws {
        let tree = try scratch.directory("tree")
        try Shell.must(["mkdir", "-p", "\(tree)/a/b/c"])
        try Files.writeNew([], to: "\(tree)/a/b/file")
        try Shell.must(["mkfifo", "\(tree)/a/pipe"])
        try Files.symlink(to: victim, at: "\(tree)/a/b/link")
        try Shell.must(["chmod", "0", "\(tree)/a/b/c", "\(tree)/a/b"])
        try Shell.must(["chmod", "555", "\(tree)/a"])
        let before = try Tree(victim)
        try Files.removeTree(tree)
        #expect(try Files.facts(tree) == nil)
        #expect(try Tree(victim) == before)
    }

    @Test(arguments: ["diary.db", "diary.db-wal"])
    func `nothing behind a link in quarantine is exported or restored`(_ name: String) throws {
        let set = try #require(try Files.list("\(hidden)/quarantine").first { $0.hasSuffix("-diary") })
        try Files.remove("\(hidden)/quarantine/\(set)/\(name)")
        let secret = scratch.path("secret.db")
        try Shell.must(["sqlite3", secret, "CREATE TABLE note(t); INSERT INTO note VALUES('SECRET');"])
        try Files.symlink(to: secret, at: "\(hidden)/quarantine/\(set)/\(name)")
        for words in [["--export", scratch.path("out.db")], ["--restore"], ["--restore", "--table", "note"]] {
            let ended = try store.moult(["quarantine"] + words + [set])
            // A file that SQLite would not read next to the database is left out.
            #expect(name != "diary.db" || ended.status != 0, "\(words): \(ended)")
        }
        // grep does not follow links within a tree.
        #expect(try Shell.run(["grep", "-rlsa", "SECRET", store.path, scratch.path("out.db")]).output.isEmpty)
    }

    // MARK: root in another user's store

    /// Files that the owner of a store can plant in it before root runs a command there.
    @Test(
        .enabled(if: geteuid() == 0, "only root may become another user"),
        arguments: [
            "ln -s $victim .moult/planted && mv -T .moult/planted .moult/downloads",
            "rm -r .moult/transactions; ln -s $victim .moult/transactions",
            "mv .moult/generations aside; ln -s $victim .moult/generations",
            "rm -f diary.db; ln -s $secret diary.db",
            "mv moult.json old; mkfifo moult.json", "mv .moult/history.jsonl old; mkfifo .moult/history.jsonl",
            "sed -i '1s|{|{\"consumers\":[{\"name\":\"x\",\"command\":{\"reload\":[\"touch\",\"'$victim'/trace\"]}}],|' moult.json",
            "flock -x .moult/lock sleep 600 & flock -x .moult/current sleep 600 &",
        ])
    func `root refuses a store in which another user has planted files`(_ planting: String) throws {
        let secret = "\(victim)/root-only.db"
        try Shell.must(["sqlite3", secret, "CREATE TABLE note(t); INSERT INTO note VALUES('ROOT');"])
        try Shell.must(["chmod", "600", secret])
        try Shell.must(["chmod", "755", scratch.path])
        try Shell.must(["chown", "-hR", "65534:65534", store.path])
        let planted = try Program(
            Self.ordinary + [
                "env", "victim=\(victim)", "secret=\(secret)", "sh", "-c",
                "cd \(store.path) && { \(planting)\n} > /dev/null 2>&1; echo ready; read -r line; kill 0",
            ])
        #expect(planted.line() == "ready")
        let before = try Tree(victim)
        for words in verbs {
            let ended = try Shell.run(["timeout", "60", BuiltMoult.path()] + words + ["--store", store.path])
            #expect(ended.status != 124 && ended.status > 0, "\(words): \(ended)")
            #expect(
                words == ["status", "--deep"] || ended.errors.contains("root does not use the store"),
                "\(words): \(ended)")
        }
        #expect(try Tree(victim) == before)
        planted.closeInput()
    }

    @Test(.enabled(if: geteuid() == 0, "only root may list a store as trusted"))
    func `in a trusted store of another user, root follows no link of that user to a database`() throws {
        let secret = scratch.path("root-only.db")
        try Shell.must([
            "sqlite3", secret, "CREATE TABLE note(t); PRAGMA user_version = 1; INSERT INTO note VALUES('ROOT');",
        ])
        try Shell.must(["chmod", "600", secret])
        try Files.remove("\(store.path)/diary.db")
        try Files.symlink(to: secret, at: "\(store.path)/diary.db")
        try Shell.must(["chown", "-hR", "65534", store.path])
        let before = try Files.read(secret, limit: 1 << 20)
        // The script runs in a mount namespace, so that the list of trusted stores on this machine does not change.
        let script = "mkdir -p /etc/moult && mount -t tmpfs none /etc/moult && echo \"$0\" > /etc/moult/trusted-stores"
        let listed = ["unshare", "-m", "sh", "-c", "\(script) && exec \"$@\"", store.path]
        #expect(
            try Shell.run(listed + [BuiltMoult.path(), "sql", "SELECT 1", "--store", store.path]).errors.contains(
                "root does not use") == false)
        try attack(through: listed)
        #expect(try Files.read(secret, limit: 1 << 20) == before)
        #expect(try Files.facts("\(secret)-wal") == nil)
        #expect(try Files.facts("\(secret)-journal") == nil)
    }
}
