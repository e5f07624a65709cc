internal import MoultBasics
internal import MoultFiles

/// A directory beside a result, in which a command makes it. What a killed command has left is removed by the next one.
final class WorkDirectory {
    let path: String
    /// Whoever works there holds it; it ends with the process.
    private let lock: FileLock

    /// `name` begins the directory's name, and that of others that make the same.
    init(in parent: String, named name: String) throws {
        try Self.removeLeftovers(of: name, in: parent)
        var number = 0
        while true {
            let path = "\(parent)/\(name).\(number)"
            if try Files.facts(path) == nil, let lock = try Self.make(path) {
                (self.path, self.lock) = (path, lock)
                return
            }
            number += 1
        }
    }

    /// Nil if another command was quicker, or took the new directory for a leftover.
    private static func make(_ path: String) throws -> FileLock? {
        do { try Files.makeDirectory(path, mode: 0o700) } catch {
            guard try Files.facts(path) != nil else { throw error }
            return nil
        }
        guard let lock = try FileLock.take(path, .exclusive, directory: true) else { return nil }
        let (held, there) = (try lock.facts(), try Files.facts(path))
        return there.map { ($0.inode, $0.device) == (held.inode, held.device) } == true ? lock : nil
    }

    private static func removeLeftovers(of name: String, in parent: String) throws {
        for entry in try Files.list(parent) {
            guard entry.hasPrefix("\(name)."), Int(entry.dropFirst(name.count + 1)) != nil else { continue }
            // One of another user, or one that is gone by now, is none of this command's business.
            guard let lock = try? FileLock.take("\(parent)/\(entry)", .exclusive, directory: true) else { continue }
            try Files.removeTree("\(parent)/\(entry)")
            withExtendedLifetime(lock) {}
        }
    }

    /// The result is there or an error is told already, so nothing depends on this; the next command removes what is left.
    func remove() { try? Files.removeTree(path) }
}
