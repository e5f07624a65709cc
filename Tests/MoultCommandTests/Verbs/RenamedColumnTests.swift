import MoultBasics
import TestSupport
import Testing

/// `moult pack` and the old names of renamed columns: with a misspelled one, the app would read NULL in every row.
@Suite struct RenamedColumnTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try draft("1.0.0", "title TEXT", columns: nil)
        try scratch.must("moult pack -q 1.0.0.json")
    }

    private func draft(_ version: String, _ column: String, columns: String?) throws {
        try scratch.write("\(version).sql", "CREATE TABLE note(id INTEGER PRIMARY KEY, \(column));")
        try scratch.write(
            "\(version).json",
            """
            {"manifest": 1, "product": "org.example.notes", "version": "\(version)", "sequence": \(version.prefix(1)),
             "databases": {"notes": {
              "kind": "shared", "build": {"script": "\(version).sql"},
              "preserve": [{"table": "note"\(columns.map { ", \"columns\": \($0)" } ?? "")}]}}}
            """)
    }

    private func pack(_ version: String, _ more: String = "") throws -> Shell.Ended {
        try scratch.run("moult pack -q \(version).json \(more)")
    }

    @Test func `an old name that no earlier release has is refused`() throws {
        try draft("2.0.0", "heading TEXT", columns: #"{"titel": "heading"}"#)
        let ended = try pack("2.0.0")
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("databases.notes.preserve[0].columns.titel"), "\(ended)")
        #expect(ended.errors.contains(#"Did you mean "title"?"#), "\(ended)")
        #expect(try scratch.must("ls releases") == "notes-1.0.0.json\nnotes-1.0.0.tar.zst\n")
        try scratch.must("rm 2.0.0.*")
        try draft("2.0.0", "heading TEXT", columns: #"{"TITLE": "heading"}"#)
        #expect(try pack("2.0.0").status == 0)
    }

    @Test func `an old name is known from an earlier rename, after its release has gone`() throws {
        try draft("2.0.0", "heading TEXT", columns: #"{"title": "heading"}"#)
        #expect(try pack("2.0.0").status == 0)
        try scratch.must("rm releases/notes-1.0.0.*")
        try draft("3.0.0", "heading TEXT, more TEXT", columns: #"{"title": "heading"}"#)
        #expect(try pack("3.0.0").status == 0)
        try draft("4.0.0", "caption TEXT, more TEXT", columns: #"{"title": "caption", "heading": "caption"}"#)
        #expect(try pack("4.0.0").status == 0)
        try draft("5.0.0", "caption TEXT, more TEXT", columns: #"{"subject": "caption"}"#)
        #expect(try pack("5.0.0").status == 3)
    }

    @Test func `without an earlier release the old names are not checked, and a warning says so`() throws {
        try draft("2.0.0", "heading TEXT", columns: #"{"titel": "heading"}"#)
        let ended = try pack("2.0.0", "-o other")
        #expect(ended.status == 0, "\(ended)")
        #expect(ended.errors.contains("warning") && ended.errors.contains("titel"), "\(ended)")
        #expect(try pack("2.0.0", "-o third --previous releases/notes-1.0.0.json").status == 3)
    }
}
