package import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// A file that `moult replace` may replace, with the directory of its old contents next to it.
package struct ReplacedFile {
    /// The file name as the user gave it, but with `./` before a leading dash.
    package let name: String
    package let path: String
    package let sets: KeptSets
    /// The file with the new content, for advice; nil for an undo.
    let newName: String?
    /// The open directory of the file: its owner, or that of a link on the way, could exchange it for a link to another one.
    private let directory: PinnedDirectory?

    package init(_ name: String, by new: String? = nil) throws {
        newName = new
        // A name that begins with a dash must not become an option in the commands shown.
        self.name = name.hasPrefix("-") ? "./\(name)" : name
        let absolute = try Files.absolute(name)
        // A file has only one directory of sets, whichever path leads to it.
        let place = Files.directory(of: absolute)
        let isThere = try Files.factsThroughLinks(place)?.kind == .directory
        // A file in a store is refused with better advice than that `current` is a link.
        let isInStore = absolute.pathParts().contains { String($0).hasBytes(of: ".moult") }
        directory = try isThere && !isInStore ? PinnedDirectory.output(place) : nil
        let real = try directory?.place ?? Files.resolvedForOpening(place)
        path = "\(real == "/" ? "" : real)/\(Files.name(of: absolute))"
        sets = KeptSets(directory: Self.sets(of: path))
    }

    private static func sets(of path: String) -> String {
        "\(Files.directory(of: path))/.\(Files.name(of: path)).moult"
    }

    /// Returns the file that a word of a command line names, if it was replaced before; nil for any other word.
    package static func replaced(_ word: String) throws -> ReplacedFile? {
        guard try Files.factsThroughLinks(sets(of: Files.absolute(word)))?.kind == .directory else { return nil }
        let file = try ReplacedFile(word)
        return try file.sets.all().isEmpty ? nil : file
    }

    /// Returns whether a file was replaced before. The old contents of another user's file cannot be listed.
    static func wasReplaced(_ path: String) throws -> Bool {
        do { return try !KeptSets(directory: sets(of: Files.absolute(path))).all().isEmpty } catch
            where Files.isDenied(error)
        { return true }
    }

    // MARK: refusals

    package func refusal(_ why: String, _ now: Advice, cause: (any Error)? = nil) -> MoultError {
        MoultError(
            .notReplaceable, .refused, what: "\(name) cannot be replaced", why: why, now: now, cause: cause)
    }

    /// Throws if `moult replace` cannot replace the file.
    func requireReplaceable() throws {
        try requireOwnSets()
        guard let facts = try Files.facts(path) else { throw try missing() }
        // A symlink to a file of a store is refused like that file.
        let target = try Files.target(ofLink: path)
        for file in [path] + (target == nil ? [] : [try Files.resolved(path)]) {
            guard let owner = try StoreLayout.owner(of: file) else { continue }
            throw refusal(
                "it belongs to the store \(owner.store), and only releases of the store may replace it",
                "Install a release with: \(moult: "apply", "RELEASE", "--store", owner.store)")
        }
        if let target {
            let file = try Files.resolved(path)
            throw refusal(
                "it is a symbolic link to \(target)",
                "Specify the file itself: \(moult: ["replace"] + (newName.map { [file, $0] } ?? ["--undo", file]))"
            )
        }
        guard facts.kind == .file else { throw refusal("it is not a regular file", "Specify a database file.") }
        // A file without write permission is not meant to change.
        try Permission.write(path).check("\(name) cannot be replaced")
        do { try DatabaseHeader.requireNoExcess(at: path) } catch let error as MoultError
            where error.code == .databaseCorrupt
        { throw refusal(error.why ?? error.what, error.now ?? "Restore a backup.") }
        if let wal = try Sidecars.of(path).wal, wal.facts.size > 0,
            try facts.size > 0 && !Connection.isWAL(ofFileAt: path)
        {
            throw refusal(
                "it is not in WAL mode, so \(wal.path) belongs to another database",
                "Stop the programs that use it. \(Files.moveAway(wal.path))")
        }
        if facts.size == 0, let sidecar = try Sidecars.of(path).paths.first {
            throw refusal(
                "it is empty, and \(sidecar) may have rows of an earlier database", Files.moveAway(sidecar))
        }
    }

    func missing() throws -> MoultError {
        // SQLite would use a sidecar that is still there with the copied file.
        let left = try Sidecars.of(path).paths
        let aside = left.isEmpty ? [] : Files.movesAway(name)
        let rest = left.isEmpty ? "" : ", and only \(left.joined(separator: " and ")) is left"
        if let copy = try sets.undoable().last?.file ?? sets.all().last?.file {
            return refusal(
                "no such file\(rest)", "To restore its last copy: \(Advice.Command(aside + [["cp", copy, name]]))")
        }
        guard let newName else { return refusal("no such file", "Specify the file that was replaced.") }
        return refusal(
            "no such file\(rest)", "To copy a database to this path: \(Advice.Command(aside + [["cp", newName, name]]))"
        )
    }

    /// Throws if the content is not one that SQLite can open: then it can only be set aside, and not kept as a database.
    func unreadable(_ error: any Error) -> MoultError {
        let why = (error as? MoultError).map { $0.why ?? $0.what } ?? "\(error)"
        return refusal(
            "SQLite cannot open it: \(why)",
            "If it is damaged, restore a backup. If it is not a database, or encrypted, replace it by hand: "
                + "\(Files.commandToMoveAway(name))", cause: error)
    }

    /// Throws if another user owns the directory of the old contents or can write to it. In a directory that any user can write to,
    /// another user may have created it first.
    private func requireOwnSets() throws {
        let custody = Custody(try StoreLayout(root: sets.directory))
        try custody.check()
        guard let fault = try custody.directoryFault() else { return }
        let move = Files.moveAway(fault.path)
        throw MoultError(
            .notReplaceable, .refused, what: "\(name) cannot be replaced: \(fault.path) \(fault.why)",
            why: "a user who can write there can change the content that --undo restores",
            now: fault.remedy.map { "To fix this: \(run: $0)" }
                ?? "As user \(Files.userName(fault.owner ?? 0)) or as root: \(move)")
    }

    // MARK: the lock

    /// Calls `body` with a new directory for files of this command, while no other command replaces the file.
    func working<R>(wait seconds: Int, stop: () throws -> Void, _ body: (String) throws -> R) throws -> R {
        try WritableFile.requireSoleName(path)
        let lock = try lock(wait: seconds, stop: stop)
        defer { withExtendedLifetime(lock) {} }
        let result = Result {
            let work = try WorkDirectory(in: sets.directory, named: "work")
            defer { work.remove() }
            return try body(work.path)
        }
        // The directory of a file that was never replaced is removed. A failure here does not change the result.
        if (try? Files.isEmpty(sets.directory)) == true { try? Files.removeEmpty(sets.directory) }
        return try result.get()
    }

    private func lock(wait seconds: Int, stop: () throws -> Void) throws -> FileLock {
        var backoff = Backoff(.seconds(seconds))
        repeat {
            try Files.ensureDirectory(sets.directory, mode: 0o700)
            // The previous lock holder may have removed the directory.
            if let lock = try FileLock.take(sets.directory, .exclusive, directory: true),
                try lock.facts().isSameFile(Files.facts(sets.directory))
            {
                // Another user may have created the directory since the last check.
                try requireOwnSets()
                return lock
            }
            try stop()
        } while backoff.pause()
        let holders = try LockHolders.of(sets.directory).map(\.description).joined(separator: ", ")
        throw MoultError(
            .locked, .busy, what: "\(name) is being replaced",
            why: "the lock on \(sets.directory) is held by \(holders.isEmpty ? "another process" : holders)",
            now:
                "Try again later, or \(commandLine: "wait for the other process: --wait SECONDS", app: "wait longer: waiting:")"
        )
    }

    /// Returns the names of replaced files in the same directory.
    func replacedFilesBeside() throws -> [String] {
        let directory = Files.directory(of: path)
        return try Files.list(directory).filter { $0.hasPrefix(".") && $0.hasSuffix(".moult") && $0 != ".moult" }
            .compactMap { name in
                try KeptSets(directory: "\(directory)/\(name)").undoable().isEmpty
                    ? nil : String(name.dropFirst().dropLast(".moult".count))
            }
    }
}
