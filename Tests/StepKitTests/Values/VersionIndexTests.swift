import StepKit
import Testing

/// The index gives the same versions as a comparison with each of them.
@Suite struct VersionIndexTests {
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 31
        }
    }

    private static func version(_ numbers: inout Numbers) -> String {
        func number() -> Int { Int.random(in: 0...2, using: &numbers) }
        let plain = "\(number()).\(number()).\(number())"
        let tags = ["", "", "", "-a", "-a.1", "-b", "-0", "-rc.2"]
        return plain + (tags.randomElement(using: &numbers) ?? "") + (number() == 0 ? "+x" : "")
    }

    private static func range(_ numbers: inout Numbers) -> String {
        let parts = (0...Int.random(in: 0...2, using: &numbers)).map { _ in
            (0...Int.random(in: 0...1, using: &numbers)).map { _ in
                (["", ">=", "<", ">", "<=", "^", "~", "="].randomElement(using: &numbers) ?? "")
                    + (Bool.random(using: &numbers) ? version(&numbers) : "1.\(Int.random(in: 0...2, using: &numbers))")
            }
            .joined(separator: " ")
        }
        return parts.joined(separator: " || ")
    }

    @Test(arguments: 0..<300)
    func `the versions in a range are the same as with a comparison of each`(seed: Int) throws {
        var numbers = Numbers(state: UInt64(seed))
        let versions = try (0..<40).map { _ in try #require(Version(Self.version(&numbers))) }
        var index = VersionIndex(versions)
        var taken: Set<Int> = []
        // Several ranges, because each version is taken only once.
        for _ in 0..<4 {
            let text = Self.range(&numbers)
            let range = try #require(VersionRange(text), "\(text)")
            let limit = try #require(versions.randomElement(using: &numbers))
            let expected = versions.indices.filter {
                range.contains(versions[$0]) && versions[$0].precedes(limit) && !taken.contains($0)
            }
            #expect(index.take(in: range, before: limit).sorted() == expected, "\(text) before \(limit) of \(versions)")
            taken.formUnion(expected)
        }
    }

    @Test func `a range has a maximum length`() {
        let parts = Array(repeating: "1.2.3", count: 128).joined(separator: "||")
        #expect(parts.utf8.count == 894 && VersionRange(parts) != nil)
        #expect(VersionRange(String(repeating: " ", count: VersionRange.longest - 1) + "1") != nil)
        #expect(VersionRange(String(repeating: " ", count: VersionRange.longest) + "1") == nil)
    }
}
