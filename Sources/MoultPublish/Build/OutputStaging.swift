internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

struct OutputStaging {
    private let work: WorkDirectory
    var directory: String { work.path }
    private let output: String
    /// The absolute path of the output, in the directory that the work directory is in and keeps open.
    private let target: String
    var draft: String { "\(directory)/draft.db" }
    var sealed: String { "\(directory)/sealed.db" }

    /// Creates the directory; refuses an output path that must not be replaced.
    init(output: String) throws {
        if output.isEmpty || output.endsWithSlash {
            throw Self.refusal(output, "it is not a file name", "Specify a file with -o.")
        }
        let parent = Files.directory(of: output)
        guard try Files.factsThroughLinks(parent)?.kind == .directory else {
            throw MoultError(.output, what: "cannot write \(output)", why: "no directory \(parent)")
        }
        self.output = output
        let pinned = try PinnedDirectory.output(parent)
        let directory = try Files.absolute(parent)
        target = "\(directory == "/" ? "" : directory)/\(Files.name(of: output))"
        work = try WorkDirectory(in: directory, named: ".\(Files.name(of: output)).building")
        do { try withExtendedLifetime(pinned) { try Self.check(output) } } catch {
            work.remove()
            throw error
        }
    }

    /// The path of the work directory in SQLite.
    var directoryInSQLite: String { get throws { Files.directory(of: try Files.resolvedForOpening(draft)) } }

    /// Throws unless the output does not exist, is empty, or is a database that moult has built and no other program has
    /// written to. Also throws if the output has sidecars.
    private static func check(_ output: String) throws {
        func reject(_ why: String, _ now: Advice) -> MoultError { refusal(output, why, now) }
        if let facts = try Files.facts(output) {
            guard facts.kind == .file else {
                throw reject("it exists and is not a regular file", "Choose another file with -o.")
            }
            if facts.size > 0 {
                let file = try Descriptor(output, .read)
                // A truncated file, or one with a damaged header, is also refused here.
                guard let header = try? DatabaseHeader(of: file) else {
                    throw reject(
                        "it exists and is not a SQLite database", "Choose another file with -o, or remove it first.")
                }
                let another: Advice =
                    "Choose another file with -o, or move this one away: \(Files.commandToMoveAway(output))"
                if header.isWAL {
                    throw reject("it exists and is in WAL mode, so another program has written to it", another)
                }
                guard header.changeCounter == Self.changes else {
                    throw reject("it exists, and another program has created it or written to it", another)
                }
            }
        }
        for suffix in SidecarSuffixes.all where try Files.facts(output + suffix) != nil {
            throw reject(
                "\(output)\(suffix) belongs to another database, and SQLite would use it with the new one",
                "Close the programs that use that database. If the file stays, choose another file with -o, or move it away: "
                    + "\(Files.commandToMoveAway(try Files.facts(output) == nil ? output + suffix : output))")
        }
    }

    private static func refusal(_ output: String, _ why: String, _ now: Advice) -> MoultError {
        MoultError(.output, .refused, what: "cannot write \(output)", why: why, now: now)
    }

    /// The change counter of every built database. Every later transaction increases it.
    private static let changes: UInt32 = 1

    /// Resets the change counter: the transactions that keep the layout of an earlier database have increased it.
    private func resetCounter(_ file: borrowing Descriptor) throws {
        if try DatabaseHeader(of: file).changeCounter == Self.changes { return }
        try withUnsafeBytes(of: Self.changes.bigEndian) { bytes in
            for offset in DatabaseHeader.changeCounterOffsets { try file.write(bytes, at: offset) }
        }
    }

    /// Moves the finished database into place; returns its size.
    func deliver(inputs: Set<String>) throws -> Int {
        if let there = try Files.facts(target), try inputs.contains(where: { try there.isSameFile(Files.facts($0)) }) {
            throw MoultError(
                .output, .refused, what: "cannot write \(output)", why: "the script reads this file",
                now: "Choose another file with -o.")
        }
        for suffix in SidecarSuffixes.all where try Files.facts(sealed + suffix) != nil {
            throw MoultError(
                .output, what: "\(sealed)\(suffix) still exists", why: "the database is not complete without it")
        }
        let file = try Descriptor(sealed, .write)
        let size = try file.facts().size
        try resetCounter(file)
        try file.sync()
        try file.close()
        let connection = try Connection(path: sealed, access: .immutable)
        let header = try connection.header()
        try header.requireSize(Int64(size), path: sealed)
        try connection.close()
        guard !header.isWAL else {
            throw MoultError(.output, what: "cannot seal \(output)", why: "it would be in WAL mode")
        }
        try Files.rename(sealed, to: target)
        try Files.syncDirectory(Files.directory(of: target))
        return size
    }

    func remove() { work.remove() }
}
