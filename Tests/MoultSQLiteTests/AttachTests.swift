import MoultBasics
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

@Suite struct AttachTests {
    let scratch: Scratch
    let connection: Connection

    init() throws {
        scratch = try Scratch()
        connection = try Connection(
            path: scratch.database("user.db", "CREATE TABLE note (a)"), access: .readWrite, busyTimeout: 0)
        try scratch.database("food?.db", "CREATE TABLE food (pk); INSERT INTO food VALUES (1)")
    }

    @Test func `databases are attached read-only to a writable main database`() throws {
        try connection.attach(scratch.path("food?.db"), as: "it's \"food\"", access: .readOnly)
        #expect(try connection.attachedNames == ["it's \"food\""])
        try connection.execute("INSERT INTO note SELECT pk FROM food")
        let error = #expect(throws: MoultError.self) { try connection.execute("DELETE FROM food") }
        #expect(error?.code == .databaseReadOnly)
        try connection.detach("it's \"food\"")
        #expect(try connection.attachedNames == [])
    }

    /// A plain ATTACH creates an empty database at a wrong path.
    @Test func `attaching a wrong path is an error and creates no file`() throws {
        let missing = scratch.path("fod.db")
        let error = #expect(throws: MoultError.self) { try connection.attach(missing, as: "food", access: .readWrite) }
        #expect(error?.what == "cannot attach \(missing) as food to \(connection.path)")
        #expect(error?.code == .cannotOpenDatabase)
        #expect(try scratch.names() == ["food?.db", "user.db"])
        try connection.execute("ATTACH '\(missing)' AS food; CREATE TABLE food.t (a)")
        #expect(try scratch.names() == ["fod.db", "food?.db", "user.db"])
    }

    @Test(arguments: ["main", "temp", "MAIN"])
    func `schema names that SQLite reserves are refused`(_ name: String) {
        let error = #expect(throws: MoultError.self) {
            try connection.attach(scratch.path("food?.db"), as: name, access: .readOnly)
        }
        #expect(error?.outcome == .refused)
        #expect(error?.why == "SQLite already has a database `\(name)`")
    }

    @Test func `attaching two databases with the same name is refused`() throws {
        try connection.attach(scratch.path("food?.db"), as: "food", access: .readOnly)
        let error = #expect(throws: MoultError.self) {
            try connection.attach(scratch.path("food?.db"), as: "food", access: .readOnly)
        }
        #expect(error?.why?.hasPrefix("database food is already in use") == true)
    }

    @Test func `the error for too many databases names the limit`() throws {
        let limit = try connection.limit(.attached)
        for number in 0..<limit {
            try connection.attach(scratch.path("food?.db"), as: "food\(number)", access: .immutable)
        }
        let error = #expect(throws: MoultError.self) {
            try connection.attach(scratch.path("food?.db"), as: "one more", access: .immutable)
        }
        #expect(error?.why == "\(limit) databases are attached, and the limit is \(limit)")
    }

    @Test func `a database can be detached only while no statement uses it`() throws {
        try connection.attach(scratch.path("food?.db"), as: "food", access: .readOnly)
        try connection.withStatement("SELECT * FROM food") { statement in
            let hasRow = try statement.step()
            #expect(hasRow)
            #expect(throws: MoultError.self) { try connection.detach("food") }
        }
        try connection.detach("food")
    }
}
