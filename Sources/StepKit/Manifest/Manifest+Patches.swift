extension Manifest {
    /// The content of a file: two files of the same content are one to moult, whatever their names.
    public struct Content: Sendable, Hashable {
        /// Its bytes.
        public var size: Int
        /// Its digest, in hexadecimal digits.
        public var sha256: String

        package init(size: Int, sha256: String) { (self.size, self.sha256) = (size, sha256) }
    }

    /// A file next to the manifest that turns a file of an older release into a newer one.
    public struct Patch: Sendable, Equatable {
        /// The member of this release that it makes, or that a later patch makes of its result.
        public var member: String
        /// The oldest release that it leads away from.
        public var from: Version
        /// The old file; nil if it needs none: then it is the member itself, compressed.
        public var base: Content?
        /// The file that it makes, if that is not yet the member: an intermediate step.
        public var result: Content?
        /// Its name, next to the manifest.
        public var file: String
        /// Its bytes.
        public var size: Int
        /// Its digest, in hexadecimal digits.
        public var sha256: String

        package init(
            member: String, from: Version, base: Content?, result: Content? = nil, file: String, size: Int,
            sha256: String
        ) {
            (self.member, self.from, self.base, self.result) = (member, from, base, result)
            (self.file, self.size, self.sha256) = (file, size, sha256)
        }
    }

    /// The content of a member of the release; nil if no member has this name.
    package func content(of member: String) -> Content? {
        for database in databases {
            if database.member == member { return Content(size: database.size, sha256: database.sha256) }
            if let migration = database.migrations.first(where: { $0.member == member }) {
                return Content(size: migration.size, sha256: migration.sha256)
            }
        }
        return nil
    }

    /// The results of this release's patches.
    package func result(of patch: Patch) -> Content? { patch.result ?? content(of: patch.member) }

    /// The patches with the fewest bytes that make a member from the available files, in the order in which they are applied,
    /// and the old file of the first one; nil if no such way exists.
    ///
    /// `cost` returns the cost of a patch; nil for one that is not available.
    package func cheapestWay(
        to member: String, from bases: Set<Content>, cost: (Patch) -> Int?
    ) -> (patches: [Patch], base: Content?, cost: Int)? {
        guard let target = content(of: member) else { return nil }
        typealias Way = (patches: [Patch], base: Content?, cost: Int)
        var ways: [Content: Way] = [:]
        for base in bases { ways[base] = ([], base, 0) }
        // Each round makes ways longer by one patch at most; a way is never longer than the number of patches.
        for _ in patches {
            var isBetter = false
            for patch in patches {
                guard let cost = cost(patch), let result = result(of: patch) else { continue }
                guard let before = patch.base.map({ ways[$0] }) ?? Way([], nil, 0) else { continue }
                let sum = before.cost + cost
                if let known = ways[result], known.cost <= sum { continue }
                ways[result] = (before.patches + [patch], before.base, sum)
                isBetter = true
            }
            if !isBetter { break }
        }
        return ways[target]
    }
}

extension Manifest {
    /// The patches that make this release from an older one, if they are clearly smaller than the bundle: at most three
    /// quarters of it. Nil if no such way exists.
    package func patchesThatPay(from older: Manifest, among isThere: (Patch) -> Bool = { _ in true }) -> [Patch]? {
        guard let bundle else { return nil }
        let before = Set(older.databases.filter { $0.place == .generation }.compactMap { older.content(of: $0.member) })
        var needed: [Patch] = []
        for database in databases where database.place == .generation {
            let members = [database.member] + database.migrations.map(\.member).filter { older.content(of: $0) == nil }
            for member in members {
                guard let way = cheapestWay(to: member, from: before, cost: { isThere($0) ? $0.size : nil }) else {
                    return nil
                }
                needed += way.patches
            }
        }
        return 4 * needed.reduce(0) { $0 + $1.size } <= 3 * bundle.size ? needed : nil
    }
}
