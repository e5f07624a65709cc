import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A replacement that is killed, stopped by a signal, or runs out of space.
extension ReplaceTests {
    static let calls = ["renameat2", "linkat", "unlink", "unlinkat", "mkdirat", "fsync", "fdatasync", "pwrite64"]

    /// Runs a command once for each change of the file system that it makes, and kills it there. Returns the number of kills.
    private func forEachKill(
        of line: String, prepare: () throws -> Void = {}, _ check: (_ call: String) throws -> Void
    ) throws -> Int {
        var count = 0
        for call in Self.calls {
            var number = 1
            while true {
                try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
                try prepare()
                let ended: Shell.Ended = try scratch.run(
                    "strace -qq -o /dev/null -e trace=\(call) -e inject=\(call):signal=KILL:when=\(number) \(line)")
                if ended.status == 0 { break }
                try check("\(call) \(number)")
                (count, number) = (count + 1, number + 1)
            }
        }
        return count
    }

    private func begin(_ mode: String) throws {
        try scratch.must(
            "sqlite3 app.db \"PRAGMA journal_mode = \(mode); INSERT INTO note(v) VALUES('mine')\" > mode; mkdir pristine && mv app.db pristine"
        )
    }

    /// What fails after the commit no longer changes the result.
    @Test(arguments: ["delete", "wal"])
    func `if a call fails, the exit status tells which content the file has`(mode: String) throws {
        try begin(mode)
        var endings: Set<Bool> = []
        for call in ["renameat2", "unlinkat", "unlink"] {
            for number in 1... {
                try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
                let ended: Shell.Ended = try scratch.run(
                    "strace -f -qq -o trace -e trace=\(call) -e inject=\(call):error=EIO:when=\(number) "
                        + "moult replace app.db new1.db --preserve note")
                guard try scratch.text("trace").contains("INJECTED") else { break }
                let isNew = try content() == "new1\nmine\n"
                #expect((ended.status == 0) == isNew, "\(call) \(number): \(ended)")
                endings.insert(isNew)
                try scratch.must("moult replace -q app.db new1.db --preserve note && moult replace -q --undo app.db")
                #expect(try content() == "old\nmine\n", "\(call) \(number)")
            }
        }
        #expect(endings.count == 2)
    }

    /// SQLite removes the -shm before the -wal when the last connection is closed.
    @Test func `a file whose last program was killed while it closed can be replaced`() throws {
        try begin("wal")
        try scratch.must("cp pristine/app.db app.db; : > app.db-wal; moult replace -q app.db new1.db --preserve note")
        #expect(try content() == "new1\nmine\n")
    }

    /// After a kill, the same command replaces the file once: one undo restores the old content.
    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `a replacement killed at any call leaves the old or the new content, and can be repeated`(mode: String) throws
    {
        try begin(mode)
        var seen = Set<String>()
        let count = try forEachKill(of: "moult replace app.db new1.db --preserve note") { call in
            let after = try content()
            #expect(["old\nmine\n", "new1\nmine\n"].contains(after), "\(call): \(after)")
            seen.insert(after)
            try scratch.must("moult replace app.db new1.db --preserve note")
            #expect(try content() == "new1\nmine\n", "\(call)")
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == "old\nmine\n", "\(call)")
            let more: Shell.Ended = try scratch.run("moult replace --undo app.db")
            #expect(more.status == 3, "\(call): \(more)")
            #expect(try scratch.must("ls -A .app.db.moult") == "0001-replaced\n0002-undone\n", "\(call)")
        }
        #expect(seen.count == 2 && count > 30, "\(count) \(seen)")
    }

    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `an undo killed at any call is completed by the same command, and goes back once`(mode: String) throws {
        try begin(mode)
        var seen = Set<String>()
        let count = try forEachKill(of: "moult replace --undo app.db") {
            for number in 1...2 { try scratch.must("moult replace -q app.db new\(number).db") }
        } _: { call in
            let after = try content()
            #expect(["new2\n", "new1\n"].contains(after), "\(call): \(after)")
            seen.insert(after)
            // The last calls, after the undo is recorded, only remove files of the command.
            if try !scratch.must("ls .app.db.moult").contains("undone\n") {
                try scratch.must("moult replace --undo app.db")
                #expect(try content() == "new1\n", "\(call)")
            }
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == "old\nmine\n", "\(call)")
        }
        #expect(seen.count == 2 && count > 20, "\(count) \(seen)")
    }

    @Test(.tags(.thorough)) func `an undo after a killed replacement restores the old content or has nothing to undo`()
        throws
    {
        try begin("delete")
        var statuses = Set<Int32>()
        let count = try forEachKill(of: "moult replace app.db new1.db") { call in
            let undo: Shell.Ended = try scratch.run("moult replace --undo app.db")
            let isNothing = undo.status == 3 && undo.errors.contains("nothing to undo for app.db")
            #expect(undo.status == 0 || isNothing, "\(call): \(undo)")
            statuses.insert(undo.status)
            #expect(try content() == "old\nmine\n", "\(call)")
        }
        #expect(statuses == [0, 3] && count > 20, "\(count) \(statuses)")
    }

    /// Each write of a page takes 5 ms here, so copying the new file would take half a minute.
    @Test func `a signal stops the copy of a large file at once`() throws {
        try scratch.must("sqlite3 large.db 'CREATE TABLE t AS SELECT zeroblob(24000000)'")
        let line = """
            strace -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:delay_enter=5000 moult replace app.db large.db &
            until [ -s .app.db.moult/work.0/new.db ]; do sleep 0.01; done
            begun=$(date +%s); pkill -TERM -P $!; wait $!
            status=$?; echo "$status $(($(date +%s) - begun < 15))"
            """
        let ended: Shell.Ended = try scratch.run(line)
        #expect(ended.output == "1 1\n" && ended.errors.contains("interrupted before anything was changed"), "\(ended)")
        #expect(try content() == "old\n" && scratch.must("ls -A").split(separator: "\n").contains("app.db"))
        #expect(try !scratch.must("ls -A").contains(".app.db.moult"))
    }

    /// Rows that the program commits after the kill are in the file afterwards, or in the copy that an undo restores.
    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `a killed replacement loses no later commit of a program that has the file open`(mode: String) throws {
        try begin(mode)
        var (late, app) = (0, App?.none)
        let count = try forEachKill(of: "moult replace app.db new1.db") {
            app?.quit()
            app = try App(opens: scratch.path("app.db"), "SELECT * FROM t")
        } _: { call in
            let isOld = try scratch.must("sqlite3 app.db 'SELECT x FROM t'") == "old\n"
            try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('late')\"")
            try scratch.must("moult replace --yes app.db new1.db")
            late += isOld ? 1 : 0
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == (isOld ? "old\nmine\nlate\n" : "new1\nlate\n"), "\(call)")
        }
        app?.quit()
        #expect(late > 0 && late < count && count > 20, "\(late) of \(count)")
    }

    @Test func `an undo that fails because the disk is full is completed by the same command`() throws {
        try scratch.must("moult replace app.db new1.db && mkdir pristine && cp -a app.db .app.db.moult pristine")
        var number = 1
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp -a pristine/. .")
            let ended: Shell.Ended = try scratch.run(
                "strace -f -qq -o trace -e trace=write,pwrite64 -e inject=write,pwrite64:error=ENOSPC:when=\(number) moult replace -q --undo app.db"
            )
            #expect([0, 3].contains(ended.status), "write \(number): \(ended)")
            let again: Shell.Ended = try scratch.run("moult replace -q --undo app.db")
            #expect(again.status == 0 || again.status == 3 && ended.status == 0, "write \(number): \(again)")
            #expect(try content() == "old\n", "write \(number)")
            if try !scratch.must("cat trace").contains("INJECTED") { break }
            number += 1
        }
        #expect(number > 5, "\(number)")
    }

    @Test func `two replacements run one after the other, and one can be repeated after a kill`() throws {
        let both =
            "(moult replace app.db new1.db --wait 60; echo $?) & moult replace app.db new2.db --wait 60; echo $?; wait"
        let text = try scratch.must(both)
        #expect(text.split(separator: "\n").count { $0 == "0" } == 2, "\(text)")
        #expect(["new1\n", "new2\n"].contains(try content()))
        let words = "--preserve note --check 'SELECT count(*) FROM t >= 1'"
        let plan: Shell.Ended = try scratch.run("moult replace --dry-run app.db new3.db \(words)")
        let shown = try #require(plan.output.split(separator: "apply with: ").last)
        #expect(shown.contains("--preserve note") && shown.contains("--check 'SELECT count(*) FROM t >= 1'"))
        try scratch.must("\(shown)")
        #expect(try content() == "new3\n")
        try scratch.must("cp app.db ./-a.db")
        let hint = try #require(scratch.must("moult replace -- -a.db new1.db").split(separator: "content with: ").last)
        try scratch.must("\(hint)")
    }

    @Test func `SIGTERM ends a replacement that waits for a program's transaction`() throws {
        let holder = try Program.python(
            """
            import sqlite3, sys
            db = sqlite3.connect(sys.argv[1], isolation_level=None); db.execute("BEGIN IMMEDIATE")
            print("ready"); sys.stdin.read()
            """, scratch.path("app.db"))
        #expect(holder.line() == "ready")
        let replacement = try Program([BuiltMoult.path(), "replace", scratch.path("app.db"), scratch.path("new1.db")])
        // Once the old content is copied, the command has nothing to do but wait.
        let copy = scratch.path(".app.db.moult/work.0/old.db")
        func waits() throws -> Bool { try (Files.facts(copy)?.size ?? 0) > 0 }
        while try replacement.isRunning && !waits() { usleep(1000) }
        let start = ContinuousClock.now
        replacement.signal(SIGTERM)
        #expect(replacement.wait() == 1)
        // An attempt takes a second, and the command waits up to ten seconds for programs.
        #expect(ContinuousClock.now - start < .seconds(6))
        holder.closeInput()
        #expect(holder.wait() == 0)
        #expect(try content() == "old\n")
        try scratch.must("moult replace app.db new1.db")
        #expect(try content() == "new1\n")
    }
}
