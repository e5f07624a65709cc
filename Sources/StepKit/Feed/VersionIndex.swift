/// Versions in order, from which those in a range can be taken without a comparison with every version.
///
/// Each version is taken only once, so that a search over all releases of a feed takes time in proportion to their number.
package struct VersionIndex {
    /// Pre-releases are separate, because most ranges contain none of them, even between their bounds.
    private var releases: Line
    private var prereleases: Line

    package init(_ versions: [Version]) {
        let sorted = versions.enumerated().sorted { $0.element.precedes($1.element) }
        func line(_ isPrerelease: Bool) -> Line {
            let own = sorted.filter { $0.element.prerelease.isEmpty != isPrerelease }
            return Line(versions: own.map(\.element), positions: own.map(\.offset))
        }
        (releases, prereleases) = (line(false), line(true))
    }

    /// Takes the versions in a range that precede `limit` and do not precede `first`, and returns their positions in the list from which
    /// the index was made.
    package mutating func take(in range: VersionRange, from first: Version? = nil, before limit: Version) -> [Int] {
        var taken: [Int] = []
        for part in parts(of: range, first, limit) {
            if part.isPrerelease {
                prereleases.take(part.indices, into: &taken)
            } else {
                releases.take(part.indices, into: &taken)
            }
        }
        return taken
    }

    /// Returns the newest version in a range that precedes `limit`, taken or not.
    package func newest(in range: VersionRange, before limit: Version) -> Version? {
        parts(of: range, nil, limit).compactMap { part in
            part.indices.last.map { (part.isPrerelease ? prereleases : releases).versions[$0] }
        }
        .max { $0.precedes($1) }
    }

    private typealias Part = (isPrerelease: Bool, indices: Range<Int>)

    private func parts(of range: VersionRange, _ first: Version?, _ limit: Version) -> [Part] {
        range.alternatives.flatMap { bounds -> [Part] in
            func between(_ line: Line) -> Range<Int> {
                var start = first.map { first in line.first { !$0.precedes(first) } } ?? 0
                var end = line.first { !$0.precedes(limit) }
                for bound in bounds {
                    let place = line.first { !$0.precedes(bound.version) }
                    switch bound.relation {
                    case .atLeast: start = max(start, place)
                    case .below: end = min(end, place)
                    }
                }
                return start..<max(start, end)
            }
            let part = between(prereleases)
            // A pre-release is in the range only if a bound names one with the same numbers.
            let named = bounds.filter(\.named).map { bound -> Part in
                let version = bound.version
                let numbers = (version.major, version.minor, version.patch)
                let start = prereleases.first { ($0.major, $0.minor, $0.patch) >= numbers }
                let end = prereleases.first { ($0.major, $0.minor, $0.patch) > numbers }
                return (true, part.clamped(to: start..<end))
            }
            return [(false, between(releases))] + named
        }
    }

    private struct Line {
        let versions: [Version]
        let positions: [Int]
        /// For each version the next one that may not be taken yet: itself, or one after it.
        private var next: [Int]

        init(versions: [Version], positions: [Int]) {
            (self.versions, self.positions) = (versions, positions)
            next = Array(0...versions.count)
        }

        /// Returns the index of the first version that satisfies the condition, as all after it do.
        func first(where condition: (Version) -> Bool) -> Int {
            var (low, high) = (0, versions.count)
            while low < high {
                let middle = (low + high) / 2
                if condition(versions[middle]) { high = middle } else { low = middle + 1 }
            }
            return low
        }

        mutating func take(_ range: Range<Int>, into taken: inout [Int]) {
            var index = untaken(from: range.lowerBound)
            while index < range.upperBound {
                taken.append(positions[index])
                next[index] = index + 1
                index = untaken(from: index + 1)
            }
        }

        private mutating func untaken(from start: Int) -> Int {
            var index = start
            while next[index] != index {
                next[index] = next[next[index]]
                index = next[index]
            }
            return index
        }
    }
}
