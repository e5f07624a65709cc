internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The files of a generation that a program has changed although they are read-only, as a program of root can. SQLite has
/// acknowledged what the program wrote, so these files go to quarantine before their generation is removed or replaced.
package struct ChangedGeneration {
    private let directory: String
    private let layout: StoreLayout
    private let manifest: Manifest?
    private let seal: Seal?

    private struct File {
        let name: String
        let database: Database?
        /// What the names of its sidecars have after the name of the file. A sidecar may have been moved away on the advice of moult,
        /// as in `-wal.old`.
        let suffixes: [String]
        let changed: String
    }

    /// Reads the records of the generation in a directory, which need not be in place. A record that is damaged or missing does not
    /// show that a file is unchanged.
    package init(in directory: String, _ layout: StoreLayout) throws {
        (self.directory, self.layout) = (directory, layout)
        func record<R>(_ name: String, _ limit: Int, _ parse: ([UInt8], String) throws -> R) throws -> R? {
            let path = "\(directory)/\(name)"
            guard try Files.facts(path)?.kind == .file, let bytes = try Files.read(path, limit: limit) else {
                return nil
            }
            do { return try parse(bytes, path) } catch is MoultError { return nil }
        }
        manifest = try record(Generation.manifestName, Manifest.largest) {
            try Manifest(parsing: $0, as: .sealed, source: $1)
        }
        let records = try LinkedFiles(layout).records()
        seal = try record(Seal.fileName, 1 << 24) { try Seal(parsing: $0, source: $1).withRecorded(records) }
    }

    /// Returns the changed files. Without `reading`, files whose metadata proves nothing count as unchanged.
    private func files(reading: Bool) throws -> [File] {
        let members = (manifest?.databases.map(\.member) ?? []) + (seal?.entries.map(\.member) ?? [])
        var suffixes: [String: [String]] = [:]
        for name in try Files.list(directory) where ![Generation.manifestName, Seal.fileName].contains(name) {
            let own = members.first { name.hasBytes(of: $0) || name.hasBytePrefix("\($0)-") }
            let suffix = SidecarSuffixes.all.first { name.hasByteSuffix($0) } ?? ""
            let file = own ?? String(Substring(name.utf8.dropLast(suffix.utf8.count)))
            suffixes[file, default: []] += [String(Substring(name.utf8.dropFirst(file.utf8.count)))].filter {
                !$0.isEmpty
            }
        }
        return try suffixes.sorted { $0.key < $1.key }.compactMap { name, suffixes in
            let path = "\(directory)/\(name)"
            let database = manifest?.databases.first { $0.member == name }
            let kind = try Files.facts(path)?.kind
            // A link leads to a file that stays at the operator's location.
            if kind == .link || kind == .directory { return nil }
            let withRows = try suffixes.first { suffix in
                let size = try Files.facts(path + suffix)?.size ?? 0
                return size > 0 && SidecarSuffixes.withRows.contains { suffix.hasBytePrefix($0) }
            }
            guard try withRows != nil || kind == .file && isChanged(name, database, reading) else { return nil }
            return File(name: name, database: database, suffixes: suffixes, changed: path + (withRows ?? ""))
        }
    }

    private func isChanged(_ name: String, _ database: Database?, _ reading: Bool) throws -> Bool {
        let path = "\(directory)/\(name)"
        let entry = seal?.entry(name)
        let standing = try entry?.standing(of: path)
        if standing == .confirmed { return false }
        guard reading else { if case .damaged? = standing { return true } else { return false } }
        guard let expected = entry?.sha256 ?? database?.sha256 else { return true }
        // A file that cannot be read can still be moved.
        do { return try SHA256.digest(ofFileAt: path).hex != expected } catch { return true }
    }

    /// Moves the changed files with their sidecars to quarantine, one set each.
    func keep(by id: String) throws {
        for file in try files(reading: true) {
            let path = layout.file(file.database?.path ?? file.name)
            var record = QuarantineRecord(
                database: file.database?.name ?? file.name, kind: file.database?.kind ?? .reference, path: path,
                why: "a program wrote to the read-only file", reason: .changed,
                release: manifest?.version.description ?? "")
            record.owner = try Files.facts("\(directory)/\(file.name)").map { .init($0) }
            var set = layout.quarantined(record.database, path: file.name, by: id)
            // A set without its main file was begun before a crash.
            while try QuarantineRecord(in: set).map({ $0.reason != .changed || $0.path != path }) ?? false
                || Files.facts("\(set)/\(record.keptName)") != nil
            { set += ".2" }
            try Files.ensureDirectory(layout.quarantine)
            try Files.ensureDirectory(set, mode: 0o700)
            try record.write(to: set)
            try Files.setMode(directory, 0o755)
            // The file itself comes last: a set that has it is complete.
            for suffix in file.suffixes + [""] where try Files.facts("\(directory)/\(file.name)\(suffix)") != nil {
                try Files.rename("\(directory)/\(file.name)\(suffix)", to: "\(set)/\(record.keptName)\(suffix)")
            }
            for place in [set, layout.quarantine, directory] { try Files.syncDirectory(place) }
        }
    }

    /// Returns a warning for each changed file of the store's generations, from metadata alone.
    static func warnings(_ layout: StoreLayout) throws -> [Advice] {
        try Generation.names(layout).flatMap { name -> [Advice] in
            let files: [File]
            do { files = try ChangedGeneration(in: layout.generation(name), layout).files(reading: false) } catch {
                // Another user's generation: this user cannot remove it either.
                if Files.isDenied(error) { return [] }
                throw error
            }
            return files.map { file in
                "\(file.changed) was written to, although the file is read-only; "
                    + "it is kept in quarantine before moult replaces or removes it"
            }
        }
    }
}
