internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// Creates a release from a draft: builds or copies its databases, verifies and seals them, and packs the bundle. The
/// same inputs give the same bytes on every machine and at any time.
package struct Packer {
    let options: PackOptions

    package init(_ options: PackOptions = PackOptions()) { self.options = options }

    package func pack(draft path: String) throws -> PackReport {
        if let name = options.name, let fault = PlainName.fault(name) {
            throw MoultError(.packing, .usage, what: "\"\(name)\" cannot be the name of a release", why: "it \(fault)")
        }
        try refuseReservedName("\(options.name ?? "").json")
        let draftPath = try Files.absolute(path)
        let directory = Files.directory(of: draftPath)
        let substitution = Substitution(
            defines: options.defines, environment: options.environment, directory: directory)
        var manifest = try read(draftPath, substitution)
        var reason: String?
        if manifest.group(nil).others.count > Self.mostAttached || manifest.sequence == 0 {
            let before = try EarlierRelease.newest(in: options.output, of: manifest.product)
            separate(&manifest, after: before?.manifest)
            if manifest.sequence == 0 {
                (manifest.sequence, reason) = try EarlierRelease.sequence(
                    of: manifest.version, after: before, product: manifest.product, in: options.output)
            }
        }
        let isNew = try Files.factsThroughLinks(options.output) == nil
        let output = try PinnedDirectory.output(options.output, creating: true)
        defer { withExtendedLifetime(output) {} }
        // An error of the cleanup matters less than an error of packing.
        defer { if isNew, (try? Files.isEmpty(options.output)) == true { try? Files.removeEmpty(options.output) } }
        // The work directory is next to the result, so that finished files only need to be renamed.
        let work = try WorkDirectory(in: options.output, named: ".moult-pack")
        defer { work.remove() }
        let outputStaging = work.path
        let mode = try Files.mode(ofFileFrom: Self.sources(of: manifest, in: directory))
        let taken = try take(&manifest, draftPath, outputStaging)
        for warning in try NameClashes(manifest: manifest, directory: outputStaging).warnings() {
            options.warn(warning)
        }
        try RenameCheck(options: options, draft: draftPath).check(manifest)
        try refuseDirty(substitution)
        var report = try write(manifest, work, mode: mode, taken)
        report.reasonForSequence = reason
        return report
    }

    /// SQLite attaches so many databases to one connection, unless it was built with another limit.
    private static let mostAttached = 10

    /// Gives each database a connection of its own if they are too many for one, but leaves those where apps already find them, and
    /// the main database.
    private func separate(_ manifest: inout Manifest, after before: Manifest?) {
        let main = manifest.group(nil)
        guard main.others.count > Self.mostAttached else { return }
        let there = Set((before?.databases ?? []).filter { $0.attach.group == nil }.map(\.name))
        let moved = Set(main.others.map(\.name)).subtracting(there)
        for index in manifest.databases.indices where moved.contains(manifest.databases[index].name) {
            manifest.databases[index].attach.group = manifest.databases[index].name
        }
    }

    /// Throws if a feed itself uses this file name: stores could not read the feed if it contained the release.
    private func refuseReservedName(_ file: String) throws {
        guard file == Feed.fileName || KeyList.isFileName(file) else { return }
        throw MoultError(
            .packing, .usage, what: "\(file) cannot be used for a release",
            why: file == Feed.fileName ? "a feed has this name" : "a key list has this name",
            now: "Choose another name with --name.")
    }

    private func read(_ path: String, _ substitution: Substitution) throws -> Manifest {
        guard let bytes = try Files.read(path, limit: Manifest.largest) else {
            throw MoultError(
                .packing, what: "cannot pack \(path)", why: "no such file",
                now: "Specify a database file, or the draft of a release.")
        }
        guard let draft = String(validating: bytes, as: UTF8.self) else {
            let (file, move) = (shellLine(["\(path).utf8"]), shellLine(["mv", "\(path).utf8", path]))
            throw MoultError(
                .packing, what: "\(path) is not in UTF-8", why: "line \(Self.firstBadLine(bytes)) is not valid UTF-8",
                now: "Save it as UTF-8. If it is in Latin-1: "
                    + "\(run: ["iconv", "-f", "latin1", "-t", "utf8", path], "> \(file) && \(move)")")
        }
        let text = try substitution.apply(to: draft, at: Place(file: path, line: 1))
        var manifest = try Manifest(parsing: Array(text.utf8), as: .draft, source: path)
        // The manifest of a release can be read as a draft, but its databases are in the bundle.
        if (try? Manifest(parsing: bytes, as: .sealed, source: path)) != nil {
            throw MoultError(
                .packing, .refused, what: "\(path) is the manifest of a release, not a draft",
                why: "the release is already packed", now: "Specify the draft, or the database files.")
        }
        manifest.created = try manifest.created ?? sourceDate()
        return manifest
    }

    private static func firstBadLine(_ bytes: [UInt8]) -> Int {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0) + 1
    }

    /// Returns the time in SOURCE_DATE_EPOCH, if it is set. A release must not depend on the clock.
    private func sourceDate() throws -> Timestamp? {
        guard let text = options.environment["SOURCE_DATE_EPOCH"] else { return nil }
        guard let seconds = Int(text) else {
            throw MoultError(
                .packing, what: "invalid SOURCE_DATE_EPOCH=\(text)",
                why: "the value must be the number of seconds since 1970-01-01",
                now: "Unset the variable, or set it to the output of `git log -1 --format=%ct`.")
        }
        return Timestamp(seconds: seconds)
    }

    /// Returns the paths of the databases and migrations that become part of the release as they are.
    private static func sources(of manifest: Manifest, in directory: String) -> [String] {
        manifest.databases.flatMap { database in
            let files = database.migrations.map(\.member)
            switch database.source ?? .file(database.member) {
            case .file(let name): return [name] + files
            case .script: return files
            }
        }.map { $0.isAbsolutePath ? $0 : "\(directory)/\($0)" }
    }

    private func take(_ manifest: inout Manifest, _ draft: String, _ outputStaging: String) throws -> [String:
        TakenFile]
    {
        let directory = Files.directory(of: draft)
        var taken: [String: TakenFile] = [:]
        for index in manifest.databases.indices {
            let database = manifest.databases[index]
            let file = "\(outputStaging)/\(database.member)"
            taken[database.name] = try DatabaseIntake(options: options, directory: directory).take(database, to: file)
            let check = PreserveCheck(draft: draft)
            try check.check(database, in: file)
            try check.check(manifest.budget.filter { $0.database == database.name }, in: file)
            manifest.databases[index].size = try Files.facts(file)?.size ?? 0
            manifest.databases[index].source = nil
            for number in database.migrations.indices {
                try takeMigration(&manifest.databases[index].migrations[number], directory, outputStaging)
            }
        }
        return taken
    }

    private func takeMigration(_ migration: inout Database.Migration, _ directory: String, _ outputStaging: String)
        throws
    {
        let source = "\(directory)/\(migration.member)"
        guard let bytes = try Files.read(source, limit: 1 << 26) else {
            throw MoultError(
                .packing, what: "no migration at \(source)", why: "the draft refers to this file",
                now: "Write the migration, or remove it from the draft.")
        }
        migration.size = bytes.count
        migration.sha256 = try SHA256.digest(of: bytes).hex
        var made = outputStaging
        for part in migration.member.pathParts().dropLast() {
            made += "/\(part)"
            try Files.ensureDirectory(made)
        }
        try Files.writeNew(bytes, to: "\(outputStaging)/\(migration.member)")
    }

    private func refuseDirty(_ substitution: Substitution) throws {
        guard let revision = substitution.revision, revision.isDirty, !options.allowDirty else { return }
        throw MoultError(
            .packing, .refused, what: "the repository has uncommitted changes (\(revision.describe))",
            why: "the release could not be reproduced from the repository",
            now: "Commit or stash them, or use --allow-dirty.")
    }

    private func write(_ sealed: Manifest, _ work: WorkDirectory, mode: UInt32, _ taken: [String: TakenFile]) throws
        -> PackReport
    {
        let outputStaging = work.path
        var manifest = sealed
        manifest.sqlite = SQLiteVersion.linkedSource
        let stem =
            options.name
            ?? "\(manifest.product.split(separator: ".").last ?? "release")-\(manifest.version.inFileNames)"
        let members = Self.members(of: manifest)
        // This directory has the whole release under its final names before any file is public.
        let ready = try work.ready
        let checked = manifest.databases
        let (time, shouldStop) = (options.checkTime, options.shouldStop)
        let proof = try BackgroundWork {
            try checked.map { database in
                var proven = database
                try SealedDatabase(
                    path: "\(outputStaging)/\(database.member)", name: database.name, time: time,
                    scratch: "\(outputStaging)/exam", shouldStop: shouldStop
                ).verify(&proven)
                return proven
            }
        }
        // Even after an error, the files must stay until the check no longer reads them.
        defer { proof.wait() }
        if !members.isEmpty {
            let name = try bundleName(manifest, stem)
            manifest.bundle = try BundlePacker(
                options: options, outputStaging: outputStaging, throwIfStopped: proof.check
            ).pack(members, to: "\(ready)/\(name)", named: name, modified: manifest.created?.seconds ?? 0)
        }
        manifest.databases = try proof.value()
        let patches = try ReleasePatches(options: options, outputStaging: outputStaging, stem: stem).make(for: manifest)
        manifest.patches = patches.map(\.patch)
        for made in patches { try Files.rename(made.path, to: "\(ready)/\(made.patch.file)") }
        for database in manifest.databases where database.place == .inPlace {
            try Files.rename("\(outputStaging)/\(database.member)", to: "\(ready)/\(database.member)")
        }
        let text = Array(manifest.sealedJSON().pretty.utf8)
        // Parses the manifest in the same way as stores.
        manifest = try Manifest(parsing: text, as: .sealed, source: "\(stem).json")
        try Files.writeNew(text, to: "\(ready)/\(stem).json")
        // Stores would also refuse the same version with other content, but with a less helpful reason.
        if options.name == nil, try hasDifferentOutput("\(stem).json", ready) {
            throw Self.refuseChange(of: "\(options.output)/\(stem).json")
        }
        try refuseEqualRank(manifest, except: "\(stem).json")
        try requireMigrations(manifest, except: "\(stem).json")
        var trials = try Trials(
            of: "\(ready)/\(stem).json", manifest, over: options.previous, and: options.output,
            unpackedIn: outputStaging, by: options.tryInstall)
        trials.stepsNotRun = Set(manifest.steps.map(\.step)).sorted().compactMap { step in
            options.whyNotRun(step).map { (step, $0) }
        }
        let before = try options.previous.first ?? Trials.newest(in: options.output, before: manifest).first?.0
        let changes = try before.flatMap {
            try PackChanges(
                from: $0, to: "\(ready)/\(stem).json", at: "\(options.output)/\(stem).json", manifest,
                by: options.compare)
        }
        try deliver(manifest, named: "\(stem).json", mode: mode, by: work)
        return PackReport(
            manifest: "\(options.output)/\(stem).json", bundle: manifest.bundle.map { "\(options.output)/\($0.file)" },
            bundleSize: manifest.bundle?.size ?? 0, contentSize: members.reduce(0) { $0 + $1.size },
            version: manifest.version.description, sequence: manifest.sequence, patches: manifest.patches,
            databases: manifest.databases.map { ($0.name, $0.size, $0.sha256, $0.attach.group, taken[$0.name]) },
            trials: trials, changes: changes)
    }

    /// Throws if a release in the output directory has a version that differs only in its build metadata: neither is newer.
    private func refuseEqualRank(_ manifest: Manifest, except name: String) throws {
        // The command replaces the release with this name.
        let others = try EarlierRelease.all(in: options.output).filter { Files.name(of: $0.path) != name }
        let old = others.map(\.manifest).first {
            $0.product == manifest.product && $0.version.ranksWith(manifest.version)
        }
        guard let old else { return }
        throw MoultError(
            .packing, .refused,
            what: "release \(manifest.version) is not newer than \(old.version) in \(options.output)",
            why: "stores cannot update from one to the other", now: manifest.version.adviceOnBuildMetadata)
    }

    /// Throws if an earlier release has a migration that this one lacks: a store with a still earlier release would run only the
    /// later migrations, on a database for which they were not written.
    private func requireMigrations(_ manifest: Manifest, except name: String) throws {
        let earlier = try EarlierRelease.all(in: options.output).filter {
            Files.name(of: $0.path) != name && $0.precedes(manifest)
        }
        for old in earlier {
            // The stores that do not have the migrations of that release yet.
            let behind = earlier.map(\.manifest).first {
                $0.version.precedes(old.manifest.version) && manifest.requires.from?.contains($0.version) ?? true
            }
            guard let behind else { continue }
            for database in old.manifest.databases {
                guard let now = manifest.database(database.name), now.kind.isMigrated, !now.migrations.isEmpty else {
                    continue
                }
                let known = Set(
                    now.migrations.map(\.number) + (behind.database(database.name)?.migrations ?? []).map(\.number))
                guard let missing = database.migrations.first(where: { !known.contains($0.number) }) else { continue }
                throw MoultError(
                    .packing, .refused, what: "the migration \(missing.member) of \(database.name) is missing",
                    why:
                        "release \(old.manifest.version) has it, and a store with \(behind.version) would run only the later ones",
                    now: "Add it to \"migrations\" in the draft, or exclude these stores: "
                        + "\"requires\": { \"from\": \">=\(old.manifest.version)\" }")
            }
        }
    }

    /// Returns the bundle's name in the draft, or `stem` with the extension of the format.
    private func bundleName(_ manifest: Manifest, _ stem: String) throws -> String {
        guard let name = manifest.bundle?.file else { return "\(stem).\(Self.ending(options.format))" }
        guard try ArchiveKind(fileName: name) == options.format else {
            throw MoultError(
                .packing, what: "the bundle cannot have the name \(name), which the draft specifies",
                why: "the format of the bundle is \(Self.ending(options.format))",
                now: "Correct \"bundle.file\" in the draft, or choose the matching format with --format.")
        }
        return name
    }

    private static func members(of manifest: Manifest) -> [(name: String, size: Int)] {
        manifest.databases.filter { $0.place == .generation }.flatMap { database in
            [(database.member, database.size)] + database.migrations.map { ($0.member, $0.size) }
        }
    }

    private static func ending(_ kind: ArchiveKind) -> String {
        switch kind {
        case .tar(.zstd): "tar.zst"
        case .tar(.xz): "tar.xz"
        case .tar(.gzip): "tar.gz"
        case .tar(.bzip2): "tar.bz2"
        case .tar(.none): "tar"
        case .zip: "zip"
        case .sevenZip: "7z"
        }
    }

    /// Returns whether the output directory has a file of this name whose content differs from the finished one.
    func hasDifferentOutput(_ file: String, _ ready: String) throws -> Bool {
        let there = "\(options.output)/\(file)"
        return try Files.facts(there) != nil
            && SHA256.digest(ofFileAt: there) != SHA256.digest(ofFileAt: "\(ready)/\(file)")
    }

    /// Moves a finished release to the output directory, as a set. Existing files with the same content stay. `mode` is that of all files
    /// but the manifest, which has no rows.
    func deliver(_ manifest: Manifest, named name: String, mode: UInt32, by work: WorkDirectory) throws {
        let (ready, path) = (try work.ready, "\(options.output)/\(name)")
        let files = Self.files(of: manifest)
        func isThere(_ file: String) throws -> Bool {
            guard try Files.facts("\(options.output)/\(file)") != nil else { return false }
            if try !hasDifferentOutput(file, ready) { return true }
            try refuseForeignFile(file, of: name)
            if options.name == nil { throw Self.refuseChange(of: "\(options.output)/\(file)") }
            return false
        }
        let isSame = try isThere(name)
        let new = try files.sorted().filter { try !isThere($0) }
        if isSame && new.isEmpty { return }
        let overwrites = try new.contains { try Files.facts("\(options.output)/\($0)") != nil }
        var set = FileSet(overwrites ? .overwriting : try Files.facts(path) != nil ? .replacing : .added, head: name)
        set.first = new
        if !isSame, let old = try Files.read(path, limit: Manifest.largest),
            // If the existing file is not a manifest, nothing is known about it, and nothing is removed.
            let older = try? Manifest(parsing: old, as: .sealed, source: path)
        {
            // Signatures of the older manifest are removed: with them, stores would refuse the new one.
            set.stale = try Self.files(of: older).subtracting(files).sorted() + SignatureFiles.beside(path).map(\.0)
        }
        for file in set.first { try Files.seal("\(ready)/\(file)", mode: mode) }
        try Files.seal("\(ready)/\(name)", mode: 0o644)
        try work.deliver(set)
    }

    /// Throws if another manifest in the output directory lists this file, because replacing it would break that release.
    private func refuseForeignFile(_ file: String, of name: String) throws {
        let owner = try EarlierRelease.all(in: options.output).first {
            Files.name(of: $0.path) != name && Self.files(of: $0.manifest).contains(file)
        }
        guard let owner else { return }
        throw MoultError(
            .packing, .refused, what: "\(options.output)/\(file) already exists with different content",
            why: "it belongs to the release \(owner.path)",
            now:
                "Pack this release into another directory: --output DIR. If the directory needs only the newest release, "
                + "remove the older one first, then pack each release with the same --name NAME.")
    }

    private static func files(of manifest: Manifest) -> Set<String> {
        let inPlace = manifest.databases.filter { $0.place == .inPlace }.map(\.member)
        return Set(inPlace + manifest.patches.map(\.file) + (manifest.bundle.map { [$0.file] } ?? []))
    }

    static func refuseChange(of path: String) -> MoultError {
        MoultError(
            .packing, .refused, what: "\(path) already exists with different content",
            why: "a published version must not change",
            now: "Choose another version for the release, or pack into another directory: --output DIR.")
    }
}
