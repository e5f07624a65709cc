import MoultBasics
import TestSupport
import Testing

@testable import MoultEngine

@Suite struct JournalTests {
    /// After a crash or a full disk in the middle of a line, later lines are still read.
    @Test(arguments: ["{\"record\":\"intent\",\"eff", "{", "{\"record\":\"committed\"}"])
    func `lines after a torn line are read`(_ torn: String) throws {
        let scratch = try Scratch()
        let journal = Journal(in: scratch.path)
        try journal.attempt()
        try Shell.must(["sh", "-ec", "printf %s \"$1\" >> \"$2\"", "sh", torn, journal.path])
        try journal.attempt()
        try journal.attempt()
        let state = try journal.read()
        #expect(state.attempts == 3)
        #expect(!state.isOver)
    }

    /// A power failure may lose a page of an unsynced line and keep the next line. If a record was synced after the
    /// damaged line, the cause is not a power failure, and the journal must not be used.
    @Test func `a journal with a lost page is not used`() throws {
        let scratch = try Scratch()
        let journal = Journal(in: scratch.path)
        try Shell.must(["sh", "-ec", "head -c 4096 /dev/zero > \"$1\"; echo '\"}' >> \"$1\"", "sh", journal.path])
        try journal.releasing("app")
        #expect(try journal.read().plan == nil)
        try journal.attempt()
        #expect(throws: MoultError.self) { try journal.read() }
    }
}
