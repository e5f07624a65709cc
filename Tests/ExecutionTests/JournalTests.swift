import MoultBasics
import StepKit
import TestSupport
import Testing

@testable import Moult

@Suite struct JournalTests {
    private let scratch: Scratch
    private let journal: Journal

    init() throws {
        scratch = try Scratch()
        journal = Journal(directory: try scratch.directory("20260101000000-0a0b0c0d"))
    }

    private func sh(_ script: String) throws { try Shell.must(["sh", "-ec", script], in: journal.directory) }

    @Test func `attempts, consumers and intents are read in order`() throws {
        let effects = (1...12).map {
            Effect(step: "test", phase: .copy, database: "db\($0)", .keep(why: "\($0)"))
        }
        for (number, effect) in effects.enumerated() {
            try journal.attempt()
            try journal.releasing("app \(number)/x")
            try journal.add(.string("\(number)"), for: effect)
        }
        let state = try journal.read()
        #expect(state.attempts == 12)
        #expect(state.released == (0..<12).map { "app \($0)/x" })
        #expect(state.intents.map(\.intent) == (0..<12).map { .string("\($0)") })
        #expect(state.decided == nil)
    }

    /// Nothing relies on a plan before the decision, so a power failure may lose any part of it.
    @Test(arguments: ["", "{", "{\"plan\": 1}"])
    func `a torn plan counts as not written`(_ torn: String) throws {
        try sh("printf %s '\(torn)' > plan.json")
        #expect(try journal.read().plan == nil)
        #expect(try journal.read().decided == nil)
    }

    @Test func `a torn record of a consumer counts as not written`() throws {
        try journal.releasing("app")
        try sh(": > released-2")
        #expect(try journal.read().released == ["app"])
    }

    /// A record has its name only when it is complete, so damage in it has another cause than a crash.
    @Test(arguments: ["decided.json", "intent-1", "undoing.json"])
    func `a damaged record is not used`(_ name: String) throws {
        try sh("printf '{' > \(name)")
        let error = #expect(throws: MoultError.self) { try journal.read() }
        #expect(error?.outcome == .stuck)
        #expect(error?.now?.description.hasSuffix("mv \(journal.directory) \(journal.directory).old") == true)
    }
}
