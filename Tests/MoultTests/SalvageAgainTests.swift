import Moult
import MoultBasics
import MoultFiles
import MoultRows
import MoultSQLite
import StepKit
import TestSupport
import Testing

/// Rows in quarantine can be salvaged as often as needed.
@Suite struct SalvageAgainTests {
    let scratch: Scratch
    let store: Store

    init() throws {
        scratch = try Scratch()
        store = Store(at: scratch.path("store"))
        try store.updateBlocking(
            to: ReleaseMaker(in: scratch.path("releases")).make(
                "1.0.0", sequence: 1, [.user("user", "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL);")])
        )
    }

    private func sqlite(_ sql: String) throws { try Shell.must(["sqlite3", scratch.path("store/user.db"), sql]) }

    @Test func `salvage can be repeated`() throws {
        try sqlite(
            "INSERT INTO note(text) VALUES('one'), ('two'); CREATE VIRTUAL TABLE find USING fts5(x); CREATE TABLE find_tags(y); INSERT INTO find_tags VALUES(3); INSERT INTO find VALUES('words')"
        )
        try Broken.tornHeader.make("user.db", in: store.directory)
        let recovered = try store.reset("user", settingUserDataAside: true)
        let aside = try #require(recovered.setAside)
        let first = try #require(recovered.salvaged)
        #expect(
            try Shell.must(["sqlite3", first, "SELECT count(*) FROM note; SELECT * FROM find_tags; SELECT * FROM find"])
                == "2\n3\nwords\n")
        try Files.remove(first)
        try Files.remove("\(aside)/salvaged.json")
        let set = try Tree(aside, times: false)
        let again = try Orchestrator(root: store.directory, steps: .builtIn).salvageAgain("user")
        #expect(again.salvaged == first && again.salvage?.isWhole == true, "\(again)")
        #expect(try Shell.must(["sqlite3", first, "SELECT text FROM note"]) == "one\ntwo\n")
        #expect(try Files.list(aside).contains("salvage.tmp") == false)
        try Files.remove(first)
        try Files.remove("\(aside)/salvaged.json")
        #expect(try Tree(aside, times: false) == set)
    }

    @Test func `salvage is refused if no user data was set aside`() throws {
        let error = #expect(throws: MoultError.self) {
            try Orchestrator(root: store.directory, steps: .builtIn).salvageAgain("user")
        }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "cannot salvage user again")
    }
}
