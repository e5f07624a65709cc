import TestSupport
import Testing

/// Where `moult delta` puts its patch.
@Suite struct DeltaVerbTests {
    private let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        let made = try scratch.moult(
            "sqlite3 old.db 'CREATE TABLE t(x)' && sqlite3 new.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'")
        try #require(made.status == 0, "\(made.err)")
    }

    @Test(arguments: ["new.db", "old.db", "notes.txt"])
    func `nothing else is replaced`(_ name: String) throws {
        let refused = try scratch.moult(
            "echo mine > notes.txt; cp \(name) kept; moult delta old.db new.db -o \(name); echo $?; cmp kept \(name)")
        #expect(refused.status == 0)
        #expect(refused.out == "1\n")
        #expect(
            refused.err
                == "moult: error: cannot write the patch to \(name): a file exists that is not a patch\n  Choose another file.\n"
        )
    }

    @Test func `an older patch is`() throws {
        let twice = try scratch.moult(
            ": > p; moult delta -q old.db new.db -o p && cp p q && moult delta -q new.db old.db -o p && ! cmp -s p q")
        #expect(twice == (0, "", ""))
    }

    @Test func `a directory that is missing is named`() throws {
        let refused = try scratch.moult("moult delta old.db new.db -o none/p")
        #expect(refused.status == 1)
        #expect(
            refused.err
                == "moult: error: cannot write none/p: no directory none\n  Create it first, or choose another file.\n"
        )
    }
}
