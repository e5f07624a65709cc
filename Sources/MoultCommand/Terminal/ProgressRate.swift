/// How fast a phase goes, over the last few seconds.
struct ProgressRate {
    private var samples: [(time: Double, done: Int)] = []
    private static let window = 5.0
    /// Before that a rate says nothing.
    private static let shortest = 0.4

    mutating func add(done: Int, at time: Double) {
        if let last = samples.last, done < last.done { samples = [] }
        samples.append((time, done))
        // One sample from before the window stays: the rate is over the whole window.
        while samples.count > 2, samples[1].time < time - Self.window { samples.removeFirst() }
    }

    /// Units per second; nil while there is too little to tell.
    var perSecond: Double? {
        guard let first = samples.first, let last = samples.last, last.time - first.time >= Self.shortest else {
            return nil
        }
        return Double(last.done - first.done) / (last.time - first.time)
    }
}
