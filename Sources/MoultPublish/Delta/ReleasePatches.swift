internal import MoultBasics
internal import MoultFiles
internal import StepKit

struct ReleasePatches {
    let options: PackOptions
    /// The directory with the members of the release, in which patches are made.
    let outputStaging: String
    let stem: String

    /// Patches for bundles smaller than this are made only if the publisher asks for them: a request costs more than it saves.
    static let smallestBundle = 16 << 10
    /// The time in seconds after which `pack` makes no further patches on its own.
    private static let maxSeconds = 600

    private static let notSmaller = "it would not be clearly smaller than the bundle"

    struct Made {
        let patch: Manifest.Patch
        let path: String
    }

    private struct Base {
        let path: String
        /// Whether the publisher has asked for patches from it; otherwise `pack` has chosen it.
        let isRequested: Bool
    }

    /// Returns the patches that save bytes, without duplicates: for each base, those that a store with it needs.
    func make(for release: Manifest) throws -> [Made] {
        var all: [Made] = []
        var older: [Manifest] = []
        let deadline = ContinuousClock.now + .seconds(Self.maxSeconds)
        let limit = 2 * (release.bundle?.size ?? 0)
        for base in try bases(of: release) {
            let subject = try Subject.open(base.path)
            guard let before = subject.manifest, before.product == release.product, before.version != release.version
            else { throw Self.refusal(of: base.path, subject, release) }
            if older.contains(where: { $0.version == before.version }) { continue }
            let why: String?
            let needed: [Made]
            do {
                let made = try direct(
                    from: subject, before, to: release, except: all, until: base.isRequested ? nil : deadline)
                let whole = try whole(release, missingIn: before, except: all)
                needed = try worthwhile(all + made + whole, for: before, release)
                why = needed.isEmpty && Self.differs(before, release) ? Self.notSmaller : nil
            } catch is OutOfTime { (needed, why) = ([], "patches took more than \(Self.maxSeconds / 60) minutes") }
            let new = needed.filter { one in !all.contains { $0.patch.file == one.patch.file } }
            let size = (all + new).reduce(0) { $0 + $1.patch.size }
            if let why {
                // Of releases that differ in everything, each `pack` would say so.
                if why == Self.notSmaller, !base.isRequested { continue }
                options.warn("the patch from \(before.version) is omitted: \(why)")
            } else if !base.isRequested, size > limit {
                options.warn(
                    "the patch from \(before.version) is omitted: all patches together would be larger than \(ByteCount(limit))"
                )
            } else {
                all += new
                older.append(before)
            }
        }
        return all
    }

    /// Returns the releases that the publisher has named, then the newest ones in the output directory that its feed offers.
    private func bases(of release: Manifest) throws -> [Base] {
        let requested = options.deltaFrom.map { Base(path: $0, isRequested: true) }
        guard options.patches > 0, release.bundle?.size ?? 0 >= Self.smallestBundle else { return requested }
        let there = try EarlierRelease.all(in: options.output).filter {
            try $0.precedes(release) && $0.manifest.bundle != nil && $0.hasBundle
        }
        guard let (feed, _) = try FeedDirectory(path: options.output).feed(), feed.product == release.product else {
            return requested + there.prefix(options.patches).map { Base(path: $0.path, isRequested: false) }
        }
        let offered = PatchBases.offered(by: feed, before: release.version, newest: options.patches)
        let digests = Set(feed.releases.filter { offered.contains($0.version) }.map(\.manifest.sha256))
        return try requested
            + there.filter { try digests.contains($0.digest) }.map { Base(path: $0.path, isRequested: false) }
    }

    private static func refusal(of path: String, _ subject: Subject, _ release: Manifest) -> MoultError {
        MoultError(
            .packing, what: "\(path) cannot be the base of a patch",
            why: subject.manifest == nil
                ? "it is not the manifest of a release" : "it is not another release of \(release.product)",
            now: "Specify the manifest of an older release, with its bundle in the same directory.")
    }

    private struct OutOfTime: Error {}

    private func direct(
        from subject: Subject, _ before: Manifest, to release: Manifest, except all: [Made],
        until deadline: ContinuousClock.Instant?
    ) throws -> [Made] {
        let changed = release.databases.compactMap { database -> Change? in
            guard database.place == .generation, let content = release.content(of: database.member),
                let old = before.database(database.name), let base = before.content(of: old.member), base != content,
                // Another base has the same file.
                !all.contains(where: { $0.patch.member == database.member && $0.patch.base == base }),
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
            return try make(
                name, release, change.database.member, from: (change.path, change.base), before.version, until: deadline
            )
        }
    }

    private struct Change {
        let database: Database
        let path: String
        let base: Manifest.Content
    }

    /// Makes patches without an old file, for members that the older release lacks: new databases, and migrations, which
    /// generations do not keep.
    private func whole(_ release: Manifest, missingIn before: Manifest, except all: [Made]) throws -> [Made] {
        try release.databases.filter { $0.place == .generation }.flatMap { database in
            let isNew = before.database(database.name) == nil
            return try ((isNew ? [database.member] : []) + database.migrations.map(\.member))
                .filter { member in !all.contains { $0.patch.member == member && $0.patch.base == nil } }
                .map { member in
                    let plain = member.pathParts().joined(separator: ".")
                    return try make("\(stem).\(plain).patch", release, member, from: nil, before.version, until: nil)
                }
        }
    }

    private func make(
        _ name: String, _ release: Manifest, _ member: String, from base: (path: String, content: Manifest.Content)?,
        _ version: Version, until deadline: ContinuousClock.Instant?
    ) throws -> Made {
        let path = "\(outputStaging)/\(name)"
        try Files.remove(path)
        let maker = PatchMaker(threads: options.threads) { _, _ in
            if let deadline, ContinuousClock.now > deadline { throw OutOfTime() }
        }
        let made = try maker.make(from: base?.path, to: "\(outputStaging)/\(member)", as: path)
        return Made(
            patch: .init(
                member: member, from: version, base: base?.content, file: name, size: made.size, sha256: made.sha256),
            path: path)
    }

    /// Returns the patches that a store with the older release needs; none if they would not be clearly smaller than the bundle.
    private func worthwhile(_ all: [Made], for before: Manifest, _ release: Manifest) throws -> [Made] {
        var trial = release
        trial.patches = all.map(\.patch)
        let files = Set(trial.worthwhilePatches(from: before)?.map(\.file) ?? [])
        return all.filter { files.contains($0.patch.file) }
    }

    private static func differs(_ before: Manifest, _ release: Manifest) -> Bool {
        var unpatched = release
        unpatched.patches = []
        return unpatched.worthwhilePatches(from: before) == nil
    }
}
