import MoultBasics
import MoultFiles
import MoultLibc

/// Looks for inputs for which the time of a reader grows faster than their size: it repeats a changed fragment of an input of the
/// corpus, with the rest of the input before and after it, until the size of the whole has doubled several times.
struct Growth {
    let reader: String
    let corpus: [[UInt8]]

    private static let small = 1 << 14
    /// How many times as large the large input is.
    private static let factor = 16
    /// A reader may take this many times as long for it: the time of a sort, and of a larger memory.
    private static let allowed = 2.0 * Double(factor)
    /// Shorter times are noise.
    private static let least = 0.05

    init(_ reader: String, corpus directory: String) throws {
        self.reader = reader
        corpus = try Files.list(directory).sorted().compactMap { try Files.read("\(directory)/\($0)", limit: 1 << 20) }
    }

    /// Searches for a number of seconds; returns the exit status. Keeps an input that it finds in `directory`.
    func search(seconds: Int, keepingIn directory: String) throws -> Int32 {
        let end = ContinuousClock.now + .seconds(seconds)
        var count = 0
        while ContinuousClock.now < end {
            guard let sample = corpus.randomElement(), !sample.isEmpty else { return 0 }
            let start = Int.random(in: 0..<sample.count)
            let length = min(sample.count - start, 1 << Int.random(in: 0...9))
            let fragment = Self.changed(Array(sample[start..<start + length]))
            func input(_ size: Int) -> [UInt8] {
                let copies = max(1, size / max(1, fragment.count))
                // Half of the inputs end with the fragment, as one that was cut off does.
                return Array(sample[..<start]) + Array(repeating: fragment, count: copies).joined()
                    + (start.isMultiple(of: 2) ? sample[(start + length)...] : [])
            }
            count += 1
            let large = input(Self.small * Self.factor)
            if Self.time(large) < Self.least { continue }
            let little = input(Self.small)
            // The best of several attempts, because another process may have used the machine.
            let (one, many) = (
                (0..<5).map { _ in Self.time(little) }.min() ?? 0, (0..<3).map { _ in Self.time(large) }.min() ?? 0
            )
            if many < Self.allowed * one || many < Self.least { continue }
            let path = "\(directory)/slow-\(reader)-\(getpid())"
            try Files.replace(path, with: large)
            print("\(reader): \(one) s for \(little.count) bytes, \(many) s for \(large.count): \(path)")
            return 1
        }
        print("\(reader): \(count) inputs")
        return 0
    }

    private static func changed(_ fragment: [UInt8]) -> [UInt8] {
        var fragment = fragment
        for _ in 0..<Int.random(in: 0...2) {
            let index = Int.random(in: 0...fragment.count)
            switch Int.random(in: 0...2) {
            case 0: if index < fragment.count { fragment[index] = signs.randomElement() ?? 0 }
            case 1: fragment.insert(signs.randomElement() ?? 0, at: index)
            default: if index < fragment.count, fragment.count > 1 { fragment.remove(at: index) }
            }
        }
        return fragment
    }

    /// Bytes with a meaning in one of the formats.
    private static let signs = Array("{}[]()<>\"'`\\/*-,:;.|#$%&=+~^ \n\t\0aZ09\u{301}".utf8)

    private static func time(_ bytes: [UInt8]) -> Double {
        var (start, end) = (timespec(), timespec())
        // This clock always exists on Linux.
        _ = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start)
        Reader.read(bytes)
        _ = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end)
        return Double(end.tv_sec - start.tv_sec) + Double(end.tv_nsec - start.tv_nsec) / 1e9
    }
}
