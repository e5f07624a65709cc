import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport

/// A directory with releases of an app in `rel`, a place for a store, and the built command.
///
/// Release 1.0.0 has 2 rows of food, 2.0.0 has 3; both have an empty user database.
final class VerbWorld {
    let scratch: Scratch
    let first = "rel/test-1.0.0.json"
    let second = "rel/test-2.0.0.json"

    init(top: [JSON.Member] = []) throws {
        scratch = try Scratch()
        _ = try maker.make("1.0.0", sequence: 1, Self.databases(["egg", "milk"]), top: top)
        _ = try maker.make("2.0.0", sequence: 2, Self.databases(["egg", "milk", "rye"]), top: top)
    }

    var maker: ReleaseMaker { get throws { try ReleaseMaker(in: scratch.path("rel")) } }
    var store: String { scratch.path("store") }
    var layout: StoreLayout { get throws { try StoreLayout(root: store) } }

    static func databases(_ food: [String]) -> [ReleaseMaker.Source] {
        let rows = food.map { "('\($0)')" }.joined(separator: ",")
        return [
            .reference("food", "CREATE TABLE food(name); INSERT INTO food VALUES\(rows);"),
            .user("user", "CREATE TABLE note(text);"),
        ]
    }

    /// Creates a store and installs releases one after the other.
    func install(_ manifests: String...) throws {
        try must("moult init --product org.example.test")
        for manifest in manifests { try must("moult apply -q \(manifest)") }
    }

    func run(_ line: String) throws -> (status: Int32, out: String, err: String) { try scratch.moult(line) }

    /// Runs a shell script, in which each command must succeed, and returns its output.
    @discardableResult
    func must(_ script: String, status: Int32 = 0) throws -> String { try scratch.mustMoult(script, status: status) }

    /// Runs a command, and returns the lines of its output as JSON.
    func json(_ line: String) throws -> [JSON] {
        try run(line).out.split(separator: "\n").map { try JSON(parsing: String($0), source: line) }
    }

    /// Returns the name of the generation of a release.
    func generation(_ manifest: String) throws -> String {
        let bytes = try Files.read(scratch.path(manifest), limit: 1 << 20) ?? []
        return try Generation.name(of: .init(parsing: bytes, as: .sealed, source: manifest), bytes: bytes)
    }

    /// Returns the size of a file in the form that the command prints.
    func size(_ name: String) throws -> ByteCount { ByteCount(try bytes(name)) }
    func bytes(_ name: String) throws -> Int { try Files.facts(scratch.path(name))?.size ?? 0 }

    /// The store: names, modes, times, content.
    var tree: Tree { get throws { try Tree(store) } }
}
