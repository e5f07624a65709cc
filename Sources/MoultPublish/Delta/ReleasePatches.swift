internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Makes the patches that lead from older releases to a release, and includes the patches of the older releases, so that a
/// store may apply several in sequence.
struct ReleasePatches {
    let options: PackOptions
    /// The directory with the members of the release, in which patches are made.
    let outputStaging: String
    /// The prefix of patch names.
    let stem: String

    /// The maximum number of patches in a manifest; any others are left out.
    private static let maxPatches = 64

    /// A patch, and the current path of its file.
    struct Made {
        let patch: Manifest.Patch
        let path: String
    }

    /// Returns the patches that save bytes, without duplicates.
    func make(for release: Manifest) throws -> [Made] {
        var all: [Made] = []
        var older: [Manifest] = []
        for path in options.deltaFrom {
            let subject = try Subject.open(path)
            guard let before = subject.manifest, before.product == release.product,
                before.version != release.version
            else {
                throw MoultError(
                    .packing, what: "\(path) cannot be the base of a patch",
                    why: subject.manifest == nil
                        ? "it is not the manifest of a release" : "it is not another release of \(release.product)",
                    now: "Specify the manifest of an older release, with its bundle in the same directory.")
            }
            older.append(before)
            for made in try direct(from: subject, before, to: release) + inherited(from: before, at: path)
            where !all.contains(where: { $0.patch.file == made.patch.file }) {
                all.append(made)
            }
        }
        if let first = older.first { all += try whole(release, none: older, from: first.version) }
        return worthwhile(all, release, older)
    }

    private func direct(from subject: Subject, _ before: Manifest, to release: Manifest) throws -> [Made] {
        let changed = release.databases.compactMap { database -> Change? in
            guard database.place == .generation, let content = release.content(of: database.member),
                let old = before.database(database.name), let base = before.content(of: old.member), base != content,
                let path = subject.part(database.name)?.path
            else { return nil }
            return Change(database: database, path: path, base: base)
        }
        // Making patches that cannot save bytes would take longer than packing the release.
        let unlike = try changed.filter { try PatchMaker.isUnlike($0.path, "\(outputStaging)/\($0.database.member)") }
        let size = release.databases.filter { $0.place == .generation }.reduce(0) { $0 + $1.size }
        if 10 * unlike.reduce(0, { $0 + $1.database.size }) > 9 * size { return [] }
        return try changed.map { change in
            let name = "\(stem).\(change.database.name).from-\(before.version.inFileNames).patch"
            return try make(name, release, change.database.member, from: (change.path, change.base), before.version)
        }
    }

    /// A database whose content differs from that of the older release.
    private struct Change {
        let database: Database
        let path: String
        let base: Manifest.Content
    }

    /// Makes patches without an old file, for members that have none in any release: new databases, and migrations, which
    /// generations do not keep.
    private func whole(_ release: Manifest, none older: [Manifest], from version: Version) throws -> [Made] {
        try release.databases.filter { $0.place == .generation }.flatMap { database in
            let isNew = older.contains { $0.database(database.name) == nil }
            return try ((isNew ? [database.member] : []) + database.migrations.map(\.member)).map { member in
                let plain = member.pathParts().joined(separator: ".")
                return try make("\(stem).\(plain).patch", release, member, from: nil, version)
            }
        }
    }

    private func make(
        _ name: String, _ release: Manifest, _ member: String, from base: (path: String, content: Manifest.Content)?,
        _ version: Version
    ) throws -> Made {
        let path = "\(outputStaging)/\(name)"
        try Files.remove(path)
        let made = try PatchMaker(threads: options.threads).make(
            from: base?.path, to: "\(outputStaging)/\(member)", as: path)
        return Made(
            patch: .init(
                member: member, from: version, base: base?.content, file: name, size: made.size, sha256: made.sha256),
            path: path)
    }

    /// Returns the patches of the older release, for use as intermediate steps; their files are next to its manifest.
    private func inherited(from before: Manifest, at manifest: String) throws -> [Made] {
        try before.patches.compactMap { patch in
            let path = "\(Files.directory(of: manifest))/\(patch.file)"
            guard patch.base != nil, let result = before.result(of: patch),
                try Files.factsThroughLinks(path)?.size == patch.size
            else { return nil }
            var step = patch
            step.result = result
            return Made(patch: step, path: path)
        }
    }

    private func worthwhile(_ all: [Made], _ release: Manifest, _ older: [Manifest]) -> [Made] {
        var trial = release
        trial.patches = all.map(\.patch).filter { release.content(of: $0.member) != nil }
        var kept: Set<String> = []
        for before in older {
            guard let patches = trial.worthwhilePatches(from: before) else {
                options.warn(
                    "the patch from \(before.version) is omitted: it would not be clearly smaller than the bundle")
                continue
            }
            kept.formUnion(patches.map(\.file))
        }
        // For a patch of an older release, only the file that it applies to is known. It is kept if the path from that file is
        // clearly smaller than the bundle.
        for patch in trial.patches {
            guard let base = patch.base, patch.result != nil, let bundle = release.bundle,
                let way = trial.cheapestWay(to: patch.member, from: [base], cost: { $0.size }),
                4 * way.cost <= 3 * bundle.size
            else { continue }
            kept.formUnion(way.patches.map(\.file))
        }
        return Array(all.filter { kept.contains($0.patch.file) }.prefix(Self.maxPatches))
    }
}
