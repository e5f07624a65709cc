import MoultFiles
import TestSupport
import Testing

/// New keys come by a list that an old one signed.
@Suite struct KeyRotationTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        for name in ["b", "c"] { try bench.key(name) }
    }

    private func publish(_ version: String, _ sequence: Int, _ options: String) throws {
        try bench.release(version, sequence: sequence)
        try bench.must("moult publish public rel/test-\(version).json -q \(options)")
    }

    @Test func `stores go over to the new key`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub")
        #expect(try bench.must("moult apply").contains("nothing newer"))
        // Signed by the new key alone, and taken.
        try publish("2.0.0", 2, "-k b.key")
        #expect(try bench.must("moult apply").contains("signed by \(try bench.id("b"))"))
        // The old one has no say any more.
        try publish("3.0.0", 3, "-k a.key")
        #expect(try bench.refusal("moult apply", status: 3).contains("trusted is \(try bench.id("b"))\n"))
    }

    /// A store that was away for long walks from list to list.
    @Test func `two changes at once`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub")
        try bench.must("moult publish public -q -k b.key -k c.key --trust c.pub")
        try publish("2.0.0", 2, "-k c.key")
        #expect(try bench.must("moult apply").contains("signed by \(try bench.id("c"))"))
        // What has been learnt is kept: the lists may go.
        try bench.must("rm public/keys-*")
        try publish("3.0.0", 3, "-k c.key")
        try bench.must("moult apply -q")
    }

    @Test func `a list that no old key signed changes nothing`() throws {
        try bench.must("moult publish public -q -k a.key --trust b.pub; moult sign -q -k c.key public/keys-1.json")
        try bench.must("mv public/keys-1.json.\(try bench.id("c")).minisig public/keys-1.json.minisig")
        try publish("2.0.0", 2, "-k b.key")
        #expect(try bench.refusal("moult apply", status: 3).contains("trusted is \(try bench.id("a"))\n"))
    }

    @Test func `manifests beside the store follow the same keys`() throws {
        try bench.must("moult publish public -q -k a.key -k b.key --trust b.pub; moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult sign -q -k a.key rel/test-2.0.0.json")
        #expect(try bench.run("moult apply rel/test-2.0.0.json").status == 3)
        try bench.must("rm rel/test-2.0.0.json.minisig; moult sign -q -k b.key rel/test-2.0.0.json")
        try bench.must("moult apply -q rel/test-2.0.0.json")
    }
}
