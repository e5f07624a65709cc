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

    /// Takes the versions in a range that precede `limit`, and returns their positions in the list from which the index was made.
    package mutating func take(in range: VersionRange, before limit: Version) -> [Int] {
        var taken: [Int] = []
        for bounds in range.alternatives {
            func between(_ line: Line) -> Range<Int> {
                var (first, end) = (0, line.first { !$0.precedes(limit) })
                for bound in bounds {
                    let place = line.first { !$0.precedes(bound.version) }
                    switch bound.relation {
                    case .atLeast: first = max(first, place)
                    case .below: end = min(end, place)
                    }
                }
                return first..<max(first, end)
            }
            releases.take(between(releases), into: &taken)
            let part = between(prereleases)
            // A pre-release is in the range only if a bound names one with the same numbers.
            for bound in bounds where bound.named {
                let version = bound.version
                let numbers = (version.major, version.minor, version.patch)
                let first = prereleases.first { ($0.major, $0.minor, $0.patch) >= numbers }
                let end = prereleases.first { ($0.major, $0.minor, $0.patch) > numbers }
                prereleases.take(part.clamped(to: first..<end), into: &taken)
            }
        }
        return taken
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
