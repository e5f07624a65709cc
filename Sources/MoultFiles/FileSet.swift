internal import MoultBasics

/// Files that belong together and appear in a directory as a set. One of them, the head, lists the others: the set exists once
/// the head is renamed into place.
///
/// The files are prepared in a work directory inside that directory. If the command fails before the head is in place, it
/// undoes everything; if it fails later, only the remaining files need to be placed. The next command finds the record of a set
/// that a failed or killed command left in the work directory, and undoes or completes the set in the same way.
package struct FileSet {
    package enum Mode: String, Sendable {
        /// None of the names is in use.
        case added
        /// The head replaces an older head; the names of the files placed before it are free.
        case replacing
        /// The files placed before the head replace files that the old head lists, so the old head is removed first.
        case overwriting
    }

    package let mode: Mode
    /// Placed before the head, in this order.
    package var first: [String] = []
    package let head: String
    /// Placed after the head, in this order.
    package var last: [String] = []
    /// Older files, removed at the end.
    package var stale: [String] = []

    package init(_ mode: Mode, head: String) { (self.mode, self.head) = (mode, head) }

    static func ready(_ work: String) -> String { "\(work)/ready" }
    private static func old(_ work: String) -> String { "\(work)/old" }
    static let recordName = "set.json"
    private static func record(_ work: String) -> String { "\(work)/\(recordName)" }

    // MARK: delivering

    /// Moves the prepared files from the work directory into the directory above it. `isPending` becomes true if the next
    /// command must complete or undo the set.
    func deliver(from work: String, isPending: inout Bool) throws {
        let directory = Files.directory(of: work)
        // Their inodes identify these files in the directory, because a rename keeps the inode.
        var inodes: [String: UInt64] = [:]
        for name in first { inodes[name] = try Files.facts("\(Self.ready(work))/\(name)")?.inode }
        try Files.ensureDirectory(Self.old(work), mode: 0o700)
        try Files.writeNew(Array(json(inodes).line.utf8), to: Self.record(work))
        for path in [Self.ready(work), work, directory] { try Files.syncDirectory(path) }
        do {
            if mode == .overwriting { try setAside(work, directory) }
            for name in first { try place(name, work, directory, isNew: true) }
            try Files.syncDirectory(directory)
            try place(head, work, directory, isNew: mode != .replacing)
        } catch {
            do { try undo(work, directory, inodes) } catch let second {
                isPending = true
                // While the old head is in place, every file that it lists must be too, so the head is removed first and
                // restored last. A head that cannot be examined counts as missing.
                guard mode == .overwriting, (try? Files.facts("\(directory)/\(head)")) == nil else { throw error }
                throw MoultError(
                    .fileSet, .stuck, what: "\(directory)/\(head) and the files that belong to it are incomplete",
                    why: "\(Self.text(error)), and this could not be undone: \(Self.text(second))",
                    now: "Run the command again: it removes the remains and starts over.", cause: error)
            }
            throw error
        }
        do { try finish(work, directory) } catch {
            isPending = true
            throw MoultError(
                .fileSet, .stuck, what: "\(directory)/\(head) was written, but the command did not finish",
                why: Self.text(error), now: "Run the command again to write the rest.", cause: error)
        }
    }

    private static func text(_ error: any Error) -> String {
        guard let error = error as? MoultError else { return "\(error)" }
        return error.what + (error.why.map { ": \($0)" } ?? "")
    }

    /// Moves the old files into the work directory, the head before the files that it lists.
    private func setAside(_ work: String, _ directory: String) throws {
        for name in [head] + first where try Files.facts("\(directory)/\(name)") != nil {
            try Files.rename("\(directory)/\(name)", to: "\(Self.old(work))/\(name)")
            // The removal of the head is synced before any other file moves, so that after a crash no head lists files that are
            // gone.
            if name == head { try Files.syncDirectory(directory) }
        }
        try Files.syncDirectory(Self.old(work))
    }

    private func place(_ name: String, _ work: String, _ directory: String, isNew: Bool) throws {
        let (source, target) = ("\(Self.ready(work))/\(name)", "\(directory)/\(name)")
        guard isNew else { return try Files.rename(source, to: target) }
        guard try Files.renameIfFree(source, to: target) else {
            throw MoultError(
                .fileSet, .refused, what: "cannot write \(target)", why: "another file exists there",
                now: Files.moveAway(target))
        }
    }

    /// Completes the set once the head is in place.
    private func finish(_ work: String, _ directory: String) throws {
        try Files.syncDirectory(directory)
        for name in last where try Files.facts("\(Self.ready(work))/\(name)") != nil {
            try place(name, work, directory, isNew: false)
        }
        for name in stale { try Files.remove("\(directory)/\(name)") }
        if !last.isEmpty || !stale.isEmpty { try Files.syncDirectory(directory) }
    }

    /// Restores the old files, the old head last, and removes new files that were already placed. Call this only while the new
    /// head is not in place.
    private func undo(_ work: String, _ directory: String, _ inodes: [String: UInt64]) throws {
        for name in first + [head] {
            let (target, old) = ("\(directory)/\(name)", "\(Self.old(work))/\(name)")
            if try Files.facts(old) != nil {
                try Files.rename(old, to: target)
            } else if try name != head && Files.facts("\(Self.ready(work))/\(name)") == nil,
                let inode = inodes[name], try Files.facts(target)?.inode == inode
            {
                try Files.remove(target)
            }
        }
        try Files.syncDirectory(directory)
    }

    // MARK: recovery

    /// Completes or undoes the set of a killed command; `work` is its work directory.
    static func recover(in work: String) throws {
        // The record was synced before anything changed: without a complete record nothing has changed.
        guard let bytes = try Files.read(record(work), limit: 1 << 20),
            let (set, inodes) = try? read(bytes, record(work))
        else { return }
        let directory = Files.directory(of: work)
        if try Files.facts("\(ready(work))/\(set.head)") == nil {
            try set.finish(work, directory)
        } else {
            try set.undo(work, directory, inodes)
        }
    }

    private func json(_ inodes: [String: UInt64]) -> JSON {
        .record([
            "mode": mode.rawValue, "head": head,
            "first": first.map { JSON.record(["name": $0, "inode": inodes[$0].map(String.init) ?? ""]) }, "last": last,
            "stale": stale,
        ])
    }

    private static func read(_ bytes: [UInt8], _ source: String) throws -> (FileSet, [String: UInt64]) {
        let fail: Fields.Failure = { MoultError(.fileSet, what: "\(source): \($0) \($1)", now: $2) }
        let fields = try Fields(JSON(parsing: bytes, source: source), failure: fail)
        /// Returns the name if it is a plain file name; throws if it leads to another directory.
        func plain(_ name: String) throws -> String {
            guard !name.isEmpty, !name.containsSlash, name != ".", name != ".." else {
                throw fail("a name", "must be plain", nil)
            }
            return name
        }
        guard let mode = Mode(rawValue: try fields.string("mode")) else { throw fields.fail("mode", "is not known") }
        var set = FileSet(mode, head: try plain(fields.string("head")))
        var inodes: [String: UInt64] = [:]
        for part in try fields.objects("first") {
            let name = try plain(part.string("name"))
            set.first.append(name)
            inodes[name] = UInt64(try part.string("inode"))
        }
        set.last = try (fields.optionalStrings("last") ?? []).map(plain)
        set.stale = try (fields.optionalStrings("stale") ?? []).map(plain)
        return (set, inodes)
    }
}
