internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// The old contents of a file that `moult replace` has replaced, in the directory `.app.db.moult` next to the file.
/// Each set is a directory whose name has a number and the reason, such as `0002-replaced`, with one file and its record. The
/// directory gets its name when it is complete, with the ending `.begun` until the file has the new content. Nothing removes a set but the command that made it and then changed nothing, and
/// the operator.
package struct KeptSets: Sendable {
    package typealias Set = QuarantineShelf.Set

    package let directory: String

    package init(directory: String) { self.directory = directory }

    package func all() throws -> [Set] {
        guard try Files.facts(directory)?.kind == .directory else { return [] }
        return try Files.list(directory).filter { Self.number(of: $0) != nil }
            .compactMap { try QuarantineShelf.set("\(directory)/\($0)") }
            .sorted { $0.number < $1.number }
    }

    func hasOnlySets() throws -> Bool {
        try !Files.isEmpty(directory) && Files.list(directory).allSatisfy { Self.number(of: $0) != nil }
    }

    /// Returns the sets that `--undo` restores, oldest first: those of replacements that were not undone. The set of an interrupted
    /// undo does not count, because it is not known whether the undo took effect.
    package func undoable() throws -> [Set] {
        var sets: [Set] = []
        for set in try all() {
            guard let record = set.record, set.hasMainFile else { continue }
            switch record.reason {
            case .replaced: sets.append(set)
            case .undone where !set.isBegun:
                if let restored = record.restored { sets.removeAll { $0.number >= restored } }
            default: continue
            }
        }
        return sets
    }

    static func has(_ set: Set, _ copy: String) throws -> Bool {
        guard set.hasMainFile, let file = set.file else { return false }
        return try DatabaseHeader.haveSameContent(file, copy)
    }

    /// Returns an existing set that makes another set with this content needless: the next undo would restore the same content, or the
    /// same undo was interrupted.
    private func equivalent(of copy: String, _ record: QuarantineRecord) throws -> Set? {
        let set = try record.reason == .replaced ? undoable().last : all().last
        guard let set, set.record?.reason == record.reason, set.record?.restored == record.restored,
            record.reason == .replaced || set.isBegun
        else { return nil }
        return try Self.has(set, copy) ? set : nil
    }

    /// Keeps a private copy, which is synced, as a set. Content that another set has is not stored twice. `work` is a directory of
    /// this command on the same file system.
    func keep(_ copy: String, _ record: QuarantineRecord, in work: String) throws -> (set: Set, isNew: Bool) {
        if let set = try equivalent(of: copy, record) { return (set, false) }
        var record = record
        let twin = try all().first { try Self.has($0, copy) }?.file
        let staged = "\(work)/set"
        try Files.makeDirectory(staged, mode: 0o700)
        let file = "\(staged)/\(record.keptName)"
        let isLinked = try twin.map { try Files.hardLinkIfPossible($0, at: file) } ?? false
        if !isLinked {
            try Files.setMode(copy, 0o600)
            try Files.rename(copy, to: file)
        }
        var number = try Files.list(directory).compactMap(Self.number).max() ?? 0
        while true {
            number += 1
            record.number = number
            try record.write(to: staged)
            let zeros = String(repeating: "0", count: max(0, 4 - "\(number)".utf8.count))
            let place = "\(directory)/\(zeros)\(number)-\(record.reason.rawValue)\(Self.begun)"
            guard try Files.renameIfFree(staged, to: place) else { continue }
            try Files.syncDirectory(directory)
            try Files.syncDirectory(Files.directory(of: directory))
            return (try Self.set(place), true)
        }
    }

    @discardableResult
    func complete(_ set: Set) throws -> Set {
        guard set.isBegun else { return set }
        let place = String(set.directory.dropLast(Self.begun.count))
        try Files.rename(set.directory, to: place)
        try Files.syncDirectory(directory)
        return try Self.set(place)
    }

    /// Removes a set: one that the operator names, or one with content that is still in place, because the command that made it has
    /// changed nothing.
    package func remove(_ set: Set) throws {
        try Files.removeTree(set.directory, last: [QuarantineRecord.fileName])
        try Files.syncDirectory(directory)
    }

    private static func set(_ place: String) throws -> Set {
        if let set = try QuarantineShelf.set(place) { return set }
        throw MoultError(
            .quarantine, .failed, what: "\(place) is missing", why: "another process removed it",
            now: "Nothing was changed. Try again.")
    }

    fileprivate static let begun = ".begun"

    fileprivate static func number(of name: String) -> Int? {
        let parts = name.split(separator: "-", maxSplits: 1)
        guard parts.count == 2, parts[0].utf8.count >= 4, parts[0].utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return Int(parts[0])
    }
}

extension QuarantineShelf.Set {
    package var number: Int { KeptSets.number(of: id) ?? 0 }
    /// Whether the command that made the set may have been interrupted before the file got the new content.
    var isBegun: Bool { id.hasSuffix(KeptSets.begun) }
}
