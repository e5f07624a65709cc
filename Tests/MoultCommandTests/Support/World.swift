import MoultBasics
import MoultFiles
import MoultStore
import StepKit
import TestSupport

/// A directory with releases of an app in `rel`, and room for a store; the command that was built works in it.
///
/// Release 1.0.0 has 2 rows of food, 2.0.0 has 3; both have an empty database of the user's.
final class World {
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

    /// A store in which releases were installed, one after the other.
    func install(_ manifests: String...) throws {
        try must("moult init --product org.example.test")
        for manifest in manifests { try must("moult apply -q \(manifest)") }
    }

    func run(_ line: String) throws -> (status: Int32, out: String, err: String) { try scratch.moult(line) }

    /// Runs what must succeed, and returns what it printed.
    @discardableResult
    func must(_ line: String) throws -> String {
        let ended = try run(line)
        guard ended.status == 0 else {
            throw MoultError(.system, what: "\(line) ended with \(ended.status)", why: ended.err + ended.out)
        }
        return ended.out
    }

    /// The lines of JSON that a command printed.
    func json(_ line: String) throws -> [JSON] {
        try run(line).out.split(separator: "\n").map { try JSON(parsing: String($0), source: line) }
    }

    /// The name of a release's generation.
    func generation(_ manifest: String) throws -> String {
        let bytes = try Files.read(scratch.path(manifest), limit: 1 << 20) ?? []
        return try Generation.name(of: .init(parsing: bytes, as: .sealed, source: manifest), bytes: bytes)
    }

    /// A file's size as people read it.
    func size(_ name: String) throws -> ByteCount { ByteCount(try bytes(name)) }
    func bytes(_ name: String) throws -> Int { try Files.facts(scratch.path(name))?.size ?? 0 }

    /// The store without its settings' times: names, modes, times, content.
    var tree: Tree { get throws { try Tree(store) } }
}
