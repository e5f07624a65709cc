import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A replacement that is killed, stopped by a signal, or runs out of space.
extension ReplaceTests {
    /// After a kill at any change of the file system, `moult replace` can be run again.
    @Test(.tags(.thorough)) func `a replacement killed at any call leaves the old or the new content`() throws {
        try scratch.must(
            "sqlite3 app.db \"INSERT INTO note(v) VALUES('mine')\" && mkdir pristine && mv app.db pristine")
        let calls = "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdirat,openat,fsync,fdatasync,pwrite64"
        var (number, seen) = (1, Set<String>())
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
            let ended: Shell.Ended = try scratch.run(
                "strace -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult replace app.db new1.db --preserve note"
            )
            let after = try content()
            #expect(["old\nmine\n", "new1\nmine\n"].contains(after), "call \(number): \(after)")
            seen.insert(after)
            if ended.status == 0 { break }
            let again: Shell.Ended = try scratch.run("moult replace app.db new2.db --preserve note")
            #expect(again.status == 0, "call \(number): \(again)")
            #expect(try content() == "new2\nmine\n", "call \(number)")
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == after || content() == "new1\nmine\n", "call \(number)")
            number += number < 40 ? 1 : 7
        }
        #expect(seen.count == 2 && number > 60, "\(number) \(seen)")
    }

    @Test(.tags(.thorough))
    func `an undo after a killed first replacement restores the old content or has nothing to undo`() throws {
        try scratch.must("mkdir pristine && mv app.db pristine")
        let calls = "renameat2,unlinkat,mkdirat,fsync,symlinkat"
        var (number, statuses) = (1, Set<Int32>())
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
            let ended: Shell.Ended = try scratch.run(
                "strace -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult replace app.db new1.db"
            )
            if ended.status == 0 { break }
            let status: Shell.Ended = try scratch.run("moult status --store .app.db.moult")
            #expect(!status.output.contains("apply RELEASE"), "call \(number): \(status)")
            let undo: Shell.Ended = try scratch.run("moult replace --undo app.db")
            let isNothing = undo.status == 3 && undo.errors.contains("nothing to undo for app.db")
            #expect(undo.status == 0 || isNothing, "call \(number): \(undo)")
            statuses.insert(undo.status)
            #expect(try content() == "old\n", "call \(number)")
            try scratch.must("moult replace app.db new2.db")
            number += 3
        }
        #expect(statuses == [0, 3] && number > 30, "\(number) \(statuses)")
    }

    /// The same command completes an interrupted replacement, so that a single undo restores the old content.
    @Test(.tags(.thorough)) func `a replacement killed at any call and repeated replaces the file once`() throws {
        try scratch.must("mkdir pristine && mv app.db pristine")
        let calls = "renameat2,unlinkat,mkdirat,fsync,symlinkat"
        var number = 1
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
            let ended: Shell.Ended = try scratch.run(
                "strace -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult replace app.db new1.db"
            )
            try scratch.must("moult replace app.db new1.db")
            #expect(try content() == "new1\n", "call \(number)")
            if ended.status == 0 { break }
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == "old\n", "call \(number)")
            number += 1
        }
        #expect(number > 30, "\(number)")
        // If the command was not interrupted, running it again installs the new file again, and rows that the program
        // wrote in between are only in the copy.
        try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('mine')\"; moult replace app.db new1.db")
        #expect(try content() == "new1\n")
        try scratch.must("moult replace --undo app.db")
        #expect(try content() == "new1\nmine\n")
    }

    /// Each write of a page takes 5 ms here, so copying the new file would take half a minute.
    @Test func `a signal stops the copy of a large file at once`() throws {
        try scratch.must("sqlite3 large.db 'CREATE TABLE t AS SELECT zeroblob(24000000)'")
        let line = """
            strace -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:delay_enter=5000 moult replace app.db large.db &
            until [ -s .app.db.moult/release.0/.moult-pack.0/database.db ]; do sleep 0.01; done
            begun=$(date +%s); pkill -TERM -P $!; wait $!
            status=$?; echo "$status $(($(date +%s) - begun < 15))"
            """
        let ended: Shell.Ended = try scratch.run(line)
        #expect(ended.output == "1 1\n" && ended.errors.contains("stopped before anything was changed"), "\(ended)")
        #expect(try content() == "old\n" && scratch.must("ls -A").split(separator: "\n").contains("app.db"))
        #expect(try !scratch.must("ls -A").contains(".app.db.moult"))
    }

    /// The program keeps the file open, so moult writes the content into the file. Rows that the program commits after
    /// the kill are in the file afterwards, or in the copy that an undo restores.
    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `a killed replacement loses no later commit of a program that has the file open`(mode: String) throws {
        try scratch.must("sqlite3 app.db \"PRAGMA journal_mode = \(mode)\" && mkdir pristine && mv app.db pristine")
        let calls = "renameat2,linkat,unlinkat,fsync,fdatasync,pwrite64"
        var (number, late) = (1, 0)
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
            let app = try App(opens: scratch.path("app.db"), "SELECT * FROM t")
            let ended: Shell.Ended = try scratch.run(
                "strace -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult replace app.db new1.db"
            )
            if ended.status == 0 { break }
            let isOld = try scratch.must("sqlite3 app.db 'SELECT x FROM t'") == "old\n"
            try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('late')\"")
            let again: Shell.Ended = try scratch.run(
                "test ! -f .app.db.moult/moult.json || moult recover -s .app.db.moult")
            #expect(again.status == 0, "call \(number): \(again)")
            app.quit()
            if try scratch.must("sqlite3 app.db 'SELECT v FROM note'") != "late\n" {
                late += 1
                #expect(isOld)
                try scratch.must("moult replace --undo app.db")
                #expect(try content() == "old\nlate\n", "call \(number)")
            }
            number += 1
        }
        #expect(late > 0 && number > 20, "\(late) of \(number)")
    }

    /// Between the kill and the recovery, the file may have two names: its own name and that of the copy.
    @Test(.tags(.thorough), arguments: ["delete", "wal"])
    func `an undo after a killed replacement restores commits from before the recovery`(mode: String) throws {
        try scratch.must("sqlite3 app.db \"PRAGMA journal_mode = \(mode)\" && mkdir pristine && mv app.db pristine")
        let calls = "renameat2,linkat,symlinkat,fsync,fchmod"
        var (number, late) = (1, 0)
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
            let ended: Shell.Ended = try scratch.run(
                "strace -f -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult replace app.db new1.db"
            )
            if ended.status == 0 { break }
            let isOld = try scratch.must("sqlite3 app.db 'SELECT x FROM t'") == "old\n"
            try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('late')\"")
            try scratch.must("test ! -f .app.db.moult/moult.json || moult recover -s .app.db.moult")
            if try isOld && content() == "new1\n" {
                late += 1
                try scratch.must("moult replace --undo app.db")
                #expect(try content() == "old\nlate\n", "call \(number)")
            }
            number += 1
        }
        #expect(late > 2 && number > 30, "\(late) of \(number)")
    }

    /// If an undo could not record its completion, the next command still needs the record of the replaced content.
    @Test func `an undo that fails because the disk is full is completed by the same command`() throws {
        try scratch.must("moult replace app.db new1.db && mkdir pristine && cp -a app.db .app.db.moult pristine")
        var number = 1
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp -a pristine/. .")
            let ended: Shell.Ended = try scratch.run(
                "strace -f -qq -o trace -e trace=write -e inject=write:error=ENOSPC:when=\(number) moult replace -q --undo app.db"
            )
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

    @Test func `status and recover call an interrupted replacement a replacement, not an update`() throws {
        try scratch.must(
            "! strace -qq -o /dev/null -e inject=renameat2:signal=KILL:when=4 moult replace app.db new1.db")
        let text = try scratch.must("moult status -s .app.db.moult; moult recover -s .app.db.moult")
        #expect(text.contains("a replacement of app.db is unfinished\n"), "\(text)")
        #expect(text.contains("a replacement of app.db was interrupted "), "\(text)")
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
        // Once the journal of the transaction exists, the command has nothing to do but wait.
        let transactions = scratch.path(".app.db.moult/.moult/transactions")
        func waits() throws -> Bool {
            try Files.list(transactions).contains { try Files.facts("\(transactions)/\($0)/journal.jsonl") != nil }
        }
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

    /// The command is killed after the decision, while the file still has the new content: the next command completes
    /// the undo, and does not undo once more.
    @Test func `an interrupted undo is completed, and not repeated`() throws {
        for number in 1...2 { try scratch.must("moult replace app.db new\(number).db") }
        let ended: Shell.Ended = try scratch.run(
            "strace -f -qq -o log -e trace=renameat2 -e inject=renameat2:signal=KILL:when=1+ moult replace --undo app.db"
        )
        #expect(ended.status != 0)
        #expect(try content() == "new2\n")
        let again = try scratch.must("moult replace --undo app.db")
        #expect(again.contains("is now finished\n✓ app.db is restored to its state at 20"), "\(again)")
        #expect(try content() == "new1\n")
        try scratch.must("moult replace --undo app.db")
        #expect(try content() == "old\n")
    }

    /// The user sees that the command was killed, restores a backup, and runs the command again.
    @Test(.tags(.thorough)) func `a killed replacement is done again if the file was restored in between`() throws {
        try scratch.must("mkdir pristine && mv app.db pristine")
        let calls = "renameat2,unlinkat,mkdirat,fsync,symlinkat"
        var (number, replaced) = (1, 0)
        while true {
            try scratch.must("rm -rf app.db* .app.db.moult; cp pristine/app.db app.db")
            let ended: Shell.Ended = try scratch.run(
                "strace -qq -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) moult replace app.db new1.db"
            )
            if ended.status == 0 { break }
            if try content() == "new1\n" { replaced += 1 }
            try scratch.must("cp pristine/app.db app.db && moult replace app.db new1.db")
            #expect(try content() == "new1\n", "call \(number)")
            number += 2
        }
        #expect(replaced > 1 && number > 30, "\(number) \(replaced)")
    }
}
