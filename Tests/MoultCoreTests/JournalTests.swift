import TestSupport
import Testing

@testable import MoultCore

@Suite struct JournalTests {
    /// A crash, or a full disk, in the middle of a line: what is written after it is still read.
    @Test(arguments: ["{\"record\":\"intent\",\"eff", "{", "{\"record\":\"committed\"}"])
    func aTornLineSpoilsNothing(_ torn: String) throws {
        let scratch = try Scratch()
        let journal = Journal(in: scratch.path)
        try journal.attempt()
        try Shell.must(["sh", "-c", "printf %s \"$1\" >> \"$2\"", "sh", torn, journal.path])
        try journal.attempt()
        try journal.attempt()
        let state = try journal.read()
        #expect(state.attempts == 3)
        #expect(!state.isOver)
    }
}
