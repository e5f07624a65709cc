internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The newest feed that a store has seen, so that it does not accept an older one later: `.moult/feed/seen.json`. If the file is
/// missing, the seals of the kept generations have the same information.
package struct ReplayGuard: Equatable {
    /// The highest serial of a verified feed under the newest key list.
    package var serial = 0
    /// The number of that key list; 0 for the pinned keys, nil if it is unknown.
    package var keyList: Int?
    /// The last verified feed: its location, the server's tag for it, and its digest.
    package var url: String?
    package var tag: String?
    package var sha256: String?

    package static func path(_ layout: StoreLayout) -> String { "\(layout.feed)/seen.json" }
    /// Returns whether the record exists; otherwise `read` derives it from the generations.
    package static func isThere(_ layout: StoreLayout) throws -> Bool { try Files.facts(path(layout)) != nil }

    package static func read(_ layout: StoreLayout) throws -> ReplayGuard {
        // A power failure may leave the file empty: then the record counts as missing.
        guard let bytes = try Files.read(path(layout), limit: 1 << 20),
            let json = try? JSON(parsing: bytes, source: path(layout)), let serial = json["serial"]?.integer
        else { return try ofGenerations(layout) }
        return ReplayGuard(
            serial: Int(serial), keyList: json["keys"]?.integer.map { Int($0) }, url: json["url"]?.string,
            tag: json["tag"]?.string, sha256: json["sha256"]?.string)
    }

    private static func ofGenerations(_ layout: StoreLayout) throws -> ReplayGuard {
        var seen = ReplayGuard()
        for name in try Generation.names(layout) {
            // A generation that cannot be read is ignored; `verify` reports it.
            guard let generation = try? Generation.load(name, in: layout), let seal = try? generation.seal(),
                let serial = seal.feedSerial
            else { continue }
            // With a newer key list, serials start again.
            if let list = seal.keys?.list, list > seen.keyList ?? 0 { (seen.serial, seen.keyList) = (0, list) }
            if seal.keys?.list ?? 0 == seen.keyList ?? 0 { seen.serial = max(seen.serial, serial) }
        }
        return seen
    }

    /// Replaces the record. `durable` syncs it, so that a power failure cannot make an old feed acceptable.
    package func write(_ layout: StoreLayout, durable: Bool) throws {
        let json = JSON.record(["seen": 1, "serial": serial, "keys": keyList, "url": url, "tag": tag, "sha256": sha256])
        try Files.ensureDirectory(layout.feed)
        let bytes = Array((json.line + "\n").utf8)
        try Files.replace(Self.path(layout), with: bytes, durable: durable)
    }
}

extension Feed {
    /// Returns the last verified feed, as the store has saved it; nil if the feed was never requested, or if the saved copy is not the
    /// verified one.
    package static func saved(in layout: StoreLayout) throws -> Feed? {
        let path = "\(layout.feed)/\(Feed.fileName)"
        guard let bytes = try Files.read(path, limit: Feed.largest),
            try SHA256.digest(of: bytes).hex == ReplayGuard.read(layout).sha256
        else { return nil }
        return try Feed(parsing: bytes, source: path)
    }
}
