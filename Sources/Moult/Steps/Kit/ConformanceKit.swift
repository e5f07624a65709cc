package import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

/// Tests in a temporary directory whether a step follows the protocol.
package struct ConformanceKit {
    package struct Options: Sendable {
        package var executable: String
        /// A step written in Swift, to check instead of a program.
        package var own: (any Step)?
        /// The parameters of the step. In strings, `{granted}` is replaced by the path of a directory that the step may write
        /// to.
        package var with: JSON = .object([])
        /// Sample databases, by their names in the manifest.
        package var databases: [(name: String, path: String)] = []
        package var when = Manifest.StepUse.When.after
        package var phase = Phase.copy
        package var timeout = 30

        package init(executable: String) { self.executable = executable }
    }

    package struct Check: Sendable, Equatable {
        package let name: String
        /// The fault; nil if the check passed.
        package let finding: String?
        package let note: String?

        package var json: JSON { .record(["check": name, "passed": finding == nil, "finding": finding, "note": note]) }
    }

    private let options: Options
    private let report: (Check) -> Void

    package init(_ options: Options, report: @escaping (Check) -> Void = { _ in }) {
        (self.options, self.report) = (options, report)
    }

    package func run() throws -> [Check] {
        try Files.withScratchDirectory { directory in
            let trial = try StepTestBench(options: options, directory: Files.resolvedIfThere(directory), report: report)
            try trial.run()
            return trial.checks
        }
    }
}

/// A simulated store and transaction, with everything that a step can observe.
final class StepTestBench {
    let options: ConformanceKit.Options
    let directory: String
    let layout: StoreLayout
    let report: (ConformanceKit.Check) -> Void
    private(set) var checks: [ConformanceKit.Check] = []
    private(set) var round = Round.empty

    /// The changes are checked in a granted directory that is empty, and then in one with files at the paths that they create.
    enum Round: String {
        case empty = "trial"
        case occupied = "trial-2"

        /// Added to the names of checks.
        var suffix: String { self == .empty ? "" : " with existing files" }
    }

    init(options: ConformanceKit.Options, directory: String, report: @escaping (ConformanceKit.Check) -> Void) throws {
        (self.options, self.directory, self.report) = (options, directory, report)
        layout = try StoreLayout(root: "\(directory)/store")
    }

    /// A step may name its files after the transaction, so each round is one.
    var staging: String { layout.transaction(round.rawValue) }
    var generation: String { "\(staging)/generation" }
    var granted: String { "\(directory)/granted" }

    /// Runs one check. Returns false if it failed, so that the caller can skip checks that depend on it.
    @discardableResult
    func checkWithNote(_ name: String, _ body: () throws -> String?) -> Bool {
        let check: ConformanceKit.Check
        do { check = .init(name: name, finding: nil, note: try body()) } catch {
            let text =
                (error as? Misbehaviour)?.text ?? (error as? Finding)?.text ?? (error as? MoultError)?.problem
                ?? "the check failed"
            check = .init(name: name, finding: text, note: nil)
        }
        checks.append(check)
        report(check)
        return check.finding == nil
    }

    @discardableResult
    func check(_ name: String, _ body: () throws -> Void) -> Bool {
        checkWithNote(name) {
            try body()
            return nil
        }
    }

    struct Finding: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    func makeStore() throws {
        for path in [layout.root, layout.hidden, layout.generations, layout.transactions, staging, granted] {
            try Files.makeDirectory(path)
        }
        try Files.writeNew(Array("{ \"moult\": 1, \"product\": \"org.example.trial\" }\n".utf8), to: layout.settings)
        try restage()
    }

    /// Begins the round in which files of another program are at the paths of files that the step has created. Returns false if it
    /// has created none.
    func occupy() throws -> Bool {
        let created = try Footprint([granted]).entries.filter { $0.value.kind != .directory }.keys
        if created.isEmpty { return false }
        for path in created {
            try Files.remove(path)
            try Files.writeNew(Array("a file of another program\n".utf8), to: path, mode: 0o640)
        }
        round = .occupied
        try Files.makeDirectory(staging)
        try restage()
        return true
    }

    func restage() throws {
        try Files.removeTree(generation)
        try Files.makeDirectory(generation)
        for database in options.databases {
            try Files.copy(database.path, to: "\(generation)/\(database.name).db", mode: 0o600)
        }
    }

    func manifest() throws -> Manifest {
        var databases = try options.databases.map { database in
            JSON.Member(
                database.name,
                [
                    "kind": "reference", "member": .string("\(database.name).db"),
                    "size": .size(try Files.factsThroughLinks(database.path)?.size ?? 0),
                    "sha256": .string(try SHA256.digest(ofFileAt: database.path).hex),
                ])
        }
        let none = String(repeating: "0", count: 64)
        if databases.isEmpty {
            // A release always has at least one database.
            let sample: JSON = ["kind": "reference", "member": "sample.db", "size": 0, "sha256": .string(none)]
            databases.append(JSON.Member("sample", sample))
        }
        var use: JSON = ["step": .string(options.own?.name ?? "trial"), "with": parameters]
        use = use.setting(options.when.rawValue, to: .string(options.phase.rawValue))
        let json: JSON = [
            "manifest": 1, "product": "org.example.trial", "version": "1.0.0", "sequence": 1,
            "bundle": ["file": "trial-1.0.0.tar.zst", "size": 1, "sha256": .string(none)],
            "databases": .object(databases), "steps": [use],
        ]
        return try Manifest(parsing: Array(json.line.utf8), as: .sealed, source: "the trial's manifest")
    }

    var parameters: JSON { Self.replacing(options.with, "{granted}", by: granted) }

    private static func replacing(_ json: JSON, _ token: String, by text: String) -> JSON {
        switch json {
        case .string(let value): .string(value.replacing(token, with: text))
        case .array(let values): .array(values.map { replacing($0, token, by: text) })
        case .object(let members): .object(members.map { .init($0.name, replacing($0.value, token, by: text)) })
        default: json
        }
    }

    /// Returns the kind, owner, mode and content of each file in the granted directory and in the store, by path, except in the
    /// transactions, whose files are removed at the end.
    func content() throws -> [String: String] {
        try Footprint([granted, layout.root]).entries.reduce(into: [:]) { found, entry in
            let (path, facts) = (entry.key, entry.value)
            if path == layout.transactions || path.isBelow(layout.transactions) { return }
            let content =
                switch facts.kind {
                case .file: try SHA256.digest(ofFileAt: path).hex
                case .link: try Files.target(ofLink: path) ?? ""
                case .directory, .other: ""
                }
            found[path] = "\(facts.kind) \(facts.owner):\(facts.group) \(String(facts.mode, radix: 8)) \(content)"
        }
    }
}
