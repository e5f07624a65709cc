internal import MoultBasics

/// A statement of a script with the line where it starts.
struct ScriptStatement {
    let sql: String
    let place: Place
}

/// A unit that the sqlite3 shell runs at once.
enum ScriptItem {
    case sql([ScriptStatement])
    case command(DotCommand)
    case blank
}

/// Reads a script for the sqlite3 shell. A line that starts with a dot is a command, unless it is inside a statement;
/// likewise, a line that starts with `#` is a comment. A line with only `/` or `go` ends a statement, and so does the
/// end of the file.
final class ScriptReader {
    private let lines: LineReader
    private let file: String
    private let substitute: (String, Place) throws -> String
    private var gathered = GatheredLines()
    /// The last item, as it is echoed.
    private(set) var source: [UInt8] = []

    init(path: String, file: String, substitute: @escaping (String, Place) throws -> String) throws {
        lines = try LineReader(path: path)
        self.file = file
        self.substitute = substitute
    }

    func next() throws -> ScriptItem? {
        source = []
        while let line = try lines.next() {
            let place = Place(file: file, line: lines.line)
            if line.contains(0) {
                throw MoultError(
                    .script, what: "\(place): the script contains a NUL character",
                    now: "Check that the script is a text file.")
            }
            if gathered.isEmpty {
                if line.first == UInt8(ascii: ".") {
                    source = line + [UInt8(ascii: "\n")]
                    return .command(try DotCommand(line, at: place, substitute: substitute))
                }
                if line.first == UInt8(ascii: "#") { continue }
            }
            if Self.isTerminator(line), gathered.scanner.semicolonWouldEndStatement {
                try gathered.add([UInt8(ascii: ";")], at: place, substitute)
            } else {
                try gathered.add(line, at: place, substitute)
            }
            if gathered.scanner.isComplete { return try take() }
        }
        return gathered.isEmpty ? nil : try take()
    }

    private func take() throws -> ScriptItem {
        defer { gathered = GatheredLines() }
        source = gathered.source
        let statements = try gathered.finish()
        return statements.isEmpty ? .blank : .sql(statements)
    }

    /// Returns whether a line ends a statement: `/` as in Oracle, or `go` as in SQL Server.
    private static func isTerminator(_ line: [UInt8]) -> Bool {
        let word = line.drop(while: isSpace)
        let rest: ArraySlice<UInt8>
        if word.first == UInt8(ascii: "/") {
            rest = word.dropFirst()
        } else if word.prefix(2).map({ $0 | 0x20 }) == Array("go".utf8) {
            rest = word.dropFirst(2)
        } else {
            return false
        }
        return rest.allSatisfy(isSpace)
    }

    /// Lines that wait for the end of their last statement.
    private struct GatheredLines {
        var scanner = StatementScanner()
        var source: [UInt8] = []
        private var statements: [ScriptStatement] = []
        private var current: [UInt8] = []
        /// Where the current statement starts, if it has started.
        private var begin: Place?
        private var hasLine = false

        /// Whether no line is waiting.
        var isEmpty: Bool { !hasLine }

        mutating func add(_ line: [UInt8], at place: Place, _ substitute: (String, Place) throws -> String) throws {
            hasLine = true
            source += line
            source.append(UInt8(ascii: "\n"))
            var index = 0
            while index < line.count {
                let byte = line[index]
                if byte == UInt8(ascii: "$"), !isInComment, let (found, next) = Placeholder.at(index, in: line) {
                    switch found {
                    case .escaped: try feed(Array("${".utf8), at: place)
                    case .name(let name): try feed(quoted(substitute(name, place), name, place), at: place)
                    }
                    index = next
                    continue
                }
                if byte >= 0x80, scanner.inside == .code, let name = TypographicQuotes.name(at: index, in: line) {
                    throw MoultError(
                        .script, what: "\(place): \(name)",
                        why:
                            "web pages and word processors insert such characters, and SQL treats them as part of a name",
                        now: "Replace the typographic characters in the script with plain ASCII ones.")
                }
                try feed(byte, at: place)
                index += 1
            }
            try feed(UInt8(ascii: "\n"), at: place)
        }

        mutating func finish() throws -> [ScriptStatement] {
            if let begin { try end(begin) }
            return statements
        }

        private var isInComment: Bool { scanner.inside == .lineComment || scanner.inside == .blockComment }

        private mutating func feed(_ bytes: [UInt8], at place: Place) throws {
            for byte in bytes { try feed(byte, at: place) }
        }

        private mutating func feed(_ byte: UInt8, at place: Place) throws {
            let ends = scanner.feed(byte)
            current.append(byte)
            if begin == nil, scanner.hasBegun { begin = place }
            guard ends else { return }
            // A lone semicolon is not a statement.
            if let begin { try end(begin) } else { current.removeAll() }
        }

        private mutating func end(_ place: Place) throws {
            guard let sql = String(validating: current, as: UTF8.self) else {
                throw MoultError(
                    .script, what: "\(place): the statement that begins here is not UTF-8",
                    now: "Save the script as UTF-8.")
            }
            statements.append(ScriptStatement(sql: sql, place: place))
            current.removeAll(keepingCapacity: true)
            begin = nil
        }

        /// Returns the value as it must be written at this position: inside quotes, the quote character is doubled.
        private func quoted(_ value: String, _ name: String, _ place: Place) throws -> [UInt8] {
            func reject(_ why: String) -> MoultError {
                MoultError(.substitution, what: "\(place): ${\(name)} cannot be used here", why: why)
            }
            let bytes = Array(value.utf8)
            if bytes.contains(0) { throw reject("its value contains a NUL character") }
            switch scanner.inside {
            case .quotes(let quote): return bytes.flatMap { $0 == quote ? [quote, quote] : [$0] }
            case .brackets where bytes.contains(UInt8(ascii: "]")): throw reject("its value has a ]")
            default: return bytes
            }
        }
    }
}

/// A line of a file, as shown in errors and warnings of a build.
package struct Place: Hashable, Sendable, CustomStringConvertible {
    package var file: String
    package var line: Int

    package init(file: String, line: Int) { (self.file, self.line) = (file, line) }

    /// The place in the form `food.sql:12`.
    package var description: String { "\(file):\(line)" }
}
