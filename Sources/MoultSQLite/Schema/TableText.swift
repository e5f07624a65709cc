import MoultBasics

/// Facts in the text of a CREATE TABLE statement that SQLite's pragmas do not report.
struct TableText {
    /// The expressions of generated columns, by column.
    var generated: [SQLName: String] = [:]
    var checks: [String] = []
    /// The conflict clauses other than ABORT.
    var conflicts: [String] = []
    /// For each foreign key, in textual order: whether it is deferred to the end of the transaction.
    var deferred: [Bool] = []

    init(_ sql: String, _ normalizer: SQLNormalizer) {
        let tokens = sqlTokens(sql)[...]
        guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }) else { return }
        for part in tokens[(open + 1)..<tokens.closingParenthesis(of: open)].splitAtCommas() { read(part, normalizer) }
    }

    /// Parses one definition: a column with its constraints, or table constraints.
    private mutating func read(_ part: ArraySlice<SQLToken>, _ normalizer: SQLNormalizer) {
        guard let first = part.first else { return }
        let isConstraint = first.kind == .word && Self.constraintWords.contains(first.text)
        let column = asciiLowercased(first.kind == .string ? String(first.text.dropFirst().dropLast()) : first.text)
        var subject = isConstraint ? "" : column
        var constraint = ""
        var index = isConstraint ? part.startIndex : part.startIndex + 1
        func word(_ offset: Int) -> String? {
            let place = index + offset
            return place < part.endIndex && part[place].kind == .word ? part[place].text : nil
        }
        while index < part.endIndex {
            if part[index].isSymbol("(") {
                let close = part.closingParenthesis(of: index)
                let group = part[index..<Swift.min(close + 1, part.endIndex)]
                switch word(-1) {
                case "check": checks.append(normalizer.normalize(group))
                case "as": generated[SQLName(column)] = normalizer.normalize(group)
                case "key", "unique": subject = normalizer.normalize(group)
                default: break
                }
                index = close
            } else {
                switch word(0) {
                case "constraint": index += 1
                case "primary", "unique", "check": constraint = word(0) ?? ""
                case "null" where word(-1) == "not": constraint = "not null"
                case "references": deferred.append(false)
                case "deferred" where word(-1) == "initially" && word(-2) == "deferrable" && word(-3) != "not":
                    if !deferred.isEmpty { deferred[deferred.count - 1] = true }
                case "conflict" where word(-1) == "on":
                    if let action = word(1), action != "abort", constraint != "check" {
                        conflicts.append("\(subject) \(constraint) on conflict \(action)")
                    }
                default: break
                }
            }
            index += 1
        }
    }

    private static let constraintWords: Set<String> = ["constraint", "primary", "unique", "check", "foreign"]
}
