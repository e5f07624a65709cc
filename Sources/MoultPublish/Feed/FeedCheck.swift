package import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Checks a whole feed directory as a store would, with every file that the feed lists.
package struct FeedCheck {
    /// Returns the reasons why a store would refuse the feed of this product at a path.
    package typealias Follow = (_ feed: String, _ product: String) throws -> [MoultError]

    package struct Report: Sendable {
        package var feed: String
        package let serial: Int
        package let expires: Timestamp
        package let releases: Int
        package internal(set) var faults: [Fault] = []
        /// Files that killed commands have left behind, and patches that the feed does not list.
        package fileprivate(set) var leftovers: [String] = []
        package fileprivate(set) var removed: [String] = []
        /// Files that are not part of the feed and do not seem to be moult's.
        package fileprivate(set) var others: [String] = []
    }

    package struct Fault: Sendable {
        /// The name of the file; nil if the problem concerns the whole feed.
        package let file: String?
        package var why: String
        package var now: Advice?

        /// Gives a temporary directory another name in the texts.
        mutating func rename(_ path: String, to name: String) {
            (why, now) = (why.replacing(path, with: name), now?.replacing(text: path, with: name))
        }
    }

    private let directory: FeedDirectory
    /// The work directories that commands create in such a directory.
    private static let workDirectories = [".moult-publish", ".moult-pack", ".moult-export", ".moult-trust"]

    package init(_ path: String) { directory = FeedDirectory(path: path) }

    /// Checks everything. With `tidy`, also removes leftovers, which completes or undoes the work of a killed command.
    package func run(tidy: Bool, follow: Follow) throws -> Report {
        var removed: [String] = []
        let output = try tidy ? PinnedDirectory.output(directory.path) : nil
        defer { withExtendedLifetime(output) {} }
        let lock = try tidy ? directory.lock() : nil
        defer { withExtendedLifetime(lock) {} }
        if tidy {
            removed = try workLeftovers()
            for name in Self.workDirectories { try WorkDirectory.removeLeftovers(of: name, in: directory.path) }
        }
        guard let (feed, digest) = try directory.feed() else {
            throw MoultError(
                .publishing, what: "no feed at \(directory.file(Feed.fileName))", why: "no such file",
                now: "Specify the directory of a feed.")
        }
        var report = Report(
            feed: directory.file(Feed.fileName), serial: feed.serial, expires: feed.expires,
            releases: feed.releases.count)
        report.faults = try (keyListFaults() + follow(directory.file(Feed.fileName), feed.product)).map {
            Fault(file: nil, why: $0.what + ($0.why.map { ": \($0)" } ?? ""), now: $0.now)
        }
        var names = try namesOfFeed(digest)
        for release in feed.releases { try check(release, &report, &names) }
        let stale = try directory.stalePatches(feed).sorted()
        if tidy {
            for name in stale { try Files.remove(directory.file(name)) }
            report.removed = removed + stale
        } else {
            report.leftovers = try workLeftovers() + stale
        }
        names.formUnion(try manifestsOfDroppedReleases(feed, except: names))
        let known = names.union(report.leftovers + [FeedDirectory.lockName])
        report.others = try Files.list(directory.path).filter { !known.contains($0) }
        return report
    }

    /// Returns the names of the manifests of releases that were in an earlier feed, of their signatures, and of the record of
    /// uploads.
    private func manifestsOfDroppedReleases(_ feed: Feed, except names: Set<String>) throws -> [String] {
        let newest = feed.releases.map(\.version).max { $0.precedes($1) }
        return try Files.list(directory.path).filter { $0.hasSuffix(".json") && !names.contains($0) }.flatMap { name in
            guard let release = try EarlierRelease(directory.file(name)), release.manifest.product == feed.product,
                newest.map({ release.manifest.version.precedes($0) }) ?? false
            else { return [String]() }
            return try [name] + SignatureFiles.beside(directory.file(name)).map(\.0)
        } + [FeedUpload.recordName]
    }

    /// Stores ignore a key list without valid signatures, and then report only that the feed has an unknown key.
    private func keyListFaults() throws -> [MoultError] {
        do { _ = try KeyDirectory(path: directory.path).newest() } catch let error as MoultError {
            if error.outcome == .refused { return [error] }
            throw error
        }
        return []
    }

    private func workLeftovers() throws -> [String] {
        try Self.workDirectories.flatMap { try WorkDirectory.leftovers(of: $0, in: directory.path) }
    }

    private func namesOfFeed(_ digest: String) throws -> Set<String> {
        let lists = (1...KeyList.maxLists).lazy.map { KeyList.fileName($0) }
        let heads = try [Feed.fileName] + lists.prefix { try Files.facts(directory.file($0)) != nil }
        return Set(
            try Files.list(directory.path).filter { name in
                heads.contains { name == $0 || name.hasPrefix("\($0).") && name.hasSuffix(".minisig") }
            })
    }

    private func check(_ release: Feed.Release, _ report: inout Report, _ names: inout Set<String>) throws {
        let own = release.manifest.name
        names.formUnion([own] + (try SignatureFiles.beside(directory.file(own)).map(\.0)))
        // Stores do not install a withdrawn release, so its files may have been removed.
        let isNeeded = release.withdrawn == nil
        let manifest = try directory.manifest(of: release)
        for file in [release.manifest] + (manifest?.files(listedFor: release) ?? []) {
            names.insert(file.name)
            if isNeeded, let found = try fault(file) { report.faults.append(found) }
        }
        guard let patches = manifest?.patches.map(\.file) else { return }
        report.faults += release.patches.filter { !patches.contains($0.file) }.map {
            Fault(
                file: $0.file, why: "the manifest \(own) does not have this patch",
                now: "Restore the feed and its signatures from a copy.")
        }
    }

    private func fault(_ file: Feed.File) throws -> Fault? {
        let path = directory.file(file.name)
        guard let facts = try Files.factsThroughLinks(path) else {
            return Fault(
                file: file.name, why: "it is missing", now: "Restore the file from a copy, or \(try publishAgain())")
        }
        let why: String? =
            if facts.kind != .file { "it is not a regular file" } else if facts.size != file.size {
                "it has \(facts.size) bytes instead of \(file.size)"
            } else if try !file.isContent(of: path) { "its SHA-256 does not match the feed" } else { nil }
        // `publish` never replaces a published file.
        return try why.map {
            Fault(file: file.name, why: $0, now: "Restore the file from a copy, or remove it and \(try publishAgain())")
        }
    }

    private func publishAgain() throws -> Advice {
        let isSigned = try !SignatureFiles.beside(directory.file(Feed.fileName)).isEmpty
        let words = ["moult", "publish", directory.path, "MANIFEST"] + (isSigned ? ["--key", "FILE"] : [])
        return "publish the release again: \(run: words)"
    }
}
