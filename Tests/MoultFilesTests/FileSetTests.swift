import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Related files are written as a set, or not at all.
@Suite struct FileSetTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// Writes an older set and an unrelated file; returns their directory.
    private func prepare(_ number: Int) throws -> String {
        let directory = try scratch.directory("set-\(number)")
        for (name, text) in [("head", "old"), ("bundle", "old"), ("patch", "old"), ("notes", "mine")] {
            try Files.writeNew(Array(text.utf8), to: "\(directory)/\(name)")
        }
        return directory
    }

    private func deliver(to directory: String) throws {
        let work = try WorkDirectory(in: directory, named: ".work")
        defer { work.remove() }
        for name in ["bundle", "head", "sign"] { try work.add(name, Array("new".utf8)) }
        var set = FileSet(.overwriting, head: "head")
        (set.first, set.last, set.stale) = (["bundle"], ["sign"], ["patch"])
        try work.deliver(set)
    }

    private func content(_ directory: String) throws -> [String: String] {
        var found: [String: String] = [:]
        for name in try Files.list(directory) where !name.hasPrefix(".") {
            found[name] = String(decoding: try Files.read("\(directory)/\(name)", limit: 99) ?? [], as: UTF8.self)
        }
        return found
    }

    private static let old = ["head": "old", "bundle": "old", "patch": "old", "notes": "mine"]
    private static let new = ["head": "new", "bundle": "new", "sign": "new", "notes": "mine"]

    #if DEBUG
        /// A command that fails undoes its work or reports the remaining files, and the next command completes or
        /// undoes the rest.
        @Test(arguments: [(EIO, false), (EIO, true), (ENOSPC, false)])
        func `a failed call leaves the old set of files or the new one`(code: Int32, keepsFailing: Bool) throws {
            var outcomes: Set<MoultError.Outcome> = []
            for number in 1...200 {
                let directory = try prepare(number)
                let faults = Faults(failAt: number, code: code, keepsFailing: keepsFailing)
                let result = Result { try Faults.$current.withValue(faults) { try deliver(to: directory) } }
                let found = try content(directory)
                if found["head"] != nil { #expect(found["bundle"] == found["head"], "call \(number)") }
                switch result {
                case .success: #expect(found == Self.new, "call \(number)")
                case .failure(let error as MoultError):
                    outcomes.insert(error.outcome)
                    if error.outcome != .stuck, !keepsFailing { #expect(found == Self.old, "call \(number): \(error)") }
                    // If no complete set is left, the error says so.
                    if found["head"] == nil { #expect(error.outcome == .stuck, "call \(number): \(error)") }
                    // If every later call fails, the command cannot know that the head is in place.
                    if found == Self.old, !keepsFailing {
                        #expect(error.outcome == .failed, "call \(number): \(error)")
                    }
                case .failure(let error): throw error
                }
                // The next command starts with this recovery.
                try WorkDirectory.removeLeftovers(of: ".work", in: directory)
                let ended = try content(directory)
                #expect(ended == Self.old || ended == Self.new, "call \(number): \(ended)")
                #expect(try WorkDirectory.leftovers(of: ".work", in: directory) == [])
                if faults.failedCall == nil { break }
            }
            #expect(outcomes.contains(.failed) && outcomes.contains(.stuck))
        }
    #endif

    @Test func `a file that appeared meanwhile is not replaced`() throws {
        let directory = try scratch.directory("new")
        let work = try WorkDirectory(in: directory, named: ".work")
        for name in ["key", "open"] { try work.add(name, Array("new".utf8)) }
        try Files.writeNew(Array("mine".utf8), to: "\(directory)/key")
        var set = FileSet(.added, head: "key")
        set.first = ["open"]
        #expect(throws: MoultError.self) { try work.deliver(set) }
        #expect(try content(directory) == ["key": "mine"])
        work.remove()
        #expect(try Files.list(directory) == ["key"])
    }

    /// The record of a set may only name files in its own directory.
    @Test(arguments: ["../outside", "a/b", "..", ""])
    func `a record of a set that contains a path is ignored`(name: String) throws {
        let directory = try scratch.directory("in")
        try scratch.write("outside", Array("mine".utf8))
        try scratch.directory("in/.work.0")
        try scratch.write(
            "in/.work.0/set.json",
            Array(#"{ "mode": "added", "head": "head", "first": [], "last": [], "stale": ["\#(name)"] }"#.utf8))
        try WorkDirectory.removeLeftovers(of: ".work", in: directory)
        #expect(try Files.facts(scratch.path("outside")) != nil)
        #expect(try Files.list(directory) == [])
    }
}
