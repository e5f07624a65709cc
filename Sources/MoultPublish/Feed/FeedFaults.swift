internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Finds files that a feed lists and that stores could not get, before the feed is renewed.
struct FeedFaults {
    let directory: FeedDirectory
    /// Whether the bundle and the patches of a release are somewhere else.
    let isElsewhere: (Feed.Release) -> Bool
    private let published: FileFacts.Moment?

    init(_ directory: FeedDirectory, isElsewhere: @escaping (Feed.Release) -> Bool) throws {
        (self.directory, self.isElsewhere) = (directory, isElsewhere)
        published = try Files.factsThroughLinks(directory.file(Feed.fileName))?.modified
    }

    /// Throws if files of these releases are missing or have other content. Withdrawn releases need none.
    func refuse(_ releases: [Feed.Release]) throws {
        let names = try releases.filter { $0.withdrawn == nil }.flatMap(faults)
        guard let first = names.first else { return }
        let some = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " …" : "")
        throw refusal(
            "the feed in \(directory.path) cannot be renewed",
            names.count == 1
                ? "it lists \(first), which is missing or has other content"
                : "it lists \(names.count) files that are missing or have other content: \(some)",
            "Restore them from a copy, or withdraw their releases with --withdraw. To find all problems: "
                + "\(moult: "publish", directory.path, "--check")")
    }

    private func faults(of release: Feed.Release) throws -> [String] {
        guard let manifest = try directory.manifest(of: release) else { return [release.manifest.name] }
        if isElsewhere(release) { return [] }
        return try manifest.files(listedFor: release).filter { try !has($0) }.map(\.name)
    }

    /// Only files that were changed after the feed are read in full: reading all would take too long for a large feed.
    private func has(_ file: Feed.File) throws -> Bool {
        let path = directory.file(file.name)
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file, facts.size == file.size else {
            return false
        }
        guard let published, facts.modified > published else { return true }
        return try file.isContent(of: path)
    }
}
