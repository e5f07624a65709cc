import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport

/// A store with a read-only database `food`, a shared database `pantry` and a user database `user`.
struct ConsumerShop {
    let scratch: Scratch
    let root: String
    private let maker: ReleaseMaker

    var store: Store { Store(at: root) }
    var layout: StoreLayout { get throws { try StoreLayout(root: root) } }
    var pantry: String { "\(root)/pantry.db" }
    /// A cache.
    var thumbs: String { "\(root)/thumbs.db" }

    init() throws {
        scratch = try Scratch()
        root = scratch.path("store")
        maker = try ReleaseMaker(in: scratch.path("releases"))
    }

    /// Makes release `number`.0.0 and returns the path of its manifest. The tables of `food` and `pantry` contain the
    /// number.
    func release(_ number: Int, writable: Bool = true, cache: Bool = false) throws -> String {
        var sources = [
            ReleaseMaker.Source.reference("food", "CREATE TABLE food(release); INSERT INTO food VALUES(\(number));"),
            .user("user", "CREATE TABLE note(text);"),
        ]
        if writable {
            var pantry = ReleaseMaker.Source.reference(
                "pantry", "CREATE TABLE pantry(release); INSERT INTO pantry VALUES(\(number));")
            pantry.kind = "shared"
            sources.append(pantry)
        }
        if cache { sources.append(try .cache("thumbs", "CREATE TABLE thumb(x\(number));")) }
        return try maker.make("\(number).0.0", sequence: number, sources)
    }

    /// Sets a member of the store's settings, as an operator would do.
    func set(_ name: String, _ text: String) throws {
        try Settings.rewrite(layout, name, JSON(parsing: Array(text.utf8), as: .draft, source: "test"))
    }

    func value(_ path: String, _ sql: String) throws -> String {
        try Shell.must(["sqlite3", path, sql]).split(separator: "\n").first.map { String($0) } ?? ""
    }
}
