internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
internal import MoultStore
package import StepKit

extension Orchestrator {
    /// Copies a release of the feed with all that proves it into a directory, for stores without a network; gives the
    /// names of the files.
    package func export(
        _ version: Version, to directory: String, _ request: FeedRequest, wait: Int = 0
    ) throws -> [String] {
        let follower = try follower(request, snapshot())
        let lock = try Downloads(layout).lock(wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        let current = try follower.ask()
        try follower.remember(current)
        guard let release = current.feed.release(version) else {
            let last = current.feed.releases.suffix(5).map(\.version.description).joined(separator: ", ")
            throw MoultError(
                .refused, .refused, what: "there is no release \(version) in \(current.place)", why: "it has \(last)",
                now: "Name one of them.")
        }
        let incoming = try follower.incoming(release, of: current)
        let manifest = try Manifest(parsing: incoming.bytes, as: .sealed, source: incoming.name)
        try Files.ensureDirectory(directory)
        var files: [String] = []
        if let bundle = manifest.bundle {
            let source =
                try incoming.path.map { "\(Files.directory(of: $0))/\(bundle.file)" }
                ?? follower.fetched(bundle, watcher)
            try copy(source, to: "\(directory)/\(bundle.file)")
            files.append(bundle.file)
        }
        func put(_ name: String, _ bytes: [UInt8]) throws {
            try Files.replace("\(directory)/\(name)", with: bytes)
            files.append(name)
        }
        for (name, bytes) in try follower.signatures(of: release, current) { try put(name, bytes) }
        try put(release.manifest.name, incoming.bytes)
        // What was kept of the feed proves it; the feed itself comes last.
        let signatures = try Files.list(layout.feed).filter { $0.hasPrefix(Feed.fileName) && $0.hasSuffix(".minisig") }
        for (directory, names) in [
            (layout.keys, try Files.list(layout.keys)), (layout.feed, signatures + [Feed.fileName]),
        ] {
            for name in names where !name.hasSuffix(".new") {
                if let bytes = try Files.read("\(directory)/\(name)", limit: Feed.largest) { try put(name, bytes) }
            }
        }
        return files
    }

    private func copy(_ source: String, to target: String) throws {
        let temporary = "\(target).new"
        try Files.remove(temporary)
        try Files.copy(source, to: temporary, mode: 0o644)
        try Files.seal(temporary, mode: 0o644)
        try Files.rename(temporary, to: target)
    }
}
