package import MoultBasics
internal import MoultFiles
internal import StepKit

/// The sets in the quarantine of the store and of its caches.
package struct QuarantineShelf {
    let layout: StoreLayout
    package let settings: Settings

    package init(layout: StoreLayout, settings: Settings) { (self.layout, self.settings) = (layout, settings) }

    /// One database with its sidecars.
    package struct Set: Sendable, Equatable {
        package let directory: String
        /// Nil without a readable record: then the content counts as user data.
        package let record: QuarantineRecord?
        package let size: Int
        /// Whether the set has its main file, and not only sidecars.
        let hasMainFile: Bool
        package let since: Timestamp
        /// When the directory was completed, to order sets of the same second.
        fileprivate let nanoseconds: Int
        fileprivate var age: (Int, Int, Int, String) { (record?.number ?? 0, since.seconds, nanoseconds, directory) }

        /// The ID of the set in commands.
        package var id: String { Files.name(of: directory) }

        /// Whether the content can be recreated; any other content is user data or app data.
        package var isCache: Bool {
            record.map { $0.kind.isDisposable && ![.takenOver, .foreign].contains($0.reason) } ?? false
        }

        /// Whether the set has rows that are missing from the new content, or was kept for other content, such as a view; true
        /// if the rows were not counted.
        package var hasContent: Bool {
            guard let record, let rows = record.rows, rows.values.allSatisfy({ $0 == 0 }) else { return true }
            return [.replaced, .rolledBack, .migrated, .foreign].contains(record.reason)
        }

        /// Whether an update has left rows of the app behind that only the set has, or content whose rows it could not count. What
        /// the operator has set aside, caches, and the old values of migrated rows do not count.
        package var hasUncarriedRows: Bool {
            guard let record, !isCache else { return false }
            switch record.reason {
            case .replaced, .rolledBack: return record.rows.map { $0.values.contains { $0 > 0 } } ?? true
            case .foreign, .takenOver: return record.rows?.values.contains { $0 > 0 } ?? false
            case .migrated, .reset, .unfitCache, .undone, .restored, .changed: return false
            }
        }

        /// The path of the main file.
        package var file: String? { record.map { "\(directory)/\($0.keptName)" } }

        package var json: JSON {
            .compact([
                "id": .string(id), "database": .optional(record?.database), "kind": .optional(record?.kind.rawValue),
                "path": .optional(record?.path), "release": .optional(record?.release),
                "reason": .optional(record?.reason.rawValue), "why": .optional(record?.why),
                "time": .string(since.description), "size": .size(size),
                "rows": record?.rows.map { rows in
                    .object(rows.sorted { $0.key < $1.key }.map { .init($0.key.text, .size($0.value)) })
                },
                "rowsOnly": record?.isRows == true ? true : nil, "directory": .string(directory),
                "file": .optional(file),
            ])
        }

        /// Returns the sentence shown after an update: what was kept, and how to see it.
        package func keptText(_ storeWords: [String]) -> Advice {
            let rows = (record?.rows ?? [:]).values.reduce(0, +)
            let what = record.map { "\($0.database)" } ?? id
            let kept =
                !hasMainFile
                ? "sidecars that do not belong to the database any more are"
                : record?.isLeftBehind == true
                    ? "a file that was at the path of a database is"
                    : record?.reason == .changed
                        ? "the read-only file, which a program had changed, is" : "the old database is"
            let isRows = record?.isRows ?? false
            let lost = "\(counted(rows, "row")) that the new content does not have"
            return "\(what): \(isRows ? "\(lost) \(rows == 1 ? "is" : "are")" : kept) in quarantine"
                + (rows == 0 || isRows
                    ? ""
                    : record?.reason == .migrated
                        ? ", with the old values of \(counted(rows, "row"))"
                        : ", with \(lost)")
                + "; see it with: \(run: ["moult", "quarantine"] + storeWords)"
        }
    }

    /// Returns all sets, oldest first.
    package func sets() throws -> [Set] {
        return try roots.flatMap { root in
            try Files.list(root).filter { !CacheTag.isTag($0) && !$0.hasPrefix(".") }.compactMap {
                try Self.set("\(root)/\($0)")
            }
        }.sorted { $0.age < $1.age }
    }

    /// The directories of the quarantine.
    package var roots: [String] {
        [layout.quarantine] + (settings.cacheRoot.map { [layout.quarantine(of: "\($0)/x")] } ?? [])
    }

    /// Returns the sets of one update.
    package func sets(of transaction: String) throws -> [Set] {
        try sets().filter { Files.name(of: $0.directory).hasPrefix("\(transaction)-") }
    }

    /// Returns the set in a directory; nil if the path has no directory.
    package static func set(_ directory: String) throws -> Set? {
        guard let facts = try Files.facts(directory), facts.kind == .directory else { return nil }
        let record = try QuarantineRecord(in: directory)
        let hasMainFile = try record.map { try Files.facts("\(directory)/\($0.keptName)") != nil } ?? true
        return Set(
            directory: directory, record: record, size: try size(of: directory), hasMainFile: hasMainFile,
            since: record?.time ?? Timestamp(seconds: facts.modified.seconds), nanoseconds: facts.modified.nanoseconds)
    }

    /// Returns the size of the files in a set. A directory that was at the path of the database counts with its upper levels:
    /// another user may have made it deeper than any path can be.
    private static func size(of directory: String, levels: Int = 32) throws -> Int {
        try Files.list(directory).reduce(0) { sum, name in
            guard let facts = try Files.facts("\(directory)/\(name)") else { return sum }
            if facts.kind != .directory { return sum + facts.size }
            return levels == 0 ? sum : try sum + size(of: "\(directory)/\(name)", levels: levels - 1)
        }
    }
}
