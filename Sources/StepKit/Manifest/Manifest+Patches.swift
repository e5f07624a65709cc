extension Manifest {
    /// The content of a file: moult treats two files with the same content as one, regardless of their names.
    public struct Content: Sendable, Hashable {
        /// The size in bytes.
        public var size: Int
        /// The digest, in hexadecimal digits.
        public var sha256: String

        package init(size: Int, sha256: String) { (self.size, self.sha256) = (size, sha256) }
    }

    /// A file next to the manifest that turns a file of an older release into one of this release.
    public struct Patch: Sendable, Equatable {
        /// The member of this release that the patch produces, directly or through a later patch.
        public var member: String
        /// The release from which the patch was made. It also applies to others with the same file.
        public var from: Version
        /// The old file; nil if the patch is the complete member, compressed.
        public var base: Content?
        /// The file that the patch produces, if a later patch turns it into the member.
        public var result: Content?
        /// The name of the patch file, next to the manifest.
        public var file: String
        /// The size of the patch in bytes.
        public var size: Int
        /// The digest of the patch, in hexadecimal digits.
        public var sha256: String

        package init(
            member: String, from: Version, base: Content?, result: Content? = nil, file: String, size: Int,
            sha256: String
        ) {
            (self.member, self.from, self.base, self.result) = (member, from, base, result)
            (self.file, self.size, self.sha256) = (file, size, sha256)
        }
    }

    /// Returns the content of a member of the release; nil if no member has this name.
    package func content(of member: String) -> Content? {
        for database in databases {
            if database.member == member { return Content(size: database.size, sha256: database.sha256) }
            if let migration = database.migrations.first(where: { $0.member == member }) {
                return Content(size: migration.size, sha256: migration.sha256)
            }
        }
        return nil
    }

    /// The contents of all members of the release.
    var contents: [String: Content] {
        var contents: [String: Content] = [:]
        for database in databases {
            contents[database.member] = Content(size: database.size, sha256: database.sha256)
            for one in database.migrations { contents[one.member] = Content(size: one.size, sha256: one.sha256) }
        }
        return contents
    }

    /// The maximum number of patches; `moult pack` writes fewer. The search for the cheapest sequence takes time that grows faster
    /// than their number.
    static let mostPatches = 256

    /// Returns the content that a patch produces.
    package func result(of patch: Patch) -> Content? { patch.result ?? content(of: patch.member) }

    /// Returns the cheapest sequence of patches that produces a member from the available files, in the order of application,
    /// with the old file of the first patch; nil if no sequence exists. `cost` returns the cost of a patch, or nil if it is not
    /// available.
    package func cheapestWay(
        to member: String, from bases: Set<Content>, cost: (Patch) -> Int?
    ) -> (patches: [Patch], base: Content?, cost: Int)? {
        content(of: member).flatMap { cheapestWays(from: bases, cost: cost)[$0] }
    }

    private typealias Way = (patches: [Patch], base: Content?, cost: Int)

    /// Returns the cheapest sequence for each content that patches produce.
    private func cheapestWays(from bases: Set<Content>, cost: (Patch) -> Int?) -> [Content: Way] {
        let contents = contents
        var ways: [Content: Way] = [:]
        for base in bases { ways[base] = ([], base, 0) }
        let available = patches.compactMap { patch in
            (patch.result ?? contents[patch.member]).flatMap { result in cost(patch).map { (patch, result, $0) } }
        }
        // After n rounds, all sequences of up to n patches have been considered, and none has more than all patches.
        for _ in available {
            var isBetter = false
            for (patch, result, cost) in available {
                guard let before = patch.base.map({ ways[$0] }) ?? Way([], nil, 0) else { continue }
                let sum = before.cost + cost
                if let known = ways[result], known.cost <= sum { continue }
                ways[result] = (before.patches + [patch], before.base, sum)
                isBetter = true
            }
            if !isBetter { break }
        }
        return ways
    }
}

extension Manifest {
    /// Returns the patches that produce this release from an older one, if they are at most three quarters of the size of the
    /// bundle; otherwise nil.
    package func worthwhilePatches(from older: Manifest, among isThere: (Patch) -> Bool = { _ in true }) -> [Patch]? {
        guard let bundle else { return nil }
        let (contents, earlier) = (contents, older.contents)
        let before = Set(older.databases.filter { $0.place == .generation }.compactMap { earlier[$0.member] })
        let ways = cheapestWays(from: before) { isThere($0) ? $0.size : nil }
        var needed: [Patch] = []
        for database in databases where database.place == .generation {
            let members = [database.member] + database.migrations.map(\.member).filter { earlier[$0] == nil }
            for member in members {
                guard let way = contents[member].flatMap({ ways[$0] }) else { return nil }
                needed += way.patches
            }
        }
        return 4 * needed.reduce(0) { $0 + $1.size } <= 3 * bundle.size ? needed : nil
    }
}
