/// The findings of a check of a database, and the parts that could not be checked.
package struct Soundness: Equatable, Sendable {
    package var findings: [String] = []
    /// The parts that could not be checked, each with the reason, for example an index with a collation that only the app has.
    /// This is not a fault.
    package var notChecked: [String] = []

    package init(findings: [String] = []) { self.findings = findings }

    /// The findings about the file itself, rather than about a value in it.
    package var damage: [String] { findings.filter { !Self.isViolation($0) } }

    /// Returns whether a finding says that a row violates the rules of its own table. The file itself is then intact.
    package static func isViolation(_ finding: String) -> Bool {
        if finding.hasPrefix("CHECK constraint failed in ") || finding.hasPrefix("NULL value in ") { return true }
        // `TEXT value in t.c`, `non-INT value in t.c`: a value in a column that is STRICT, or whose type was changed.
        guard let place = finding.split(separator: " ").dropFirst().first, place == "value" else { return false }
        return finding.split(separator: " ").dropFirst(2).first == "in"
    }

    /// Returns the findings that a change added. A new finding does not count if an old one of the same kind has disappeared:
    /// the change may have renamed a table or moved its rows.
    package static func added(_ after: [String], since before: [String]) -> [String] {
        var old: [String: Int] = [:]
        for finding in before { old[finding, default: 0] += 1 }
        var rest: [String] = []
        for finding in after {
            if let count = old[finding], count > 0 { old[finding] = count - 1 } else { rest.append(finding) }
        }
        var gone: [String: Int] = [:]
        for (finding, count) in old where count > 0 { gone[kind(finding), default: 0] += count }
        return rest.filter { finding in
            guard let count = gone[kind(finding)], count > 0 else { return true }
            gone[kind(finding)] = count - 1
            return false
        }
    }

    private static func kind(_ finding: String) -> String {
        if finding.hasSuffix("that does not exist") { return "reference" }
        guard isViolation(finding) else { return finding }
        return finding.split(separator: " ").prefix { $0 != "in" }.joined(separator: " ")
    }
}

extension Connection {
    /// Checks the database like `quickCheck` or `fullCheck`, and continues where those stop because one of the app's functions
    /// or collations is missing.
    package func soundness(full: Bool, limit: Int = 100) throws -> Soundness {
        do { return Soundness(findings: try full ? fullCheck(limit: limit) : quickCheck(limit: limit)) } catch {
            guard AppNeed(error) != nil else { throw error }
            return try checkInParts(full: full, limit: limit)
        }
    }

    /// Checks each table separately as far as possible, and the structure of the whole file except what needs the app.
    private func checkInParts(full: Bool, limit: Int) throws -> Soundness {
        var soundness = Soundness()
        var unordered: Set<String> = []
        for listed in try listedTables() where listed.type == "table" || listed.type == "shadow" {
            guard let table = listed.name else {
                soundness.notChecked.append("table \(listed.shown): its name is not valid UTF-8")
                continue
            }
            do {
                soundness.findings += try full ? integrityCheck(ofTable: table) : quickCheck(ofTable: table)
            } catch {
                guard let need = AppNeed(error) else { throw error }
                soundness.notChecked.append("table \(table): it needs the app's \(need)")
                if need.kind == .collation { unordered.insert(table) }
                do { if full { soundness.findings += try quickCheck(ofTable: table) } } catch {
                    guard let need = AppNeed(error) else { throw error }
                    if need.kind == .collation { unordered.insert(table) }
                }
            }
        }
        do {
            let structure = try withoutCheckConstraints {
                try readingWithStandIns { try quickCheck(limit: limit) }
            }
            soundness.findings += structure.filter { finding in
                // Only the app's collation defines the order of these rows.
                !soundness.findings.contains(finding)
                    && !unordered.contains { finding.hasSuffix("row not in PRIMARY KEY order for \($0)") }
            }
        } catch {
            guard let need = AppNeed(error) else { throw error }
            soundness.notChecked.append("the structure of the whole file: it needs the app's \(need)")
        }
        soundness.findings = Array(soundness.findings.prefix(limit))
        return soundness
    }

    private func withoutCheckConstraints<R>(_ body: () throws -> R) throws -> R {
        try execute("PRAGMA ignore_check_constraints = 1")
        let result = Result { try body() }
        try execute("PRAGMA ignore_check_constraints = 0")
        return try result.get()
    }

    /// Finds dangling references, and reports why a table could not be examined.
    package func references(limit: Int) throws -> Soundness {
        do { return Soundness(findings: try foreignKeyCheck(limit: limit)) } catch {
            guard error.sqlite?.resultCode.primary == .error else { throw error }
        }
        var soundness = Soundness()
        for listed in try listedTables() where listed.type == "table" {
            guard let table = listed.name else {
                soundness.notChecked.append("the references of table \(listed.shown): its name is not valid UTF-8")
                continue
            }
            do {
                soundness.findings += try foreignKeyCheck(ofTable: table, limit: limit - soundness.findings.count)
            } catch {
                if let need = AppNeed(error) {
                    soundness.notChecked.append("the references of table \(table): they need the app's \(need)")
                } else if let error = error.sqlite, error.resultCode.primary == .error {
                    // A reference to columns that are not a key is a fault of the app's schema, and no row can be looked up.
                    soundness.findings.append(error.message)
                } else {
                    throw error
                }
            }
        }
        return soundness
    }
}
