internal import MoultBasics
package import MoultEngine
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// What a user reads who has only two files, and has seen no draft and no release.
extension FileReplacement {
    /// Where the old content is kept, in messages.
    package static let copyName = "the old copy"

    /// Runs one stage of the replacement. Rewrites errors about the new content for a user who has only two files, and has seen
    /// no draft and no release.
    package func explaining<R>(_ content: Content, isPacking: Bool = false, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError where error.code == .preserve {
            throw MoultError(
                .preserve, error.outcome, what: "\(name) was not replaced",
                why: error.what.replacing(" in \(StoreLayout.onlyDatabase).", with: " in ")
                    .replacing(" in \(StoreLayout.onlyDatabase) ", with: " ")
                    + (error.why.map { ": \($0)" } ?? ""),
                now: "Leave out --preserve for that table: a complete copy of the old content is kept in any case.",
                cause: error)
        } catch let error as MoultError
            where error.code == .wrongContent
            || isPacking
                && (error.outcome == .refused || error.code == .databaseCorrupt || error.what.contains(Self.draftName))
        {
            // An error about an option contains its position in the draft, such as `databases.database.preserve[0]`.
            let rule = error.what.firstRange(of: "/\(Self.draftName): databases.\(StoreLayout.onlyDatabase).")
            let what = Self.rephrasedForFiles(
                rule.map { content.option(at: error.what[$0.upperBound...]) } ?? error.what, new: content.file)
            throw MoultError(
                error.code, error.code == .databaseCorrupt ? .refused : error.outcome, what: "\(name) was not replaced",
                why: what + (error.why.map { ": \($0)" } ?? ""),
                now: error.code == .databaseCorrupt
                    ? "Specify a sound SQLite database as the new file."
                    : error.now.map(Self.isForPublishers) ?? true
                        ? "Correct \(content.file), or the options of this command." : error.now,
                cause: error)
        }
    }

    /// Rewrites a message about a release for a user who has only two files.
    package static func rephrasedForFiles(_ message: String, new: String) -> String {
        let words = [
            "the database \(StoreLayout.onlyDatabase) ": "\(new) ",
            "the golden query on \(StoreLayout.onlyDatabase) cannot run": "--check cannot run",
            "\(StoreLayout.onlyDatabase).db ": "\(new) ", "fails a golden query": "does not pass --check",
        ]
        return words.reduce(message) { $0.replacing($1.key, with: $1.value) }
    }

    /// Returns whether advice is meant for publishers of releases.
    package static func isForPublishers(_ advice: String) -> Bool {
        ["draft", "release", "pack "].contains { advice.contains($0) }
    }

    /// Returns the plan's effects on the file, described without mentioning releases.
    package func summary(of plan: Plan, new: String?) throws -> [String] {
        var sentences: [String] = []
        for effect in plan.effects {
            let (size, rows): (Int, [RowFate])
            switch effect.change {
            case .replace(let new): (size, rows) = (new.size, new.rows)
            // The old file cannot be read as a database, and is kept unchanged.
            case .create(_, let created): (size, rows) = (created, [])
            default: continue
            }
            let content = ByteCount(size)
            if let new {
                sentences.append("\(name) gets the content of \(new), \(content)")
                sentences += rows.map { $0.plannedText(keptIn: Self.copyName) }
                sentences.append("a complete copy of the old content is kept")
                if case .unfit = try Fitness.of(path, judge: { _ in nil }), try Files.facts(path)?.size != 0 {
                    sentences.append("\(name) is not a valid database, so --undo cannot restore it")
                }
            } else {
                let time = try time(of: plan.to.generation).map { " at \($0)" } ?? ""
                sentences.append("\(name) is restored to its state\(time), before it was replaced, \(content)")
                if !rows.allSatisfy(\.isEmpty) {
                    sentences.append("changes made since then go to quarantine")
                }
            }
        }
        return sentences
    }
}

extension FileReplacement.Content {
    /// Rewrites a message that begins with a position in the draft, such as `preserve[0].table: ...`, so that it begins with
    /// the option.
    fileprivate func option(at message: Substring) -> String {
        for (index, rule) in preserve.enumerated() where message.hasPrefix("preserve[\(index)]") {
            guard let colon = message.firstRange(of: ": ") else { break }
            return "--preserve \(rule.table): "
                + message[colon.upperBound...].replacing("the database has no ", with: "\(file) has no ")
        }
        return "--\(message)"
    }
}
