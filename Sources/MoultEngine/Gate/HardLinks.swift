internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// Handles additional names of a writable database's file: `cp -al` gives two stores the same files, and an update of one store
/// must not change the other.
struct HardLinks {
    private let place: String
    /// The paths at which moult itself may have made hard links to the file.
    private let own: [String]

    init(_ place: String, own: [String]) { (self.place, self.own) = (place, own) }

    /// Gives the database a separate file if its file has other names. The old file keeps those names unchanged.
    ///
    /// This is possible only while no process has the file open, and without sidecars, which are shared in the same way.
    func separate() throws {
        guard try isShared() else { return }
        let sidecars = try Sidecars.of(place).paths
        guard sidecars.isEmpty, let lease = try WriteLease.take(place, patience: .seconds(2)) else {
            throw inUse(sidecars)
        }
        let copy = Files.staged(place)
        try Files.remove(copy)
        try lease.reading { try Files.copy($0, to: copy, mode: 0o600) }
        try Files.copyAttributes(from: place, to: copy)
        try Files.syncFile(copy)
        try Files.exchange(copy, place)
        guard try lease.isUnbroken() else {
            // A process is about to open the old file, so the exchange is undone.
            try Files.exchange(copy, place)
            try Files.remove(copy)
            throw inUse(sidecars)
        }
        try Files.remove(copy)
        try Files.syncDirectory(Files.directory(of: place))
    }

    private func isShared() throws -> Bool {
        guard let facts = try Files.facts(place), facts.kind == .file, facts.links > 1 else { return false }
        let known = try own.count {
            let other = try Files.facts($0)
            return other?.inode == facts.inode && other?.device == facts.device
        }
        return facts.links > known + 1
    }

    private func inUse(_ sidecars: [String]) -> MoultError {
        let commands = ([place] + sidecars).map { file in
            // The copy's name must be free, because `mv` would replace an existing file.
            let copy = Files.staged(file)
            return "\(shellLine(["cp", "-p", file, copy])) && \(shellLine(["mv", copy, file]))"
        }
        return MoultError(
            .hardLinked, .busy, what: "\(place) is in use, and the same file has other names",
            why: "the update would change the file under all its names (hard links, such as those that cp -al creates)",
            now: "Stop the app, then give the database a file of its own: \(commands.joined(separator: " && "))")
    }
}

extension MoultError.Code {
    /// A writable database has other hard links and cannot be separated from them.
    static let hardLinked = Self(633)
}
