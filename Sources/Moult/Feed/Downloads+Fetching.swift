internal import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
internal import StepKit

extension Downloads {
    /// Takes the lock on downloads, because two processes must not write to the same partial file.
    func lock(wait seconds: Int, stop: () throws -> Void) throws -> FileLock {
        var backoff = Backoff(.seconds(seconds), longest: 20)
        repeat {
            do {
                // A store of which only the settings are left has no directory of moult.
                try Files.ensureDirectories(layout.downloads)
                if let lock = try FileLock.take(layout.downloadLock, .exclusive) { return lock }
            } catch let error as MoultError { throw StoreLock.explained(error, layout) }
            try stop()
        } while backoff.pause()
        throw MoultError(
            .locked, .busy, what: "the store \(layout.root) is being updated",
            why: "another moult process is downloading a release for it",
            now:
                "Try again later, or \(commandLine: "wait for the other process: --wait SECONDS", app: "wait longer: waiting:")"
        )
    }

    /// Downloads a bundle or a patch from the first location whose file matches the manifest.
    func fetch(_ place: Place, from places: [Location], by transport: Transport, _ watcher: Watcher) throws {
        if try isWhole(place) { return }
        try keepOnly(partial: place.partial)
        _ = try first(of: places, with: place, by: transport) { try fetchOnce(place, from: $0, by: $1, watcher) }
    }

    /// Returns the first location that has a file, as far as one small request tells; nil if the file is downloaded already.
    func find(_ place: Place, at places: [Location], by transport: Transport) throws -> Location? {
        if try place.missing() == 0 { return nil }
        return try first(of: places, with: place, by: transport) { try $1.requireThere($0, size: place.size) }
    }

    private func first(
        of places: [Location], with place: Place, by transport: Transport, _ body: (Location, Transport) throws -> Void
    ) throws -> Location {
        var faults: [MoultError] = []
        for (index, source) in places.enumerated() {
            let file = source.beside(place.name, sha256: place.sha256)
            do {
                try body(file, transport.share(of: places.count - index))
                return file
            } catch let error as MoultError {
                if error.code == .interrupted || error.code == .system || error.code == .helper { throw error }
                faults.append(error)
            }
        }
        throw faults.first { $0.outcome == .refused } ?? faults.first
            ?? MoultError(.noFeed, what: "no address to download \(place.name) from")
    }

    /// Returns whether the file exists and matches the manifest. A different file of the same size is removed, because every
    /// retry would fail on it again.
    private func isWhole(_ place: Place) throws -> Bool {
        guard try place.missing() == 0, try Files.facts(place.path) != nil else { return false }
        if try SHA256.digest(ofFileAt: place.path).hex == place.sha256 { return true }
        try Files.remove(place.path)
        return false
    }

    private func fetchOnce(_ place: Place, from source: Location, by transport: Transport, _ watcher: Watcher) throws {
        let before = try Files.facts(place.partial)?.size ?? 0
        try transport.download(source, to: place.partial, size: place.size) { done in
            watcher.tell(.progress(.init("fetch", done: done, total: place.size)))
        }
        if try SHA256.digest(ofFileAt: place.partial).hex == place.sha256 {
            return try Files.rename(place.partial, to: place.path)
        }
        try Files.remove(place.partial)
        // The partial file may have belonged to another version: download everything again, once.
        if before > 0 { return try fetchOnce(place, from: source, by: transport, watcher) }
        throw MoultError(
            .digest, .refused, what: "\(source) does not match the release",
            why: "its SHA-256 does not match the manifest", now: "Try again later, or report it to the publisher.")
    }

    /// Removes partial downloads of other bundles, so that they do not accumulate.
    private func keepOnly(partial: String) throws {
        for name in try Files.list(layout.downloads) where name.hasSuffix(".part") || name.hasSuffix(".part.tag") {
            let path = "\(layout.downloads)/\(name)"
            if path != partial, path != "\(partial).tag" { try Files.remove(path) }
        }
    }

    func trim(to bytes: Int) throws {
        var found: [(path: String, size: Int, time: Int)] = []
        for name in try Files.list(layout.downloads) where name != "lock" && !CacheTag.isTag(name) {
            let path = "\(layout.downloads)/\(name)"
            guard let facts = try Files.facts(path), facts.kind == .file, !name.hasSuffix(".part") else { continue }
            found.append((path, facts.size, facts.modified.seconds))
        }
        var left = found.reduce(0) { $0 + $1.size }
        for file in found.sorted(by: { $0.time < $1.time }) where left > bytes {
            try Files.remove(file.path)
            left -= file.size
        }
    }
}
