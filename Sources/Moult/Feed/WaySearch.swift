internal import StepKit

/// Finds the shortest sequence of releases from the installed release to another one, in which each release accepts the one before it.
/// The search runs backwards, because most releases can be reached directly. It examines each release only once, also if it is
/// repeated for other targets: from a release that an unsuccessful search has examined, no sequence leads back to the installed one.
/// `requires.from` applies only if a release is installed.
struct WaySearch {
    private let installed: Version?
    private let releases: [Feed.Release]
    /// The positions of the releases after the installed one. Most searches need none of them.
    private lazy var newer = releases.indices.filter { [installed, releases] in
        installed?.precedes(releases[$0].version) ?? false
    }
    /// The versions of these releases.
    private lazy var unexamined = VersionIndex(newer.map { releases[$0].version })
    private let isAllowed: (Feed.Release) throws -> Bool

    /// `isAllowed` returns whether a release may be part of the sequence.
    init(_ installed: Version?, among releases: [Feed.Release], isAllowed: @escaping (Feed.Release) throws -> Bool) {
        (self.installed, self.releases, self.isAllowed) = (installed, releases, isAllowed)
    }

    /// A release, and the index of the one to install after it.
    private typealias Link = (release: Feed.Release, next: Int?)

    /// Returns the releases to install, in order; nil if no sequence leads to the target. After a result that is not nil, the search
    /// must not be used again.
    mutating func way(to target: Feed.Release) throws -> [Feed.Release]? {
        guard let installed else { return [target] }
        var links: [Link] = [(target, nil)]
        var ends = [0]
        while !ends.isEmpty {
            var longer: [Int] = []
            for end in ends {
                let release = links[end].release
                guard let range = release.requires.from, !range.contains(installed) else {
                    return Self.way(from: end, links)
                }
                for position in unexamined.take(in: range, before: release.version) {
                    let before = releases[newer[position]]
                    guard try isAllowed(before) else { continue }
                    longer.append(links.count)
                    links.append((before, end))
                }
            }
            // Among sequences of equal length, the one that starts with the newest release is preferred.
            ends = longer.sorted { links[$1].release.version.precedes(links[$0].release.version) }
        }
        return nil
    }

    private static func way(from start: Int, _ links: [Link]) -> [Feed.Release] {
        var way: [Feed.Release] = []
        var index: Int? = start
        while let current = index {
            way.append(links[current].release)
            index = links[current].next
        }
        return way
    }
}
