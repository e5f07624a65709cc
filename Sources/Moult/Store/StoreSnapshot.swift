internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

/// The records of a store at one moment. Each is read only once, when it is first needed. A command creates one snapshot, and
/// another one when it has the store's lock, because an update may have ended in between; an update creates more where it
/// needs the current content of a record.
package final class StoreSnapshot {
    package let layout: StoreLayout
    private var settingsRead: Result<Settings, any Error>?
    private var holdsRead: Result<Holds, any Error>?
    private var pointerRead: Result<String?, any Error>?
    private var linksRead: Result<[SealedFacts], any Error>?
    private var checksRead: Result<CheckRecord, any Error>?
    private var generations: [String: Result<Generation, any Error>] = [:]
    private var seals: [String: Result<Seal, any Error>] = [:]
    private var listings: [String: [String: FileFacts]] = [:]

    package init(_ layout: StoreLayout) { self.layout = layout }

    /// The store's settings. Throws if they name a directory for caches and another user wrote them, or if another user can
    /// change that directory.
    package var settings: Settings {
        get throws {
            try once(\.settingsRead) {
                let settings = try Settings.read(layout)
                if settings.cacheRoot != nil { try Custody(layout).checkSettings(allowsOtherOwner: false) }
                try Custody(layout).check(cacheRoot: settings.cacheRoot)
                return settings
            }
        }
    }

    /// Throws if other users may write to the settings: they could remove the keys, too. Settings of another user are accepted only
    /// if they specify no programs, keys, feed or directory. Code that uses the settings must call this; code that only reads the
    /// store need not.
    package func checkSettings() throws {
        let settings = try settings
        let isPlain =
            settings.steps.isEmpty && settings.consumers.isEmpty && settings.keys == nil && settings.feed == nil
            && settings.cacheRoot == nil
        try Custody(layout).checkSettings(allowsOtherOwner: isPlain)
    }

    package var holds: Holds { get throws { try once(\.holdsRead) { try Holds.read(layout, settings) } } }
    var checks: CheckRecord { get throws { try once(\.checksRead) { try CheckRecord(layout) } } }

    package func place(of database: Database) throws -> String {
        guard database.kind.isDisposable, let root = try settings.cacheRoot else { return layout.file(database.path) }
        return "\(root)/\(database.path)"
    }

    // MARK: generations

    var installedName: String? { get throws { try once(\.pointerRead) { try Generation.currentName(layout) } } }
    package var installed: Generation? { get throws { try installedName.map { try generation($0) } } }

    /// The installed version, even if the manifest is damaged; nil if nothing is installed.
    var installedVersion: Version? {
        get throws {
            guard let name = try installedName else { return nil }
            do { return try generation(name).manifest.version } catch {
                guard !Files.isDenied(error), let version = Version(Generation.version(of: name)) else { throw error }
                return version
            }
        }
    }

    /// Returns the installed generation, if any. If its manifest is damaged and the same release is being applied, that
    /// release's manifest is used.
    package func installed(orAs bytes: [UInt8], _ manifest: Manifest) throws -> Generation? {
        guard let name = try installedName else { return nil }
        do { return try generation(name) } catch {
            guard !Files.isDenied(error), try Generation.name(of: manifest, bytes: bytes) == name else { throw error }
            return Generation(name: name, in: layout, manifest: manifest, bytes: bytes)
        }
    }

    package func generation(_ name: String) throws -> Generation {
        try once(\.generations[name]) { try Generation.load(name, in: layout) }
    }

    /// Returns the shared database with this digest in the newest kept release that has it; nil if no kept release has it.
    package func releasedDatabase(digest: String) throws -> ReleasedDatabase? {
        var newest: ReleasedDatabase?
        for name in try Generation.names(layout) {
            // A generation with a damaged manifest provides no information.
            guard let manifest = try? generation(name).manifest,
                newest.map({ $0.version.precedes(manifest.version) }) ?? true,
                let database = manifest.databases.first(where: { $0.kind.isReplaced && $0.sha256 == digest })
            else { continue }
            newest = ReleasedDatabase(database, generation: name, version: manifest.version)
        }
        return newest
    }

    private func files(in generation: String) throws -> [String: FileFacts] {
        if let known = listings[generation] { return known }
        let found = try Files.entries(layout.generation(generation))
        listings[generation] = found
        return found
    }

    /// Returns the facts of a file in a generation, or of its target if it is a link; nil without one.
    func facts(of member: String, in generation: String) throws -> FileFacts? {
        let path = "\(layout.generation(generation))/\(member)"
        // A bundle may have directories.
        if member.containsSlash { return try Files.factsThroughLinks(path) }
        let facts = try files(in: generation)[member]
        return facts?.kind == .link ? try Files.factsThroughLinks(path) : facts
    }

    /// Returns the size of a generation's own files, without files that it only links to.
    package func size(of generation: String) throws -> Int {
        try files(in: generation).values.reduce(0) { $0 + ($1.kind == .file ? $1.size : 0) }
    }

    // MARK: seals

    /// Returns the seal of a generation, with the metadata that was recorded later.
    package func seal(of generation: Generation) throws -> Seal {
        try once(\.seals[generation.name]) { try generation.seal().withRecorded(links) }
    }

    func sealIfSound(of generation: Generation) throws -> Seal? {
        do { return try seal(of: generation) } catch let error as MoultError where !Files.isDenied(error) { return nil }
    }

    private var links: [SealedFacts] { get throws { try once(\.linksRead) { try LinkedFiles(layout).records() } } }

    /// Throws unless every file of the generation has the digest with which it was installed. A file is read only if its
    /// metadata does not match. With `renewing`, which needs the store's lock, the metadata of files that were read is
    /// recorded, so that they are not read again. That needs a manifest whose full digest is known, because the generation's
    /// name has only 32 bits of it: `release` is the manifest that was just applied, or the seal has its digest.
    package func verify(_ generation: Generation, renewing: Bool = false, as release: [UInt8]? = nil) throws {
        func damaged(_ path: String, _ why: String) throws -> MoultError {
            generation.damaged(path, why, isInstalled: try installedName == generation.name)
        }
        let seal = try seal(of: generation)
        let digest = try SHA256.digest(of: generation.bytes)
        let isNamed = generation.name.hasSuffix("+\(digest.prefix8)")
        guard isNamed, seal.manifest.map({ $0 == digest.hex }) ?? true, release.map({ $0 == generation.bytes }) ?? true
        else { throw try damaged(generation.path(Generation.manifestName), "was changed after it was installed") }
        for database in generation.manifest.databases {
            let path = generation.path(database.member)
            guard let entry = seal.entry(database.member) else {
                throw MoultError(
                    .generation, what: "\(path) was never sealed", why: "the generation's record does not list it")
            }
            switch try entry.standing(of: path) {
            case .confirmed: continue
            case .damaged(let why): throw try damaged(path, why)
            case .unconfirmed:
                guard let facts = try entry.verifiedFacts(of: path) else {
                    throw try damaged(path, "does not have the SHA-256 of the release")
                }
                if renewing, seal.manifest != nil || release != nil {
                    try LinkedFiles(layout).add(facts)
                    (linksRead, seals) = (nil, [:])
                }
            }
        }
    }

    // MARK: parts

    private func once<Value>(
        _ known: ReferenceWritableKeyPath<StoreSnapshot, Result<Value, any Error>?>, _ read: () throws -> Value
    ) throws -> Value {
        if let result = self[keyPath: known] { return try result.get() }
        let result = Result { try read() }
        self[keyPath: known] = result
        return try result.get()
    }
}
