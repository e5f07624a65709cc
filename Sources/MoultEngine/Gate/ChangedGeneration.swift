internal import MoultBasics
internal import MoultFiles
package import MoultStore
internal import MoultTrust
internal import StepKit

/// The files of a generation that a program has changed although they are read-only, as a program of root can. SQLite has
/// acknowledged what the program wrote, so these files go to quarantine before their generation is removed or replaced.
package struct ChangedGeneration {
    private let directory: String
    private let layout: StoreLayout
    private let manifest: Manifest?
    private let seal: Seal?

    /// A changed file, possibly only one of its sidecars.
    private struct File {
        let name: String
        let database: Database?
        let sidecars: [String]
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
        var names: Set<String> = []
        for name in try Files.list(directory) where ![Generation.manifestName, Seal.fileName].contains(name) {
            let suffix = SidecarSuffixes.all.first { name.hasByteSuffix($0) } ?? ""
            names.insert(String(Substring(name.utf8.dropLast(suffix.utf8.count))))
        }
        return try names.sorted().compactMap { name in
            let path = "\(directory)/\(name)"
            let sidecars = try SidecarSuffixes.withRows.filter {
                try Files.facts(path + $0).map { $0.size > 0 } ?? false
            }
            let database = manifest?.databases.first { $0.member == name }
            let kind = try Files.facts(path)?.kind
            // A link leads to a file that stays at the operator's location.
            guard
                kind == .file
                    ? try !sidecars.isEmpty || isChanged(name, database, reading) : kind == nil && !sidecars.isEmpty
            else { return nil }
            return File(name: name, database: database, sidecars: sidecars)
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
            for suffix in SidecarSuffixes.all + [""] where try Files.facts("\(directory)/\(file.name)\(suffix)") != nil
            {
                try Files.rename("\(directory)/\(file.name)\(suffix)", to: "\(set)/\(record.keptName)\(suffix)")
            }
            for place in [set, layout.quarantine, directory] { try Files.syncDirectory(place) }
        }
    }

    /// Returns a warning for each changed file of the store's generations, from metadata alone.
    static func warnings(_ layout: StoreLayout) throws -> [String] {
        try Generation.names(layout).filter { !AdoptedGeneration.isName($0) }.flatMap { name -> [String] in
            let files: [File]
            do { files = try ChangedGeneration(in: layout.generation(name), layout).files(reading: false) } catch {
                // Another user's generation: this user cannot remove it either.
                if Files.isDenied(error) { return [] }
                throw error
            }
            return files.map { file in
                "\(layout.generation(name))/\(file.name)\(file.sidecars.first ?? "") was written to, although the file is read-only; "
                    + "it is kept in quarantine before moult replaces or removes it"
            }
        }
    }
}
