import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

@Suite struct ComparisonTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        try Files.writeNew(bytes, to: scratch.path(name))
        return scratch.path(name)
    }

    @Test(arguments: [0, 1, 1 << 18, (1 << 18) + 1, 700_000])
    func `two files are equal only if every byte is equal`(size: Int) throws {
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let (one, other) = (try file("one", bytes), try file("other", bytes))
        #expect(try Files.haveSameBytes(one, other))
        if size == 0 { return }
        for place in Set([0, size / 2, size - 1]) {
            var changed = bytes
            changed[place] ^= 1
            #expect(try !Files.haveSameBytes(one, file("changed \(place)", changed)), "byte \(place)")
        }
        #expect(try !Files.haveSameBytes(one, file("shorter", Array(bytes.dropLast()))))
        #expect(try !Files.haveSameBytes(one, scratch.path("missing")) && !Files.haveSameBytes(one, scratch.path))
    }

    /// An attacker can make a file with a hole of terabytes.
    @Test func `copying and comparing stop when the caller asks for it`() throws {
        let (one, other) = (try file("one", [1, 2, 3]), try file("other", [1, 2, 3]))
        for path in [one, other] { try Shell.must(["truncate", "-s", "1T", path]) }
        let asked = Counter()
        let error = #expect(throws: MoultError.self) {
            try LongRead.stopping(if: { asked.next() > 3 }) { try Files.haveSameBytes(one, other) }
        }
        #expect(error?.code == .interrupted)
        #expect(throws: MoultError.self) {
            try LongRead.stopping(if: { true }) { try Files.copy(one, to: scratch.path("copy"), mode: 0o600) }
        }
    }

    /// Opening a leased file breaks the lease.
    @Test func `a leased file can be compared without breaking the lease`() throws {
        let (one, other) = (try file("one", [1, 2, 3]), try file("other", [1, 2, 3]))
        let lease = try #require(try WriteLease.take(other))
        #expect(try Files.haveSameBytes(one, other, leased: lease) && Files.haveSameBytes(other, one, leased: lease))
        #expect(try lease.isUnbroken())
    }

    /// A process that closes a second descriptor of a database loses its locks on the database.
    @Test func `a file that this process has open is not opened a second time`() throws {
        let (one, other) = (try file("one", [1, 2, 3]), try file("other", [1, 2, 3]))
        let open = try Descriptor(other, .write)
        #expect(try !Files.haveSameBytes(one, other))
        try open.close()
        #expect(try Files.haveSameBytes(one, other))
    }
}

private final class Counter: Sendable {
    private let value = Atomic(0)
    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}
