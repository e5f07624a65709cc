import TestSupport
import Testing

/// The output path of `moult delta`.
@Suite struct DeltaVerbTests {
    private let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        let made = try scratch.moult(
            "sqlite3 old.db 'CREATE TABLE t(x)' && sqlite3 new.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'")
        try #require(made.status == 0, "\(made.err)")
    }

    @Test(arguments: ["new.db", "old.db", "notes.txt"])
    func `delta does not replace a file of another kind`(_ name: String) throws {
        let refused = try scratch.moult(
            "echo mine > notes.txt; cp \(name) kept; moult delta old.db new.db -o \(name); echo $?; cmp kept \(name)")
        #expect(refused.status == 0)
        #expect(refused.out == "1\n")
        #expect(
            refused.err
                == "moult: error: cannot write the patch to \(name): it exists and is not a patch\n  Choose another file name.\n"
        )
    }

    @Test func `delta replaces an older patch`() throws {
        let twice = try scratch.moult(
            ": > p; moult delta -q old.db new.db -o p && cp p q && moult delta -q new.db old.db -o p && ! cmp -s p q")
        #expect(twice == (0, "", ""))
    }

    @Test func `a patch that delta makes with little memory gives the same file`() throws {
        let made = try scratch.moult(
            """
            sqlite3 old.db "INSERT INTO t SELECT hex(randomblob(40)) FROM generate_series(1, 20000)"
            cp old.db new.db && sqlite3 new.db "UPDATE t SET x = x || 'more' WHERE rowid % 100 = 3"
            moult delta -q old.db new.db -o p --memory 128 && test $(stat -c %s p) -lt 100000
            """)
        #expect(made == (0, "", ""))
        let refused = try scratch.moult("moult delta old.db new.db -o p --memory 127")
        #expect(refused.status == 64)
    }

    @Test func `the error names a missing directory`() throws {
        let refused = try scratch.moult("moult delta old.db new.db -o none/p")
        #expect(refused.status == 1)
        #expect(
            refused.err
                == "moult: error: cannot write none/p: no directory none\n  Create the directory first, or choose another file.\n"
        )
    }
}
