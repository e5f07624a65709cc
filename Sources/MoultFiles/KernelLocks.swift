internal import MoultLibc

/// The locks that processes hold on files, from the kernel's table `/proc/locks`, which every user may read.
package struct KernelLocks: Sendable {
    package struct Lock: Sendable, Hashable {
        package enum Kind: String, Sendable {
            /// On an open file or directory as a whole (`flock`).
            case flock = "FLOCK"
            /// On a byte range (`fcntl`), as taken by SQLite.
            case record = "POSIX"
            /// On a byte range, owned by an open file description instead of a process.
            case openFileRecord = "OFDLCK"
            case lease = "LEASE"
        }
        package let kind: Kind
        package let isExclusive: Bool
        /// The process that owns the lock; -1 if the lock belongs to no process.
        package let pid: Int32
        package let bytes: ClosedRange<Int>
        fileprivate let file: Substring

        /// The part of `file` after the last colon: the inode number, which is unique only within a file system.
        fileprivate var inode: Substring {
            file[(file.lastIndex(of: ":").map(file.index(after:)) ?? file.startIndex)...]
        }
    }

    /// The locks by inode number, so that a query for one file does not scan all other locks.
    private let byInode: [Substring: [Lock]]
    var all: [Lock] { byInode.values.flatMap(\.self) }

    package static let none = KernelLocks(table: "")

    package static func read() throws -> KernelLocks {
        try KernelLocks {
            String(decoding: try Files.read("\(SystemFeatures.proc)/locks", limit: 1 << 24) ?? [], as: UTF8.self)
        }
    }

    /// Each read call returns at most a page of the table, and the kernel finds the start of the next page by counting locks:
    /// if a lock is released between two calls, the kernel skips another lock that is still held. A table that may be longer
    /// than a page is therefore read again until a reading has no new lock, up to `maxReadings` times. Every lock in any of the
    /// readings counts.
    init(readings: () throws -> String) rethrows {
        let table = try readings()
        var all = Set(Self.locks(in: table))
        if table.utf8.count > Self.maxSinglePageSize {
            for _ in 0..<Self.maxReadings {
                let next = Self.locks(in: try readings())
                let isComplete = all.isSuperset(of: next)
                all.formUnion(next)
                if isComplete { break }
            }
        }
        self.init(all)
    }

    init(table: String) { self.init(Self.locks(in: table)) }

    private init(_ locks: some Sequence<Lock>) { byInode = Dictionary(grouping: locks, by: \.inode) }

    /// The kernel ends a page only when the next line does not fit, so a table of at most this many bytes is a single page.
    private static let maxSinglePageSize = 3072
    private static let maxReadings = 8

    /// Parses lines such as `1: FLOCK  ADVISORY  WRITE 1234 fe:00:2621459 0 EOF`. The line of a waiting process has `->` before
    /// the kind, and is ignored.
    private static func locks(in table: String) -> [Lock] {
        table.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 8, let kind = Lock.Kind(rawValue: String(words[1])), let pid = Int32(words[4]),
                let first = Int(words[6])
            else { return nil }
            let last = Int(words[7]) ?? Int.max
            guard first <= last else { return nil }
            return Lock(
                kind: kind, isExclusive: words[3] == "WRITE", pid: pid, bytes: first...last, file: words[5])
        }
    }

    /// Returns the locks on the file at a path.
    ///
    /// The table contains the device of the file system. In a btrfs subvolume, `stat` reports a different device, and a file in
    /// another subvolume may have the same inode number. There, a lock counts unless its process is known not to have the file
    /// open.
    package func held(on facts: FileFacts, at path: String) throws -> [Lock] {
        let suffix = ":\(facts.inode)"
        let sameNumber = byInode["\(facts.inode)"] ?? []
        let own = Self.name(facts.device >> 8 & 0xfff, facts.device & 0xff | facts.device >> 12 & 0xfff00) + suffix
        if sameNumber.allSatisfy({ $0.file == own }) { return sameNumber }
        let mount = try MountedFileSystem.of(path).map { Self.name($0.major, $0.minor) + suffix }
        return sameNumber.filter { lock in
            lock.file == own || lock.file == mount.map { $0[...] } && OpenFiles.mayBeOpen(facts, in: lock.pid)
        }
    }

    /// Returns a device number in the table's notation.
    private static func name(_ major: UInt64, _ minor: UInt64) -> String {
        [major, minor].map { $0 < 16 ? "0\(String($0, radix: 16))" : String($0, radix: 16) }.joined(separator: ":")
    }
}

/// The holders of a `flock`, from the kernel's lock table.
package enum LockHolders {
    /// Returns the processes that hold a `flock` on the file. Callers that query many files pass the table as `locks`.
    package static func of(_ path: String, in locks: KernelLocks? = nil) throws -> [ProcessFacts] {
        guard let facts = try Files.factsThroughLinks(path) else { return [] }
        var pids: [Int32] = []
        for lock in try (locks ?? .read()).held(on: facts, at: path)
        where lock.kind == .flock && !pids.contains(lock.pid) {
            pids.append(lock.pid)
        }
        return pids.map { ProcessFacts(pid: $0) }
    }
}
