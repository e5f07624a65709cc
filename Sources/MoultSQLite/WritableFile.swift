package import MoultBasics
import MoultFiles
import MoultLibc

/// The rules by which an update refuses to write to the file of a database, although SQLite could. Each has one implementation, for
/// updates, plans and reports.
package enum WritableFile {
    /// Returns why every update would refuse to write to the database; nil if none would.
    package static func refusal(at place: String) throws -> MoultError? {
        do {
            guard let facts = try Files.facts(place) else { return nil }
            if facts.kind == .link { try requireTrustedLink(place) }
            try requireSoleName(place)
            return nil
        } catch let error as MoultError where error.outcome == .refused { return error }
    }

    // MARK: one name

    /// Throws if the file has another hard link, as `cp -al` makes it, or is mounted by itself. SQLite finds the `-wal` of a
    /// database by the database's name, so a file with two names has two of them, and rows in one are lost when the other is used.
    package static func requireSoleName(_ place: String) throws {
        guard var facts = try Files.facts(place) else { return }
        var file = place
        if facts.kind == .link {
            let found = try Files.resolvedForOpening(place)
            // Advice has a path that still works when the directory is closed.
            if PinnedDirectory.split(found) == nil { file = found }
            guard let target = try Files.factsThroughLinks(place) else { return }
            facts = target
        }
        guard facts.kind == .file else { return }
        if facts.links > 1 { throw try hardLinked(place, file) }
        if try Files.isMountPoint(file) { throw mounted(place, file) }
    }

    private static func hardLinked(_ place: String, _ file: String) throws -> MoultError {
        let commands = try ([file] + Sidecars.of(file).paths).map { file in
            // The copy's name must be free, because `mv` would replace an existing file.
            let copy = try Files.firstFree(Files.staged(file))
            return [["cp", "-p", file, copy], ["mv", copy, file]]
        }
        return MoultError(
            .severalNames, .refused, what: "\(place) has other names",
            why: "the file has more than one hard link, and a program that uses another name could lose rows",
            now: "Stop the programs that use the file, then give the database a file of its own: "
                + "\(Advice.Command(commands.flatMap(\.self)))")
    }

    private static func mounted(_ place: String, _ file: String) -> MoultError {
        MoultError(
            .severalNames, .refused, what: "\(place) is mounted as a single file",
            why: "a program that uses the file under its other name could lose rows",
            now: "Mount the directory that contains \(file) instead of the file.")
    }

    // MARK: one encoding

    /// Throws if both encodings are known and differ. `content` and `file` name the new content for the user.
    package static func requireSameEncoding(
        _ path: String, _ old: String?, _ new: String?, of content: String = "the release", file: String = "NEW.db"
    ) throws {
        guard let old, let new, old != new else { return }
        let encoding = "echo \"PRAGMA encoding = '\(old)';\""
        throw MoultError(
            .encoding, .refused, what: "\(path) cannot get the content of \(content)",
            why:
                "the text encoding of the file is \(old), that of \(content) is \(new), and open connections would fail",
            now: "Nothing was changed. Convert the new database to \(old): "
                + "\(run: [], "(\(encoding); \(shellLine(["sqlite3", file, ".dump"]))) | sqlite3 CONVERTED.db")")
    }

    // MARK: a link that no other user controls

    /// Throws if the path is a link that a user other than this one or root created, or if this process runs as root and another
    /// user controls the target of the link.
    package static func requireTrustedLink(_ place: String) throws {
        guard let link = try Files.facts(place), link.kind == .link,
            try Files.factsThroughLinks(place)?.kind == .file
        else { return }
        let target = try Files.resolved(place)
        guard geteuid() == 0 else {
            if link.owner == 0 || link.owner == geteuid() { return }
            throw MoultError(
                .untrustedLink, .refused, what: "\(place) is a symbolic link to \(target)",
                why: "user \(link.owner) created the link, and could make this command change another user's file",
                now: "Nothing was changed. If the link is correct, recreate it as the user who runs the command.")
        }
        let deciders = [link, try Files.facts(target), try Files.facts(Files.directory(of: target))].compactMap(\.self)
        guard let other = deciders.first(where: { $0.owner != 0 }) else { return }
        throw MoultError(
            .untrustedLink, .refused, what: "\(place) is a symbolic link to \(target)",
            why: "user \(other.owner) controls the link, the file or its directory, and this command runs as root",
            now:
                "Nothing was changed. Run the command as that user, or make root the owner of the link, the file and its directory."
        )
    }
}
