/// A generator that returns the same numbers for the same seed, so that failures can be reproduced.
package struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    package init(_ seed: Int) { state = UInt64(truncatingIfNeeded: seed) }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    package mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
    package mutating func pick<T>(_ items: [T]) -> T { items[Int.random(in: items.indices, using: &self)] }
}
