internal import MoultBasics

/// The members that an archive must have, and those found so far.
struct MemberSet {
    private let sizes: [String: Int]
    private let directories: Set<String>
    private var seen: Set<String> = []

    /// Refuses declared names that are not allowed in archives.
    init(_ sizes: [String: Int]) throws {
        self.sizes = sizes
        var folded: Set<String> = []
        var directories: Set<String> = ["."]
        for name in sizes.keys.sorted() {
            try Self.check(name)
            guard folded.insert(name.lowercased()).inserted else {
                throw ArchiveRefusal(
                    .archiveDuplicate,
                    "two declared members have the name \"\(name)\", or names that differ from it only in case",
                    now: .renameOne)
            }
            let parts = name.pathParts()
            for count in 1..<max(parts.count, 1) { directories.insert(parts.prefix(count).joined(separator: "/")) }
        }
        self.directories = directories
    }

    /// Refuses to pack names that the strict reader would refuse.
    static func check(packed names: [String]) throws {
        var set = try MemberSet(Dictionary(names.map { ($0, 0) }, uniquingKeysWith: { first, _ in first }))
        for name in names { _ = try set.take(name) }
    }

    /// Checks the next entry: returns the name and declared size of its member, or throws the reason for refusing it.
    ///
    /// A leading `./`, as written by `tar -C directory .`, is not part of the name.
    mutating func take(_ entry: String) throws -> (name: String, size: Int) {
        let name = Self.withoutDot(entry)
        try Self.check(name)
        guard let size = sizes[name] else {
            let near = sizes.keys.first { $0.lowercased() == name.lowercased() }
            throw ArchiveRefusal(
                .archiveUndeclared,
                "it contains \"\(name)\", which is not declared"
                    + (near.map { "; the declared name is \"\($0)\", which differs in case" } ?? ""))
        }
        try note(name)
        return (name, size)
    }

    /// Checks a directory entry. A directory with a declared member is harmless; no directory is created.
    mutating func takeDirectory(_ entry: String) throws {
        var path = Self.withoutDot(entry)
        if path.endsWithSlash { path = String(Substring(path.utf8.dropLast())) }
        if path.isEmpty { path = "." }
        guard directories.contains(path) else {
            throw ArchiveRefusal(
                .archiveEntryKind,
                "it contains the directory \"\(printable(entry))\", which contains no declared member")
        }
        try note(path + "/")
    }

    private mutating func note(_ name: String) throws {
        guard seen.insert(name).inserted else {
            throw ArchiveRefusal(.archiveDuplicate, "it contains \"\(name)\" twice")
        }
    }

    /// Refuses an archive in which members are missing.
    func checkComplete() throws {
        let missing = sizes.keys.filter { !seen.contains($0) }.sorted()
        guard missing.isEmpty else {
            let names = missing.map { "\"\($0)\"" }.joined(separator: ", ")
            throw ArchiveRefusal(.archiveMissing, "it does not contain the declared \(names)")
        }
    }

    private static func withoutDot(_ name: String) -> String { name.hasPrefix("./") ? String(name.dropFirst(2)) : name }

    private static let maxLevels = 8

    /// Refuses every name that cannot be a plain file below the target directory.
    private static func check(_ name: String) throws {
        func refused(_ why: String) -> ArchiveRefusal {
            ArchiveRefusal(
                .archiveName, "it contains the name \"\(printable(name))\", \(why)", now: .renamePlainly)
        }
        guard name.utf8.allSatisfy({ $0 < 0x80 }) else { throw refused("which has characters outside ASCII") }
        if name.isAbsolutePath { throw refused("which is an absolute path") }
        guard name.utf8.allSatisfy({ isPlain($0) || $0 == UInt8(ascii: "/") }) else {
            throw refused("which has characters that are not allowed")
        }
        for part in name.pathParts(keepingEmpty: true) where ["", ".", ".."].contains(part) {
            throw refused(part == ".." ? "which leads out of the directory with \"..\"" : "which is not a plain path")
        }
        let parts = name.pathParts()
        guard parts.count <= maxLevels else { throw refused("which has more than \(maxLevels) levels") }
        guard parts.allSatisfy({ $0.utf8.count <= 255 }) else {
            throw refused("which has a part of more than 255 bytes")
        }
        for suffix in SidecarSuffixes.all where name.hasSuffix(suffix) {
            throw refused("which SQLite would treat as part of a database next to it")
        }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

/// Returns a name from an archive for errors: short, and without control characters.
func printable(_ name: String) -> String { shortened(visible(name), to: 100) }

/// Checks the members that another process reads from an archive and sends here: they must be the declared ones, with the
/// declared sizes.
package struct ExpectedMembers {
    private var set: MemberSet
    private let path: String
    private var rest = 0
    /// The member whose content is arriving.
    package private(set) var current: String?

    /// `path` is the path of the archive, for errors.
    package init(_ sizes: [String: Int], of path: String) throws {
        self.path = path
        set = try reading(path) { try MemberSet(sizes) }
    }

    package mutating func begin(_ name: String) throws -> String {
        let (name, size) = try reading(path) { try set.take(name) }
        (current, rest) = (name, size)
        return name
    }

    package mutating func add(_ count: Int) throws {
        rest -= count
        if rest < 0 { throw wrongSize("more") }
    }

    /// Ends the current member, and returns its name.
    package mutating func end() throws -> String {
        if rest > 0 { throw wrongSize("fewer") }
        defer { current = nil }
        return current ?? ""
    }

    package func checkComplete() throws { try reading(path) { try set.checkComplete() } }

    private func wrongSize(_ found: String) -> MoultError {
        MoultError(
            .archiveSize, what: "cannot unpack \(path)",
            why: "its member \"\(current ?? "")\" has \(found) bytes than declared")
    }
}
