internal import CLinux
internal import MoultLibc

/// The metadata of a file that `stat` returns.
package struct FileFacts: Sendable, Equatable {
    package enum Kind: Sendable { case file, directory, link, other }

    package let kind: Kind
    package let device: UInt64
    package let inode: UInt64
    package let size: Int
    package let mode: UInt32
    package let links: Int
    package let owner: UInt32
    package let group: UInt32
    package let changed: Moment
    package let modified: Moment

    /// Returns whether these facts and `other` describe the same file.
    package func isSameFile(_ other: FileFacts?) -> Bool { inode == other?.inode && device == other?.device }

    /// A file system time with nanosecond resolution.
    package struct Moment: Sendable, Hashable, Comparable {
        package let seconds: Int
        package let nanoseconds: Int
        package init(seconds: Int, nanoseconds: Int) { (self.seconds, self.nanoseconds) = (seconds, nanoseconds) }

        package static func < (a: Self, b: Self) -> Bool { (a.seconds, a.nanoseconds) < (b.seconds, b.nanoseconds) }
    }

    init(_ stat: moult_stat) {
        kind =
            switch stat.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            case S_IFLNK: .link
            default: .other
            }
        device = UInt64(stat.st_dev)
        inode = UInt64(stat.st_ino)
        size = Int(stat.st_size)
        mode = UInt32(stat.st_mode & 0o7777)
        links = Int(stat.st_nlink)
        owner = stat.st_uid
        group = stat.st_gid
        changed = Moment(seconds: stat.st_ctim.tv_sec, nanoseconds: stat.st_ctim.tv_nsec)
        modified = Moment(seconds: stat.st_mtim.tv_sec, nanoseconds: stat.st_mtim.tv_nsec)
    }
}
