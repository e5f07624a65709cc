internal import MoultFiles
internal import StepKit

/// Selects the source of each member that a plan needs: an existing file, patches, or the bundle.
///
/// Chooses the sources with the fewest bytes to download, and among these the ones with the fewest bytes to read.
struct SourceSelection {
    let store: StoreSnapshot
    let manifest: Manifest
    /// Files that turned out to be unusable: patches by name, bases by generation and member.
    let avoided: Set<String>
    /// Returns the file of a patch; nil if it is not available.
    let find: (Manifest.Patch) throws -> Plan.PatchFile?

    /// Smaller files are copied, because that is faster than recording a hard link.
    static let minLinkedSize = 1 << 20

    /// Returns the members made without the bundle. `bundle` is the cost of the bundle; nil if it is not available.
    ///
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
            let cost = (
                patches.reduce(0) { $0 + $1.missing }, patches.reduce(0) { $0 + $1.size }
            )
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
