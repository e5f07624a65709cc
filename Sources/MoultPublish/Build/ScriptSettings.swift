internal import MoultBasics

/// The settings that dot commands of a script can change, with the default values of the sqlite3 shell, except for `bails`.
struct ScriptSettings {
    enum Mode { case list, csv, ascii }

    var mode = Mode.list
    var column = Array("|".utf8)
    var row = Array("\n".utf8)
    var showsHeaders = false
    var nullValue: [UInt8] = []
    var echoes = false
    /// Whether an error stops the build. Unlike the shell, a build stops by default.
    var bails = true

    static let modes = ["ascii", "csv", "list", "tabs"]

    /// Sets the mode and its separators; returns false if the name is not in `modes`.
    mutating func setMode(_ name: String) -> Bool {
        switch name {
        case "csv": (mode, column, row) = (.csv, Array(",".utf8), Array("\r\n".utf8))
        // The shell does not change the row separator.
        case "tabs": (mode, column) = (.list, Array("\t".utf8))
        case "ascii": (mode, column, row) = (.ascii, [0x1F], [0x1E])
        case "list": (mode, column, row) = (.list, Array("|".utf8), Array("\n".utf8))
        default: return false
        }
        return true
    }

    /// Returns the format for `.import`. In CSV mode, this permanently changes the row separator `\r\n` to `\n`.
    mutating func importFormat() throws(RowFormat.Unreadable) -> RowFormat {
        if mode == .csv, row == Array("\r\n".utf8) { row = Array("\n".utf8) }
        return try RowFormat(style: mode == .ascii ? .ascii : .csv, column: column, row: row)
    }

    func line(_ values: [[UInt8]?]) -> [UInt8] {
        var line: [UInt8] = []
        for (index, value) in values.enumerated() {
            if index > 0 { line += column }
            line += value.map { mode == .csv ? quoted($0) : $0 } ?? nullValue
        }
        return line + row
    }

    private func quoted(_ value: [UInt8]) -> [UInt8] {
        let quote = UInt8(ascii: "\"")
        let isPlain = value.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != quote && $0 != UInt8(ascii: "'") }
        if isPlain, !value.isEmpty, !value.contains(column) { return value }
        return [quote] + value.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
    }
}
