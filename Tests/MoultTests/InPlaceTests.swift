import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// Scenario 4: a large database is attached at its own path, and a small user database is created from a template.
@Suite struct InPlaceTests {
    let scratch: Scratch
    let maker: ReleaseMaker

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("app"))
    }

    @Test func `a database of an in-place release is attached at its own path`() throws {
        let manifest = try maker.make(
            "1.0.0", sequence: 1,
            [.reference("food", "CREATE TABLE food(name); INSERT INTO food VALUES('egg');", inPlace: true)])
        let store = Store(at: scratch.path("store"))
        #expect(try store.isCurrent(manifest) == false)
        #expect(try store.updateBlocking(to: manifest).isInstalled)
        #expect(try store.isCurrent(manifest))
        #expect(try store.updateBlocking(to: manifest).isInstalled == false)
        let connection = try store.connect()
        #expect(try connection.texts("SELECT name FROM food.food") == [["egg"]])
        #expect(throws: MoultError.self) { try connection.execute("INSERT INTO food.food VALUES('x')") }
        try connection.close()
        // The store has no copy of the database.
        let inStore = try #require(try Files.factsThroughLinks(scratch.path("store/food.db")))
        #expect(inStore.inode == (try Files.facts(scratch.path("app/food.db")))?.inode)
    }
}
