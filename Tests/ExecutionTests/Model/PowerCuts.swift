/// Combinations of the results of pending changes: all of them if there are few, otherwise the likely harmful ones and
/// random ones.
struct PowerCuts {
    /// If there are at most this many combinations at one moment, all are tried.
    var most = 64
    /// The number of random combinations.
    var random = 16

    func fates(of pending: [UnsyncedDisk.Change], _ chance: inout Chance) -> [[UnsyncedDisk.Fate]] {
        let options = pending.map { $0.isBytes ? [UnsyncedDisk.Fate.lost, .kept, .torn, .hollow] : [.lost, .kept] }
        // The multiplication stops long before the product could overflow.
        var combinations = 1
        for option in options where combinations <= most { combinations *= option.count }
        if combinations <= most { return all(options[...]) }
        let (lost, kept) = (pending.map { _ in UnsyncedDisk.Fate.lost }, pending.map { _ in UnsyncedDisk.Fate.kept })
        var found = [lost, kept]
        for index in pending.indices {
            for fate in options[index] {
                for base in [lost, kept] where base[index] != fate {
                    var fates = base
                    fates[index] = fate
                    found.append(fates)
                }
            }
        }
        for _ in 0..<random { found.append(options.map { $0[chance.below($0.count)] }) }
        return found
    }

    private func all(_ options: ArraySlice<[UnsyncedDisk.Fate]>) -> [[UnsyncedDisk.Fate]] {
        guard let first = options.first else { return [[]] }
        let rest = all(options.dropFirst())
        return first.flatMap { fate in rest.map { [fate] + $0 } }
    }
}

/// Pseudo-random numbers that are the same in every run (SplitMix64).
struct Chance {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func below(_ limit: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int((mixed ^ (mixed >> 31)) % UInt64(max(1, limit)))
    }
}
