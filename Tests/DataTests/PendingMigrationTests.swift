import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A user database on which migrations of the installed release have not run, such as a restored backup.
@Suite struct PendingMigrationTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    /// Installs two releases, and puts back the database of the first one.
    private func putBackOldDatabase() throws {
        let schema = "CREATE TABLE price(id INTEGER PRIMARY KEY, amount);"
        try shop.pack("1.0.0", [.user(schema + "PRAGMA user_version = 1;")])
        try shop.pack(
            "2.0.0",
            [
                .user(
                    schema + "PRAGMA user_version = 2;",
                    ["0002-cents.sql": "UPDATE price SET amount = amount * 100; PRAGMA user_version = 2;"])
            ])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO price VALUES(1, 5)")
        let backup = shop.scratch.path("backup.db")
        try Files.copy(shop.path("diary.db"), to: backup, mode: 0o600)
        try shop.install("2.0.0")
        #expect(try shop.sql("diary.db", "SELECT amount FROM price") == "500\n")
        try Files.remove(shop.path("diary.db"))
        try Files.copy(backup, to: shop.path("diary.db"), mode: 0o600)
    }

    @Test func `every command reports pending migrations, and apply runs them`() throws {
        try putBackOldDatabase()
        let fault = "its user_version is 1, and 1 migration of release 2.0.0 has not run on it"
        for command in [["status"], ["verify"], ["status", "--deep"]] {
            let ended = try shop.moult(command)
            // The output wraps long lines at spaces.
            #expect(ended.output.replacing("\n", with: " ").contains(fault), "\(command): \(ended.output)")
            #expect(ended.output.contains("moult apply"), "\(command): \(ended.output)")
        }
        try shop.install("2.0.0")
        #expect(try shop.sql("diary.db", "SELECT amount FROM price; PRAGMA user_version") == "500\n2\n")
        #expect(try shop.moult("verify").status == 0)
        #expect(try shop.apply("2.0.0").output.hasPrefix("nothing to do"))
    }

    @Test func `a plan names a database whose migrations it did not try`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE d(id INTEGER PRIMARY KEY, a, b); PRAGMA user_version = 1;")])
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE d(id INTEGER PRIMARY KEY, a); PRAGMA user_version = 2;",
                    ["0002-b.sql": "ALTER TABLE d DROP COLUMN b; PRAGMA user_version = 2;"])
            ])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO d VALUES(1, zeroblob(34000), 'B')")
        let plan = try shop.plan("2.0.0")
        #expect(plan.output.contains("known at apply: what happens to the rows of diary"), "\(plan.output)")
        let deep = try shop.plan("2.0.0", "--deep")
        #expect(!deep.output.contains("known at apply"), "\(deep.output)")
        #expect(deep.output.contains("values of 1 row of d"), "\(deep.output)")
    }

    @Test func `the command in the error moves an unusable file at the path of a new user database away`()
        throws
    {
        try shop.pack("1.0.0", [.user("CREATE TABLE t(x);")])
        let place = shop.path("diary.db")
        try Files.writeNew([], to: place)
        let refused = try shop.apply("1.0.0")
        #expect(refused.status == 3)
        #expect(refused.errors.contains("mv \(place) \(place).old"), "\(refused.errors)")
        try Shell.must(["mv", place, "\(place).old"])
        try shop.install("1.0.0")
    }
}
