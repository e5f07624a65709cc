internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Sets a living database aside with everything beside it, and puts the fresh one in its place.
///
/// The order is what makes it safe at every moment: first each file of the set gets its name in quarantine, then the
/// sidecars' names go, and the last step exchanges the main file. With the main file first, whoever opens the path in
/// between lets SQLite remove a `-wal` full of rows that does not belong to the fresh file.
final class Quarantine {
    let place: String
    /// The set's own directory.
    let directory: String
    /// Where the fresh file waits.
    let fresh: String
    let label: QuarantineLabel
    /// Where it was staged what could still be read.
    let salvaged: String
    /// What keeps others out meanwhile.
    private var lease: WriteLease?
    private var writer: Connection?

    static let salvagedName = "salvaged.db"
    static let reportName = "salvaged.json"
    /// The fresh file as it was when it took the place.
    private var put: FileFacts?
    private static let suffixes = ["-journal", "-wal", "-shm"]

    init(place: String, directory: String, fresh: String, label: QuarantineLabel, salvaged: String) {
        (self.place, self.directory, self.fresh, self.label) = (place, directory, fresh, label)
        self.salvaged = salvaged
    }

    /// By which inode a settling knows what is still to be set aside; 0 for nothing.
    func original() throws -> UInt64 { try Files.facts(place)?.inode ?? 0 }

    // MARK: keeping others out

    /// Nobody may be in the middle of a write when the names change. What people wrote must not be in use at all.
    func engage() throws {
        guard try Files.facts(place)?.kind == .file else { return }
        do { lease = try WriteLease.take(place) } catch {
            // Not our file, or not even readable: then the kernel grants no lease, and we may still see who has it.
            if try OpenFiles.holders(of: [place]).isEmpty { return }
        }
        if lease != nil { return }
        guard label.kind == .cache else { throw try inUse() }
        // An idle user of a cache keeps his file; a writer is waited for, but not for ever.
        do {
            let connection = try Connection(path: place, access: .readWrite)
            try connection.set(.noCheckpointOnClose, true)
            try connection.execute("BEGIN EXCLUSIVE")
            writer = connection
        } catch { writer = nil }
    }

    private func inUse() throws -> MoultError {
        let holders = try OpenFiles.holders(of: [place] + Sidecars.of(place).paths).map(\.description)
        return MoultError(
            .inUse, .busy, what: "\(place) is in use",
            why: holders.isEmpty
                ? "this process has it open itself" : "\(holders.joined(separator: ", ")) has it open",
            now: "Stop that program, and try again: what it writes meanwhile would be set aside, too.")
    }

    func finish() {
        lease = nil
        writer = nil
    }

    // MARK: there

    func perform(original: UInt64) throws {
        if original == 0, try Files.facts(place) == nil, try Sidecars.of(place).isEmpty { return }
        try make(directory)
        try label.write(to: directory)
        let there = try Files.facts(place)
        if (there?.inode ?? 0) == original {
            // Each step on the disk before the next: a name in quarantine before the one beside the database goes, and
            // that before the fresh file comes, which would be read with it.
            if let there, there.kind == .file { _ = try giveName(place, kept("")) }
            let left = try Self.suffixes.compactMap { suffix in try name(suffix).map { (place + suffix, $0) } }
            try syncQuarantine()
            for (sidecar, name) in left { try setAside(sidecar, name) }
            if !left.isEmpty { try Files.syncDirectory(Files.directory(of: place)) }
            if there != nil { try exchange() }
        }
        try tidy(original)
        for name in try Files.list(salvaged) { try Files.rename("\(salvaged)/\(name)", to: "\(directory)/\(name)") }
        for changed in [directory, Files.directory(of: directory), Files.directory(of: place)] {
            try Files.syncDirectory(changed)
        }
    }

    private func exchange() throws {
        put = try Files.facts(fresh)
        try Files.exchange(fresh, place)
        guard label.kind != .cache, let lease, try !lease.isWhole() else { return }
        // Somebody is about to open the old file, and would find the fresh one's sidecars beside it.
        try Files.exchange(fresh, place)
        throw try inUse()
    }

    /// What came out of the exchange has its name in quarantine, or gets it now: a directory, or somebody else's file.
    private func tidy(_ original: UInt64) throws {
        guard let left = try Files.facts(fresh), left.inode == original else { return }
        if try Files.facts(kept(""))?.inode == original {
            try Files.remove(fresh)
        } else {
            try Files.rename(fresh, to: kept(""))
        }
    }

    /// The directories that may have been made for this, up to the one that is always there.
    private func syncQuarantine() throws {
        var changed = directory
        for _ in 0..<4 {
            try Files.syncDirectory(changed)
            changed = Files.directory(of: changed)
        }
    }

    /// Gives a sidecar its name in quarantine; nil if there is none.
    private func name(_ suffix: String) throws -> String? {
        let sidecar = place + suffix
        guard let facts = try Files.facts(sidecar) else { return nil }
        // One of the same name may be there from before a crash, after which somebody opened the database once more.
        var name = kept(suffix)
        var number = 2
        while let other = try Files.facts(name), other.inode != facts.inode {
            name = "\(kept(suffix)).\(number)"
            number += 1
        }
        if facts.kind == .file { _ = try giveName(sidecar, name) }
        return name
    }

    /// Takes a sidecar away, whose name in quarantine is on the disk; what can have one name only is renamed.
    private func setAside(_ sidecar: String, _ name: String) throws {
        if try Files.facts(name) != nil { try Files.remove(sidecar) } else { try Files.rename(sidecar, to: name) }
    }

    /// A second name for a file; false where that cannot be, for instance because the file is somebody else's.
    private func giveName(_ file: String, _ name: String) throws -> Bool {
        if try Files.facts(name) != nil { return true }
        return try Files.hardLinkIfPossible(file, at: name)
    }

    // MARK: and back

    /// Brings the whole set back. What may be in its place by now is set aside in turn, and nothing is lost.
    func revert(original: UInt64) throws {
        try tidy(original)
        if try Files.facts(directory) == nil { return finish() }
        if try (Files.facts(place)?.inode ?? 0) != original, try Files.facts(kept("")) != nil {
            if try isUntouched() {
                try Files.rename(place, to: fresh)
            } else if try Files.facts(place) != nil {
                for suffix in [""] + Self.suffixes where try Files.facts(place + suffix) != nil {
                    try Files.rename(place + suffix, to: "\(kept("")).replaced\(suffix)")
                }
            }
            // Whoever opens it from now on waits until its sidecars are there, too.
            // Where the kernel grants nothing there is only the moment between two renames.
            if lease == nil { lease = try? WriteLease.take(kept("")) }
            try Files.rename(kept(""), to: place)
        }
        for suffix in Self.suffixes where try Files.facts(kept(suffix)) != nil && Files.facts(place + suffix) == nil {
            try Files.rename(kept(suffix), to: place + suffix)
        }
        try Files.syncDirectory(Files.directory(of: place))
        try removeIfEmpty()
        finish()
    }

    /// Whether the fresh file is in the place as we put it, and nobody has opened it.
    private func isUntouched() throws -> Bool {
        guard let put, let now = try Files.facts(place), now.inode == put.inode, now.modified == put.modified else {
            return false
        }
        // Where the kernel grants none, nobody knows.
        return (try? WriteLease.take(place)).flatMap(\.self) != nil
    }

    /// What could not go back stays, with its label.
    private func removeIfEmpty() throws {
        let original = try Files.facts(place)
        for suffix in [""] + Self.suffixes {
            guard let left = try Files.facts(kept(suffix)) else { continue }
            let back = suffix.isEmpty ? original : try Files.facts(place + suffix)
            if left.inode == back?.inode { try Files.remove(kept(suffix)) }
        }
        let ours = [QuarantineLabel.fileName, Self.salvagedName, Self.reportName]
        if try Files.list(directory).allSatisfy(ours.contains) { try Files.removeTree(directory) }
    }

    private func kept(_ suffix: String) -> String { "\(directory)/\(Files.name(of: place))\(suffix)" }

    private func make(_ directory: String) throws {
        let above = Files.directory(of: directory)
        try Files.ensureDirectory(Files.directory(of: above))
        try Files.ensureDirectory(above)
        try CacheTag.put(in: above)
        try Files.ensureDirectory(directory, mode: 0o700)
    }
}
