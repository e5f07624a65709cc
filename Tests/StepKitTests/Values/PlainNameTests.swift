import StepKit
import Testing

@Suite struct PlainNameTests {
    static let strange = "has a character other than A-Z, a-z, 0-9, '.', '_' and '-'"

    @Test(arguments: [
        "food.db", "A", "0", "_x", "a..b", "food-2.1_x.DB", "wal", "journal.db", "x-wal.db", "moult.json.db",
        String(repeating: "a", count: 128),
    ])
    func `plain names are accepted`(_ name: String) { #expect(PlainName.fault(name) == nil) }

    @Test(arguments: [
        ("", "is empty"), (String(repeating: "a", count: 129), "is longer than 128 characters"), ("a/b", strange),
        ("a\\b", strange), ("/etc", strange), ("a b", strange), ("é", strange), ("a\u{0}", strange), ("a\n", strange),
        ("a:b", strange), ("..", "begins with '.'"), (".", "begins with '.'"), (".moult", "begins with '.'"),
        ("-rf", "begins with '-'"), ("food.db-wal", "ends with -wal, which SQLite uses itself"),
        ("food.db-shm", "ends with -shm, which SQLite uses itself"),
        ("food.db-journal", "ends with -journal, which SQLite uses itself"),
        ("food.db-WAL", "ends with -wal, which SQLite uses itself"),
        ("moult.json", "is a name that moult uses itself"),
        ("Moult.JSON", "is a name that moult uses itself"),
        ("manifest.json", "is a name that moult uses itself"),
        ("seal.json", "is a name that moult uses itself"),
    ])
    func `names that are not plain are refused`(_ name: String, _ fault: String) {
        #expect(PlainName.fault(name) == fault)
    }

    @Test(arguments: [
        "0002.sql", "migrations/user/0002-notes.sql", "a/b/c/d/e/f/g/h", "a/" + String(repeating: "n", count: 255),
    ])
    func `plain paths are accepted`(_ path: String) { #expect(PlainName.fault(path: path) == nil) }

    @Test(arguments: [
        ("", "is empty"), ("../x", "has a part that begins with '.'"), ("a/../../x", "has a part that begins with '.'"),
        ("/x", "has a part that is empty"), ("a//b", "has a part that is empty"), ("a/", "has a part that is empty"),
        ("a/b/c/d/e/f/g/h/i", "has more than eight parts"),
        ("a/" + String(repeating: "n", count: 256), "has a part that is longer than 255 characters"),
        ("a/b c", "has a part that \(strange)"), ("b c", strange),
    ])
    func `invalid paths are refused`(_ path: String, _ fault: String) { #expect(PlainName.fault(path: path) == fault) }

    @Test(arguments: ["food", "F", "food_2-a", String(repeating: "a", count: 64)])
    func `valid database names are accepted`(_ name: String) { #expect(PlainName.databaseFault(name) == nil) }

    @Test(arguments: [
        ("", "must begin with a letter"), ("2food", "must begin with a letter"), ("_food", "must begin with a letter"),
        ("@food", "must begin with a letter"), ("[food", "must begin with a letter"),
        ("é", "must begin with a letter"), ("fo.od", "may contain only letters, digits, '_' and '-'"),
        ("fo od", "may contain only letters, digits, '_' and '-'"),
        (String(repeating: "a", count: 65), "is longer than 64 characters"),
    ])
    func `invalid database names are refused`(_ name: String, _ fault: String) {
        #expect(PlainName.databaseFault(name) == fault)
    }
}
