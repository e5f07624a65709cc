import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A store with the first release or releases of a product installed, and the built command.
struct ReleasesStore {
    let scratch: Scratch
    var path: String { scratch.path("store") }
    var record: String { "\(path)/.moult/holds.json" }

    /// Makes the releases 1.0.0 to `count`.0.0, and installs the first `installed` of them, or all, one after the other.
    /// `settings` are members of `moult.json`.
    init(_ count: Int = 5, installed: Int? = nil, settings: String = "\"keep\": 9") throws {
        scratch = try Scratch()
        try must("moult init -q store --product org.example.test")
        try Files.replace(
            "\(path)/moult.json",
            with: Array(
                """
                {
                  // written by the operator
                  "moult": 1, "product": "org.example.test", \(settings),
                }

                """.utf8))
        for number in 1...count { try make("\(number).0.0", sequence: number * 10) }
        for number in 1...(installed ?? count) { try must("moult apply -q \(manifest("\(number).0.0"))") }
    }

    func manifest(_ version: String) -> String { "rel/test-\(version).json" }

    func make(_ version: String, sequence: Int) throws {
        _ = try ReleaseMaker(in: scratch.path("rel")).make(
            version, sequence: sequence, [.reference("food", "CREATE TABLE food AS SELECT '\(version)' AS release;")])
    }

    /// Runs a shell script in the parent directory of the store, `./store`, with the built `moult`.
    func run(_ script: String) throws -> Shell.Ended { try scratch.run(script) }

    /// Runs a shell script, in which each command must succeed, and returns its output.
    @discardableResult
    func must(_ script: String, status: Int32 = 0) throws -> String { try scratch.must(script, status: status) }

    /// Returns the last object that a command prints with `--json`.
    func json(_ line: String) throws -> JSON {
        let text = try run(line).output.split(separator: "\n").last.map { String($0) }
        return try JSON(parsing: try #require(text), source: line)
    }

    func version() throws -> String? { try json("moult status --json")["installed"]?.string }

    /// Returns the holds from `status`: `2.0.0: reason`.
    func holds() throws -> [String] { try holds(in: json("moult status --json")) }

    func holds(in json: JSON) throws -> [String] {
        try #require(json["holds"]?.array, "no holds in \(json.line)").map {
            "\($0["release"]?.string ?? ""): \($0["reason"]?.string ?? "")"
        }
    }
}
