import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// All Swift code in the documentation of the library compiles, using only its public names.
@Suite(.tags(.slow)) struct SwiftExampleTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
    }

    @Test func `every Swift example compiles`() throws {
        var examples: [Example] = []
        for page in try Self.list("Sources/Moult/Moult.docc", ".md") + ["docs/in-an-app.md"] {
            examples += Self.blocks(try Project.text(page), of: page)
        }
        for file in try Self.sources() { examples += Self.comments(try Project.text(file), of: file) }
        // At least 38 examples must be found. If the form of the pages or comments changes and this test no longer finds some
        // of them, it fails.
        #expect(examples.count >= 38)
        let modules = try modules()
        for name in ["GRDB", "examples"] { try scratch.directory(name) }
        let grdb = try scratch.write("GRDB/GRDB.swift", Self.grdb)
        try compile(["-emit-module", "-module-name", "GRDB", "-o", scratch.path("GRDB.swiftmodule"), grdb], [])
        for (number, example) in examples.enumerated() {
            _ = try scratch.write("examples/\(number).swift", example.program(number))
        }
        try compile(
            ["-typecheck", "-module-name", "Examples"]
                + examples.indices.map { scratch.path("examples/\($0).swift") }, modules)
    }

    @Test func `every public type has an example`() throws {
        var names: [String] = []
        for file in try Self.sources() {
            var hasExample = false
            for line in try Project.text(file).split(separator: "\n", omittingEmptySubsequences: false) {
                if line.hasPrefix("///") {
                    if line.hasPrefix("///     ") { hasExample = true }
                    continue
                }
                let words = line.split(separator: " ").filter { $0 != "final" }
                if line.hasPrefix("public "), ["struct", "class", "enum", "protocol"].contains(words[1]) {
                    names.append(String(words[2].prefix { $0.isLetter }))
                    #expect(hasExample, "\(file): \(line)")
                }
                hasExample = false
            }
        }
        #expect(names.count >= 20)
        let page = try Project.text("Sources/Moult/Moult.docc/Moult.md")
        for name in names where name != "MoultError" { #expect(page.contains("- ``\(name)``\n"), "\(name)") }
    }

    private static func sources() throws -> [String] {
        try list("Sources/Moult", ".swift") + ["Sources/MoultBasics/MoultError.swift"]
    }

    private static func list(_ directory: String, _ ending: String) throws -> [String] {
        try Files.list("\(Project.root)/\(directory)").filter { $0.hasSuffix(ending) }.map { "\(directory)/\($0)" }
    }

    // MARK: examples

    private struct Example {
        let place: String
        let text: String

        /// Returns the example as a complete file: declarations stay unchanged, and statements are put into a function
        /// that declares the values that they use.
        func program(_ number: Int) -> String {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let imports = lines.filter { $0.hasPrefix("import ") }
            let rest = lines.filter { !$0.hasPrefix("import ") }
            let declares = rest.contains { line in
                ["actor ", "final class ", "struct ", "func "].contains { line.hasPrefix($0) }
            }
            let given =
                """
                store: Store, connection: inout StoreConnection, lease: StoreLease, consumer: some DatabaseConsumer,
                manifest: String, path: String, key: String, icon: [UInt8], db: Database
                """
            let body = rest.map { "    \($0)" }.joined(separator: "\n")
            return """
                // \(place)
                import GRDB
                import Moult
                \(imports.joined(separator: "\n"))
                \(declares
                    ? "enum Example\(number) {\n\(body.replacing("func openPool", with: "static func openPool"))\n}"
                    : "func example\(number)(\(given)) async throws {\n\(body)\n}")
                """
        }
    }

    /// Returns the Swift blocks of a page, except parts of a `Package.swift`.
    private static func blocks(_ page: String, of name: String) -> [Example] {
        page.split(separator: "```swift\n").dropFirst().compactMap { rest in
            let text = String(rest[..<(rest.firstRange(of: "```")?.lowerBound ?? rest.endIndex)])
            return text.hasPrefix("// In Package.swift") ? nil : Example(place: name, text: text)
        }
    }

    /// Returns the examples in comments, which are the indented lines.
    private static func comments(_ source: String, of name: String) -> [Example] {
        var examples: [Example] = []
        var lines: [Substring] = []
        for line in "\(source)\n".split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("///     ") {
                lines.append(text.dropFirst(8))
            } else if text == "///", !lines.isEmpty {
                lines.append("")
            } else if !lines.isEmpty {
                examples.append(Example(place: name, text: lines.joined(separator: "\n")))
                lines = []
            }
        }
        return examples
    }

    // MARK: compiling

    private func compile(_ arguments: [String], _ more: [String]) throws {
        let ended = try Project.run(
            ["swiftc", "-swift-version", "6", "-I", scratch.path] + more + arguments, in: scratch.path, Project.home)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    /// Returns the compiler options for the modules that were built with this test.
    private func modules() throws -> [String] {
        let maps = try Files.list("\(Project.root)/Sources").filter { $0.hasPrefix("C") }.compactMap { name in
            try ["\(Project.root)/Sources/\(name)", "\(Project.built)/\(name).build"].map { "\($0)/module.modulemap" }
                .first { try Files.facts($0) != nil }
        }
        return ["-I", "\(Project.built)/Modules"] + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
    }

    /// The part of GRDB's interface that the examples use, because GRDB is not available on every machine.
    private static let grdb = """
        public struct Configuration {
            public enum BusyMode { case timeout(Double) }
            public var busyMode = BusyMode.timeout(0)
            public init() {}
            public mutating func prepareDatabase(_ setup: @escaping @Sendable (Database) throws -> Void) {}
        }
        public final class Database {
            public func execute(sql: String, arguments: [String]) throws {}
        }
        public final class DatabasePool: Sendable {
            public init(path: String, configuration: Configuration) throws {}
        }
        """
}
