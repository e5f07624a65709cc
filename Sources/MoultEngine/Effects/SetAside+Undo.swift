internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// The undo of a set that was put aside.
extension SetAside {
    /// Restores the whole set. Files that are now at its paths are set aside in turn, so nothing is lost.
    func revert() throws {
        wasInPlace = nil
        if newDigest != nil { try release() }
        try keepExchangedFile()
        if try Files.facts(directory) == nil { return try finish() }
        let keepsSidecars = try hasChanged()
        if try !isOriginalInPlace(), try isOriginalKept() { try restoreOriginal() }
        try cleanUpExchangedFile()
        if !keepsSidecars {
            for suffix in SidecarSuffixes.all
            where try Files.facts(kept(suffix)) != nil && Files.facts(place + suffix) == nil {
                try Files.rename(kept(suffix), to: place + suffix)
            }
        }
        try Files.syncDirectory(Files.directory(of: place))
        try removeIfEmpty()
        try finish()
    }

    /// Returns whether the file to restore is in quarantine.
    private func isOriginalKept() throws -> Bool {
        guard let facts = try Files.facts(kept("")) else { return false }
        return try newDigest != nil || facts.inode == original
    }

    private func restoreOriginal() throws {
        var new: DrainedFile?
        if try !isUntouched() {
            new = try keepNew()
        } else if newDigest != nil {
            // In a copied store, recovery recognizes the new file by its staged path.
            try Files.rename(place, to: newFile)
        }
        // A process that opens the restored file from here on waits until the sidecars are in place too. Without a kernel
        // lease, a short gap between two renames remains.
        if held == nil { lease = try? WriteLease.take(kept("")) }
        // The installed file may be gone, or may have been moved with its sidecars.
        guard try Files.facts(place) != nil else { return try Files.rename(kept(""), to: place) }
        try Files.exchange(kept(""), place)
        guard let new, try !new.isHeld() else { return }
        try Files.exchange(kept(""), place)
        throw inUse()
    }

    /// Removes the new file from this set if it also has a hard link in a separate set; otherwise moves it back to its staged
    /// path.
    private func cleanUpExchangedFile() throws {
        let original = try original
        guard newDigest == nil, original != 0, try current() == original, let left = try Files.facts(kept("")),
            left.kind == .file, left.inode != original
        else { return }
        if left.links > 1 {
            try Files.remove(kept(""))
        } else if try Files.facts(newFile) == nil {
            try Files.rename(kept(""), to: newFile)
        }
    }

    /// Keeps the file that is now in place as a separate set, because it may contain an app's rows. Returns the file, which is
    /// held; nil if it was moved with its sidecars, because it could not be drained.
    private func keepNew() throws -> DrainedFile? {
        guard let facts = try Files.facts(place) else { return nil }
        let new = DrainedFile(place)
        let isDrained = try facts.kind == .file && Self.isReadable(place) && Self.drain(new)
        let set = try freeDirectory()
        try make(set)
        var record = record
        (record.reason, record.why) = (.undone, "an undo after a crash replaced the file")
        (record.owner, record.isPending) = (QuarantineRecord.Owner(facts), true)
        try record.write(to: set)
        let name = "\(set)/\(QuarantineRecord.keptName(of: place))"
        let isLinked = try isDrained && newDigest == nil && Files.hardLinkIfPossible(place, at: name)
        if !isLinked {
            for suffix in SidecarSuffixes.all + [""] where try Files.facts(place + suffix) != nil {
                try Files.rename(place + suffix, to: name + suffix)
            }
        }
        for changed in [set, Files.directory(of: set), Files.directory(of: place)] { try Files.syncDirectory(changed) }
        return isLinked ? new : nil
    }

    private func freeDirectory() throws -> String {
        let above = Files.directory(of: directory)
        let stem = Files.name(of: directory).dropLast(record.database.count)
        var number = 2
        while try Files.facts("\(above)/\(stem)\(number)-\(record.database)") != nil { number += 1 }
        return "\(above)/\(stem)\(number)-\(record.database)"
    }

    /// Returns whether the new file is in place unchanged, and no process has it open.
    private func isUntouched() throws -> Bool {
        guard let now = try Files.facts(place), try Sidecars.of(place).isEmpty else { return false }
        if let placed {
            guard now.inode == placed.inode, now.modified == placed.modified else { return false }
        } else if let newDigest {
            guard try Transaction.isPublished(place, newDigest) else { return false }
        } else {
            guard let recordedMark, MadeFile.mark(now) == recordedMark else { return false }
        }
        // If no lease is granted, another process may have the file open.
        return (try? WriteLease.take(place)).flatMap(\.self) != nil
    }

    /// Removes the set if all its files were restored. Otherwise the remaining files stay, with the record.
    private func removeIfEmpty() throws {
        for suffix in [""] + SidecarSuffixes.all {
            if try isSameContent(kept(suffix), place + suffix) { try Files.remove(kept(suffix)) }
        }
        let record = QuarantineRecord.fileName
        let ours = [
            record, Files.name(of: Files.staged(record)), QuarantineRecord.salvaged, QuarantineRecord.salvageReport,
        ]
        if try Files.hasOnly(directory, where: ours.contains) { try Files.removeTree(directory) }
    }
}
