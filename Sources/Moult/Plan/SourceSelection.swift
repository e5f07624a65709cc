internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Selects the source of each member that a plan needs: an existing file, patches, or the bundle.
/// Chooses the sources with the fewest bytes to download, and among these the ones with the fewest bytes to read.
struct SourceSelection {
    let store: StoreSnapshot
    let manifest: Manifest
    /// Files that turned out to be unusable: patches by name, bases by generation and member.
    let avoided: Set<String>
    let find: (Manifest.Patch) throws -> Plan.PatchFile?

    /// Smaller files are copied, because that is faster than recording a hard link.
    static let minLinkedSize = 1 << 20

    /// Returns the members made without the bundle. `bundle` is the cost of the bundle; nil if it is not available.
    /// The plan needs the bundle unless the result covers all of the members.
    func reuse(for members: [String], bundle: (missing: Int, size: Int)?) throws -> [Plan.Reuse] {
        let files = try ReusableFiles(in: store, without: avoided).files
        var same: [Plan.Reuse] = []
        var others: [String] = []
        for member in members {
            if let content = manifest.content(of: member), let file = files[content],
                try ReusableFiles.isSound(file, content)
            {
                same.append(Plan.Reuse(member: member, base: file.base, patches: []))
            } else {
                others.append(member)
            }
        }
        if others.isEmpty { return same }
        if let patched = try patched(others, files) {
            let patches = patched.flatMap(\.patches)
            let cost = (patches.reduce(0) { $0 + $1.missing }, patches.reduce(0) { $0 + $1.size })
            if bundle.map({ cost < ($0.missing, $0.size) }) ?? true { return same + patched }
        }
        return same.filter { manifest.content(of: $0.member).map { $0.size >= Self.minLinkedSize } ?? false }
    }

    private func patched(_ members: [String], _ files: [Manifest.Content: ReusableFiles.File]) throws -> [Plan.Reuse]? {
        guard !manifest.patches.isEmpty else { return nil }
        var found: [String: Plan.PatchFile] = [:]
        for patch in manifest.patches where !avoided.contains(patch.file) { found[patch.file] = try find(patch) }
        var reuse: [Plan.Reuse] = []
        for member in members {
            guard let way = manifest.cheapestWay(to: member, from: Set(files.keys), cost: { found[$0.file]?.size })
            else { return nil }
            reuse.append(
                Plan.Reuse(
                    member: member, base: way.base.flatMap { files[$0]?.base },
                    patches: way.patches.compactMap { found[$0.file] }))
        }
        return reuse
    }
}

struct ReusableFiles {
    struct File {
        let base: Plan.Reuse.Base
        let path: String
        let standing: Seal.Standing
    }

    /// Returns whether a file is unchanged since it was installed. An unconfirmed file, as in a copied store, is read to find
    /// out.
    static func isSound(_ file: File, _ content: Manifest.Content) throws -> Bool {
        switch file.standing {
        case .confirmed: true
        case .unconfirmed: try SHA256.digest(ofFileAt: file.path).hex == content.sha256
        case .damaged: false
        }
    }

    private(set) var files: [Manifest.Content: File] = [:]

    func members(of release: Manifest) -> Set<String> {
        Set(release.databases.map(\.member).filter { release.content(of: $0).map { files[$0] != nil } ?? false })
    }

    /// Examines only names and metadata. Of several files with the same content, those whose metadata matches their seal are
    /// preferred, and among them the installed one.
    init(in store: StoreSnapshot, without avoided: Set<String>) throws {
        let current = try store.installedName
        let names = try Generation.names(store.layout).filter { $0 != current }
        for name in (current.map { [$0] } ?? []) + names {
            // A generation that cannot be read is skipped, and does not prevent reuse of others.
            guard let generation = try? store.generation(name), let seal = try? store.seal(of: generation) else {
                continue
            }
            for database in generation.manifest.databases where database.place == .generation {
                let base = Plan.Reuse.Base(generation: name, member: database.member)
                // A file changed by a step no longer matches the manifest.
                guard !avoided.contains(base.description), seal.entry(database.member)?.sha256 == database.sha256,
                    let facts = try Files.facts(generation.path(database.member)), facts.kind == .file,
                    facts.size == database.size
                else { continue }
                let path = generation.path(database.member)
                guard let standing = try seal.entry(database.member)?.standing(of: path) else { continue }
                let content = Manifest.Content(size: database.size, sha256: database.sha256)
                if files[content].map({ $0.standing != .confirmed && standing == .confirmed }) ?? true {
                    files[content] = File(base: base, path: path, standing: standing)
                }
            }
        }
    }
}

extension Plan.Reuse.Base: CustomStringConvertible {
    package var description: String { "\(generation)/\(member)" }
}
