internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The sealed files of all generations, by content.
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

    /// Returns the members of a release whose content exists in a generation.
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
