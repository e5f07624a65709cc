internal import MoultBasics
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Checks the old names of renamed columns in `preserve`: an update would not find a misspelled column, and the app would read NULL
/// in every row that was carried over.
struct RenameCheck {
    let options: PackOptions
    let draft: String

    private struct Rename {
        let database: String
        let index: Int
        let table: String
        let old: String
        /// The columns that the table has in earlier releases.
        var columns: [String] = []

        /// Returns whether a release lists the column as renamed, perhaps to a name that was changed again since.
        func isListed(in release: Manifest) -> Bool {
            release.database(database)?.preserve.contains { entry in
                SQLName(entry.table) == SQLName(table) && entry.columns.keys.contains { SQLName($0) == SQLName(old) }
            } ?? false
        }
    }

    /// Throws if no release in the output directory, or among those given as older ones, has a column of the old name.
    func check(_ manifest: Manifest) throws {
        let renames = manifest.databases.flatMap { database in
            database.preserve.enumerated().flatMap { index, entry in
                entry.columns.keys.sorted().map { old in
                    Rename(database: database.name, index: index, table: entry.table, old: old)
                }
            }
        }
        if renames.isEmpty { return }
        let earlier =
            try (options.previous + options.deltaFrom).compactMap { try EarlierRelease($0) }
            .filter { $0.precedes(manifest) }
            + EarlierRelease.all(in: options.output).filter { $0.precedes(manifest) }
        // An earlier release was checked when it was packed, and the release with the old column may be gone since.
        var unknown = renames.filter { rename in !earlier.contains { rename.isListed(in: $0.manifest) } }
        var hasOlderContent: Set<String> = []
        for release in earlier where !unknown.isEmpty {
            let subject = try Subject.open(release.path)
            for database in Set(unknown.map(\.database)) {
                guard let path = subject.part(database)?.path else { continue }
                hasOlderContent.insert(database)
                let connection = try Connection.openGuarded(path: path, access: .readOnly, deadline: 3600)
                for index in unknown.indices where unknown[index].database == database {
                    unknown[index].columns += try SelectionCheck(connection).columns(of: unknown[index].table)
                }
                try connection.close()
            }
            unknown.removeAll { rename in rename.columns.contains { SQLName($0) == SQLName(rename.old) } }
        }
        for rename in unknown {
            let place = "databases.\(rename.database).preserve[\(rename.index)].columns.\(rename.old)"
            guard hasOlderContent.contains(rename.database) else {
                options.warn(
                    "\(draft): \(place) was not checked: \(options.output) has no earlier release with this database; "
                        + "specify one with --previous MANIFEST")
                continue
            }
            let now: Advice =
                didYouMean(rename.old, among: rename.columns)
                ?? "Correct it in the draft. If an older release has the column, specify its manifest: --previous MANIFEST"
            throw MoultError(
                .packing, .refused,
                what:
                    "\(draft): \(place): no earlier release has a column \"\(rename.old)\" in table \"\(rename.table)\"",
                now: "Nothing was written. \(now)")
        }
    }
}
