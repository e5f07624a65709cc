internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// A database is written only under its one name. SQLite finds the `-wal` of a database by the database's name, so a file with two
/// names has two of them, and rows in one are lost when the other is used.
enum SoleName {
    /// Throws if the file has another hard link, as `cp -al` makes it, or is mounted by itself.
    static func require(_ place: String) throws {
        guard let facts = try Files.factsThroughLinks(place), facts.kind == .file else { return }
        let found = try Files.resolvedForOpening(place)
        // Advice has a path that still works when the directory is closed.
        let file = PinnedDirectory.split(found) == nil ? found : place
        if facts.links > 1 { throw try hardLinked(place, file) }
        if try Files.isMountPoint(file) { throw mounted(place, file) }
    }

    private static func hardLinked(_ place: String, _ file: String) throws -> MoultError {
        let commands = try ([file] + Sidecars.of(file).paths).map { file in
            // The copy's name must be free, because `mv` would replace an existing file.
            let copy = try Files.firstFree(Files.staged(file))
            return "\(shellLine(["cp", "-p", file, copy])) && \(shellLine(["mv", copy, file]))"
        }
        return MoultError(
            .severalNames, .refused, what: "\(place) has other names",
            why: "the file has more than one hard link, and a program that uses another name could lose rows",
            now: "Stop the programs that use the file, then give the database a file of its own: "
                + commands.joined(separator: " && "))
    }

    private static func mounted(_ place: String, _ file: String) -> MoultError {
        MoultError(
            .severalNames, .refused, what: "\(place) is mounted as a single file",
            why: "a program that uses the file under its other name could lose rows",
            now: "Mount the directory that contains \(file) instead of the file.")
    }
}

extension MoultError.Code {
    /// A writable database has another hard link, or is mounted as a single file.
    static let severalNames = Self(633)
    /// The text encoding of a writable database differs from that of the release.
    static let encoding = Self(634)
}
