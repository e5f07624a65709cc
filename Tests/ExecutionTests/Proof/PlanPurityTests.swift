import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// `plan` and the other read-only commands do not change the store in any way.
@Suite(.tags(.thorough, .slow)) struct PlanPurityTests {
    static let looking: [(command: [String], status: Int32)] = [
        (["plan", "MANIFEST"], 0), (["status"], 0), (["verify", "--deep"], 0), (["history"], 0), (["attach"], 0),
        (["rollback", "--dry-run"], 2), (["clean", "--dry-run"], 0),
    ]

    @Test func `read-only commands and dry runs change nothing in a store with a database in WAL mode`() throws {
        let world = try World()
        let moult = try BuiltMoult.path()
        try Shell.must([moult, "apply", world.second, "--store", world.store])
        _ = try Shell.must([
            "sqlite3", "\(world.store)/user.db", "PRAGMA journal_mode=wal; INSERT INTO note VALUES('x')",
        ])
        let before = try Tree(world.store)
        for (arguments, status) in Self.looking {
            let line = arguments.map { $0 == "MANIFEST" ? world.second : $0 }
            let ended = try Shell.run([moult] + line + ["--store", world.store])
            #expect(ended.status == status, "\(line): \(ended.errors)")
            #expect(try Tree(world.store) == before, "\(line)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root may mount")) func `plan reads a store on a read-only mount`() throws {
        let world = try World()
        let moult = try BuiltMoult.path()
        let place = try world.scratch.directory("mounted")
        try Shell.must(["mount", "--bind", world.store, place])
        defer { _ = try? Shell.run(["umount", place]) }
        try Shell.must(["mount", "-o", "remount,ro,bind", place])
        let before = try Tree(world.store)
        let plan = try Shell.run([moult, "plan", world.second, "--store", place])
        #expect(plan.status == 2, "\(plan.errors)")
        #expect(plan.output.contains("its file system is read-only, so apply fails"), "\(plan)")
        #expect(try Shell.run([moult, "status", "--store", place]).status == 0)
        #expect(try Shell.must([moult, "sql", "SELECT count(*) FROM food.food", "--store", place]).contains("200"))
        let apply = try Shell.run([moult, "apply", world.second, "--store", place])
        #expect(apply.status == 1)
        #expect(apply.errors.contains("Read-only file system"))
        #expect(try Tree(world.store) == before)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may mount"))
    func `insufficient disk space is detected before anything changes`() throws {
        let scratch = try Scratch()
        let small = try scratch.directory("small")
        try Shell.must(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", small])
        defer { _ = try? Shell.run(["umount", small]) }
        let maker = try ReleaseMaker(in: scratch.path("release"))
        let manifest = try maker.make(
            "1.0.0", sequence: 1,
            [.reference("food", "CREATE TABLE food(x); INSERT INTO food VALUES(zeroblob(2000000));")])
        let moult = try BuiltMoult.path()
        try Shell.must([moult, "init", "\(small)/store", "--product", maker.product])
        let before = try Tree(small)
        for verb in ["plan", "apply"] {
            let ended = try Shell.run([moult, verb, manifest, "--store", "\(small)/store"])
            #expect(ended.status == 3)
            #expect(
                ended.errors.contains(
                    "not enough space in \(small)/store: the update needs 1.91 MiB and a reserve of 256 KiB, but only "),
                "\(ended.errors)")
            // The store has no generation that `clean` could remove.
            #expect(ended.errors.contains("\n  Free at least "), "\(ended.errors)")
            #expect(
                ended.errors.hasSuffix(" on the file system of \(small)/store, then try again.\n"), "\(ended.errors)")
        }
        #expect(try Tree(small) == before)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may mount"))
    func `if disk space is insufficient, clean is advised only if it would remove a generation`() throws {
        let scratch = try Scratch()
        let small = try scratch.directory("small")
        try Shell.must(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", small])
        defer { _ = try? Shell.run(["umount", small]) }
        let maker = try ReleaseMaker(in: scratch.path("release"))
        let moult = try BuiltMoult.path()
        let store = "\(small)/store"
        try Shell.must([moult, "init", store, "--product", maker.product])
        func release(_ number: Int, bytes: Int) throws -> String {
            try maker.make(
                "\(number).0.0", sequence: number,
                [.reference("food", "CREATE TABLE food(x); INSERT INTO food VALUES(zeroblob(\(bytes)));")])
        }
        for number in 1...2 {
            try Shell.must([moult, "apply", "-q", release(number, bytes: number), "--store", store])
        }
        let large = try release(3, bytes: 2_000_000)
        let command = "moult clean --keep 1"
        // A generation that was replaced less than a minute ago stays.
        #expect(try !Shell.run([moult, "plan", large, "--store", store]).errors.contains(command))
        try Shell.must(["sed", "-i", #"s/"keep"/"minimumAge": 0, &/"#, "\(store)/moult.json"])
        let errors = try Shell.run([moult, "plan", large, "--store", store]).errors
        #expect(
            errors.hasSuffix(
                " on the file system of \(store), or remove kept generations with: \(command) --store \(store)\n"),
            "\(errors)")
        try Shell.must([moult, "clean", "--keep", "1", "--store", store])
        #expect(try !Shell.run([moult, "plan", large, "--store", store]).errors.contains(command))
    }
}
