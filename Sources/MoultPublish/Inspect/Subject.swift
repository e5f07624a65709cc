internal import MoultArchive
package import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import MoultSandbox
package import StepKit

/// Something with databases to inspect: a database file, a release, given by its manifest or its bundle, or an installed store.
package struct Subject: Sendable {
    package enum Kind: String, Sendable { case database, release, bundle, store }

    package struct Part: Sendable {
        package let name: String
        /// The path from which the database can be read; nil if it is not available.
        package let path: String?
        package let declared: Database?
        package let fault: String?

        package init(name: String, path: String?, declared: Database? = nil, fault: String? = nil) {
            (self.name, self.path, self.declared, self.fault) = (name, path, declared, fault)
        }
    }

    package let kind: Kind
    package let path: String
    package let manifest: Manifest?
    /// The manifest, byte for byte as it was signed.
    package let manifestBytes: [UInt8]?
    package let parts: [Part]
    /// Notes, for instance about parts that could not be inspected.
    package let notes: [String]
    /// Keeps resources that the parts' files need while they are read: an unpacked bundle, a lease on a generation.
    private let retainedResource: (any Sendable)?

    package init(
        _ kind: Kind, _ path: String, manifest: Manifest? = nil, bytes: [UInt8]? = nil, parts: [Part],
        notes: [String] = [], keeping retainedResource: (any Sendable)? = nil
    ) {
        (self.kind, self.path, self.manifest, manifestBytes) = (kind, path, manifest, bytes)
        (self.parts, self.notes, self.retainedResource) = (parts, notes, retainedResource)
    }

    /// The files whose readers may read the subject's rows. The parts of a bundle are private copies of it.
    package var sources: [String] {
        guard kind == .release || kind == .bundle else { return parts.compactMap(\.path) }
        return [path] + [manifest?.bundle.map { "\(Files.directory(of: path))/\($0.file)" }].compactMap(\.self)
    }

    /// Returns the database with this name, or with this file name; nil if the subject does not have it.
    package func part(_ name: String) -> Part? {
        parts.first { $0.name == name } ?? parts.first { $0.declared?.member == name }
            ?? parts.first { $0.path.map(Files.name) == name }
    }

    package func unknown(_ name: String) -> MoultError {
        MoultError(
            .subject, .usage, what: "\(path) has no database \"\(name)\"", why: itsNames("database", parts.map(\.name)),
            now: didYouMean(name, among: parts.map(\.name)))
    }

    /// Determines the type of a file, and opens it. Unpacks a bundle, and verifies it if its manifest is available. Does not
    /// open stores; the command does that.
    package static func open(
        _ path: String, progress: (_ done: Int, _ total: Int) throws -> Void = { _, _ in }
    ) throws -> Subject {
        guard let facts = try Files.factsThroughLinks(path) else {
            throw MoultError(.subject, what: "cannot read \(Address(path))", why: "no such file", now: kinds)
        }
        guard facts.kind == .file else {
            throw MoultError(
                .subject, what: "cannot read \(path)",
                why: facts.kind == .directory ? "it is a directory and not a store" : "it is not a regular file",
                now: kinds)
        }
        let start = try Files.beginning(of: path, count: 16)
        if DatabaseHeader.begins(start) {
            return Subject(.database, path, parts: [Part(name: Files.name(of: path), path: path)])
        }
        if path.hasSuffix(".json") { return try release(path, progress) }
        if ArchiveKind.isArchive(fileName: Files.name(of: path)) { return try bundle(path, progress) }
        throw MoultError(
            .subject, what: "unknown file type: \(path)",
            why: facts.size == 0
                ? "it is empty" : "it is not a SQLite database, and its name is not that of a manifest or a bundle",
            now: kinds)
    }

    /// The next step if a path has nothing to inspect.
    package static let kinds: Advice = "Specify a database, a bundle, the manifest of a release, or a store."

    private static func release(_ path: String, _ progress: (Int, Int) throws -> Void) throws -> Subject {
        let bytes = try Files.read(path, limit: Manifest.largest) ?? []
        let manifest: Manifest
        do { manifest = try Manifest(parsing: bytes, as: .sealed, source: path) } catch {
            // A file that is not JSON is reported by the first error.
            if (try? JSON(parsing: bytes, source: path))?["feed"] != nil {
                throw MoultError(
                    .subject, what: "\(path) is a feed, not a release", why: "it lists releases, each with a manifest",
                    now: "Specify the manifest of a release. To check the feed: "
                        + "\(moult: "publish", Files.directory(of: path), "--check")")
            }
            // If the file can be parsed as a draft, the error says so.
            guard (try? Manifest(parsing: bytes, as: .draft, source: path)) != nil else { throw error }
            throw MoultError(
                .subject, what: "\(path) is a draft", why: "a draft does not contain the digests of its files",
                now: "To make a release from the draft: \(moult: "pack", path, "-o", "releases/")")
        }
        let directory = Files.directory(of: path)
        var unpacked: UnpackedBundle?
        var notes = manifest.warnings
        if let bundle = manifest.bundle {
            let file = "\(directory)/\(bundle.file)"
            if try Files.factsThroughLinks(file) == nil {
                notes.append("\(file) is missing, so its content is known only from the manifest")
            } else {
                unpacked = try UnpackedBundle(file, members: Member.all(of: manifest), progress)
                try unpacked?.verify(sha256: bundle.sha256)
            }
        }
        let parts = manifest.databases.map { database in
            let inPlace = database.place == .inPlace ? "\(directory)/\(database.member)" : nil
            return Part(name: database.name, path: inPlace ?? unpacked?.path(database.member), declared: database)
        }
        return Subject(.release, path, manifest: manifest, bytes: bytes, parts: parts, notes: notes, keeping: unpacked)
    }

    /// Opens a bundle with its manifest, if that is in the same directory. Without a manifest, only a bundle made by moult can
    /// be read, because it describes itself.
    private static func bundle(_ path: String, _ progress: (Int, Int) throws -> Void) throws -> Subject {
        let name = Files.name(of: path)
        for dot in name.indices.reversed() where name[dot] == "." {
            let manifest = "\(Files.directory(of: path))/\(name[..<dot]).json"
            guard let bytes = try Files.read(manifest, limit: Manifest.largest),
                // The file may be a different one that only has the name of a manifest.
                let sealed = try? Manifest(parsing: bytes, as: .sealed, source: manifest), sealed.bundle?.file == name
            else { continue }
            let release = try release(manifest, progress)
            return Subject(
                .bundle, path, manifest: release.manifest, bytes: bytes, parts: release.parts, notes: release.notes,
                keeping: release.retainedResource)
        }
        let members: [(name: String, size: Int)]
        let foreign = MoultError(
            .subject, what: "cannot read the bundle \(path)",
            why:
                "its manifest is not in the same directory, and without a manifest, only bundles that `moult pack` made as .tar.zst can be read",
            now: "Specify the manifest instead.")
        guard try ArchiveKind(fileName: path) == .tar(.zstd) else { throw foreign }
        do { members = try ConfinedArchive(path).members() } catch let error as MoultError
            where error.code == .archiveKind
        { throw foreign }
        let unpacked = try UnpackedBundle(
            path,
            members: members.map { Member(name: $0.name, file: $0.name.containsSlash ? nil : $0.name, size: $0.size) },
            progress)
        let parts = members.filter { !$0.name.containsSlash }.map { member in
            Part(name: member.name, path: unpacked.path(member.name))
        }
        return Subject(
            .bundle, path, parts: parts, notes: ["its manifest is not in the same directory: nothing was verified"],
            keeping: unpacked)
    }
}
