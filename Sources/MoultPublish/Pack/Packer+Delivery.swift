internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// How a packed release gets into the output directory, which may already have files.
extension Packer {
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

    /// Returns the files next to a manifest that belong to it.
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
