import MoultBasics
import MoultFiles
import MoultPublish
import MoultRows
import MoultSQLite
import StepKit
import TestSupport
import Testing

/// The kinds of files that can be inspected, and how they are recognized.
@Suite struct SubjectTests {
    let scratch: Scratch
    let maker: ReleaseMaker

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
    }

    private let food = ReleaseMaker.Source.reference(
        "food",
        "PRAGMA user_version = 4; CREATE TABLE food (id INTEGER PRIMARY KEY, name); INSERT INTO food VALUES (1, 'a');"
    )
    private let user = ReleaseMaker.Source.user("user", "CREATE TABLE note (text);")

    @Test func `a release is unpacked from a bundle made by moult`() throws {
        let manifest = try maker.make("1.0.0", sequence: 1, [food, user])
        let before = try Tree(scratch.path("releases"))
        let inspection = try Inspection(Subject.open(manifest))
        #expect(inspection.kind == .release)
        #expect(inspection.databases.map(\.name) == ["food", "user"])
        #expect(inspection.databases.first?.found?.tables.map(\.rows) == [1])
        #expect(inspection.databases.first?.found?.identity.userVersion == 4)
        #expect(inspection.isSound)
        #expect(try Tree(scratch.path("releases")) == before)
    }

    @Test func `a bundle is read with the manifest next to it`() throws {
        try maker.make("1.0.0", sequence: 1, [food])
        let subject = try Subject.open(scratch.path("releases/test-1.0.0.tar.zst"))
        #expect(subject.kind == .bundle)
        #expect(subject.manifest?.version.description == "1.0.0")
        #expect(try Inspection(subject).databases.map(\.name) == ["food"])
    }

    @Test func `a bundle without its manifest is refused`() throws {
        try maker.make("1.0.0", sequence: 1, [food], format: .gz)
        try Files.remove(scratch.path("releases/test-1.0.0.json"))
        let error = #expect(throws: MoultError.self) {
            try Subject.open(scratch.path("releases/test-1.0.0.tar.gz"))
        }
        #expect(error?.why?.hasPrefix("its manifest is not in the same directory") == true)
    }

    @Test func `an in-place database is found next to the manifest`() throws {
        var inPlace = food
        inPlace.inPlace = true
        let manifest = try maker.make("1.0.0", sequence: 1, [inPlace])
        #expect(try Inspection(Subject.open(manifest)).databases.first?.found?.tables.map(\.rows) == [1])
        try Shell.must(["sqlite3", scratch.path("releases/food.db")], input: "INSERT INTO food VALUES (2, 'b');")
        let changed = try Inspection(Subject.open(manifest))
        #expect(!changed.isSound)
        #expect(changed.databases.first?.found?.findings.count == 1)
    }

    @Test func `a release without its bundle can be inspected, with a note`() throws {
        let manifest = try maker.make("1.0.0", sequence: 1, [food])
        try Files.remove(scratch.path("releases/test-1.0.0.tar.zst"))
        let inspection = try Inspection(Subject.open(manifest))
        #expect(inspection.notes.count == 1)
        #expect(inspection.databases.map { $0.found == nil } == [true])
    }

    @Test func `a bundle that does not match its manifest is refused`() throws {
        let manifest = try maker.make("1.0.0", sequence: 1, [food])
        try maker.make("2.0.0", sequence: 2, [food, user])
        try Files.rename(scratch.path("releases/test-2.0.0.tar.zst"), to: scratch.path("releases/test-1.0.0.tar.zst"))
        #expect(throws: MoultError.self) { try Subject.open(manifest) }
    }

    @Test(arguments: [
        ("empty.db", "", "it is empty"), ("note.txt", "hello", "it is not a SQLite database"),
        ("x.json", "{ \"manifest\": 1 }", nil),
        ("x.tar.zst", "no archive", "its manifest is not in the same directory"),
    ]) func `a file that cannot be inspected is refused`(_ name: String, _ content: String, why: String?) throws {
        let error = #expect(throws: MoultError.self) { try Subject.open(scratch.file(name, content)) }
        if let why { #expect(error?.why?.hasPrefix(why) == true, "\(error?.why ?? "")") }
        #expect(error?.what.contains(name) == true)
    }

    @Test func `the error for a draft says that the file is a draft`() throws {
        let draft = try scratch.file(
            "x.json",
            #"{ "manifest": 1, "product": "org.x", "version": "1.0.0", "databases": { "a": { "kind": "cache" } } }"#)
        let error = #expect(throws: MoultError.self) { try Subject.open(draft) }
        #expect(error?.what == "\(draft) is a draft")
        #expect(error?.now?.description == "To make a release from the draft: moult pack \(draft) -o releases/")
    }

    @Test func `unpacked files are removed when the subject is destroyed`() throws {
        let manifest = try maker.make("1.0.0", sequence: 1, [food])
        var subject: Subject? = try Subject.open(manifest)
        let path = try #require(subject?.parts.first?.path)
        #expect(try Files.facts(path) != nil)
        subject = nil
        #expect(try Files.facts(path) == nil)
        #expect(try Files.facts(Files.directory(of: path)) == nil)
    }
}
