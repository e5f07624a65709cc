import MoultFiles
import MoultPublish
import TestSupport
import Testing

/// Text and bytes in sequence: `["a,", 0xFF, "\n"]`.
struct Bytes: ExpressibleByArrayLiteral, ExpressibleByStringLiteral, Sendable {
    enum Part: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, Sendable {
        case text(String)
        case byte(UInt8)
        init(stringLiteral text: String) { self = .text(text) }
        init(integerLiteral byte: UInt8) { self = .byte(byte) }
    }

    let all: [UInt8]

    init(arrayLiteral parts: Part...) {
        all = parts.flatMap { part in
            switch part {
            case .text(let text): Array(text.utf8)
            case .byte(let byte): [byte]
            }
        }
    }

    init(stringLiteral text: String) { all = Array(text.utf8) }
}

/// A script with the files that it reads, which the sqlite3 shell and the builder run.
struct DifferentialCase: Sendable, CustomTestStringConvertible {
    let name: String
    let script: Bytes
    let files: [String: Bytes]

    /// Takes the script as a string instead of a sequence of texts and bytes.
    init(_ name: String, _ script: String, _ files: [String: Bytes] = [:]) {
        self.init(name, bytes: Bytes(stringLiteral: script), files)
    }

    init(_ name: String, bytes script: Bytes, _ files: [String: Bytes] = [:]) {
        (self.name, self.script, self.files) = (name, script, files)
    }

    var testDescription: String { name }
}

/// The result of a run.
struct Outcome: Equatable {
    /// The database as SQL, which includes the storage classes.
    var dump: [UInt8]
    /// The output of the script.
    var output: [UInt8]
    /// The warnings about rows of files, as `file:line: text`.
    var warnings: [String]
}

extension DifferentialCase {
    private func write(to scratch: Scratch) throws {
        for (name, bytes) in files { try scratch.file(name, bytes.all) }
        try scratch.file("script.sql", script.all)
    }

    /// Returns the result of the sqlite3 shell.
    func byShell() throws -> Outcome {
        let scratch = try Scratch()
        try write(to: scratch)
        // The shell reads the script from its standard input, as usual.
        let ended = try Shell.run(
            ["sh", "-c", "timeout 20 sqlite3 made.db < script.sql > output 2> errors"], in: scratch.path)
        try #require(ended.status != 124, "the shell does not end")
        let errors = String(decoding: try scratch.bytes("errors"), as: UTF8.self)
        let warnings = errors.split(separator: "\n").map { String($0) }.filter { isAboutRows($0) }
        return Outcome(dump: try dump(scratch), output: try scratch.bytes("output"), warnings: warnings)
    }

    /// Returns the result of the builder.
    func byBuilder() throws -> Outcome {
        let scratch = try Scratch()
        try write(to: scratch)
        var options = BuildOptions()
        var output: [UInt8] = []
        var warnings: [String] = []
        options.output = { output += $0 }
        options.warn = { warnings.append("\($0)".replacing(scratch.path + "/", with: "")) }
        _ = try DatabaseBuilder(options).build(script: scratch.path("script.sql"), output: scratch.path("made.db"))
        return Outcome(
            dump: try dump(scratch), output: output, warnings: warnings.filter { isAboutRows($0) })
    }

    private func dump(_ scratch: Scratch) throws -> [UInt8] {
        try Shell.must(["sh", "-ec", "sqlite3 made.db .dump > dump"], in: scratch.path)
        return try scratch.bytes("dump")
    }

    /// Returns whether a warning is about rows. The shell and the builder print the same warnings about rows.
    private func isAboutRows(_ line: String) -> Bool {
        ["expected ", "unescaped ", "unterminated ", "INSERT failed"].contains { line.contains(": \($0)") }
    }
}
