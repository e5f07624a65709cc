import MoultFiles
import TestSupport
import Testing

/// A command that changes nothing reads each record of a store once, and an update a few times.
@Suite struct SnapshotTests {
    static let records = [
        "moult.json", "holds.json", "links.json", "checks.json", "steps.json", "history.jsonl", "manifest.json",
        "seal.json", "/current",
    ]

    @Test(arguments: [
        ["apply", "RELEASE"], ["status"], ["status", "--json"], ["status", "--nagios"], ["verify"],
        ["verify", "--deep"], ["status", "--processes"],
    ])
    func `a command reads each record of the store once`(_ command: [String]) throws {
        let (scratch, releases) = (try Scratch(), try CopiedStore.Releases())
        let store = try CopiedStore.make(.idle, at: scratch.path("store"), releases)
        try begin(store)
        // The first command records its checks of the databases, and the second command reads the record.
        try store.must("apply", releases.manifest(2))
        let reads = try reads(by: command.map { $0 == "RELEASE" ? releases.manifest(2) : $0 }, store, scratch)
        #expect(reads.filter { $0.value > 1 } == [:])
    }

    /// Before it has the store's lock, under the lock, and after the new release is installed, when the results of its checks are
    /// recorded. The update itself changes some records in between.
    @Test func `an update reads each record three times at most`() throws {
        let (scratch, releases) = (try Scratch(), try CopiedStore.Releases())
        let store = try CopiedStore.make(.idle, at: scratch.path("store"), releases)
        try begin(store)
        let limits: [String: Int] = [:]
        let reads = try reads(by: ["apply", releases.manifest(2)], store, scratch)
        #expect(reads.filter { $0.value > limits[Files.name(of: $0.key), default: 3] } == [:])
    }

    /// Without a record of holds, the history must show that none was lost.
    private func begin(_ store: CopiedStore) throws {
        try store.must("hold", "9.0.0", "--reason", "too early")
        try store.must("unhold", "9.0.0")
    }

    /// Returns how many times a command opens each record of a store.
    private func reads(by command: [String], _ store: CopiedStore, _ scratch: Scratch) throws -> [String: Int] {
        let log = scratch.path("calls")
        try Shell.must(
            [
                "strace", "-f", "-qq", "-o", log, "-e", "trace=open,openat,openat2,readlink,readlinkat",
                BuiltMoult.path(),
            ]
                + command + ["--store", store.path])
        var reads: [String: Int] = [:]
        for call in String(decoding: try Files.read(log, limit: 1 << 24) ?? [], as: UTF8.self).split(separator: "\n") {
            guard let path = call.firstMatch(of: /"([^"]*)"/)?.1, path.hasPrefix(store.path) else { continue }
            if Self.records.contains(where: { path.hasSuffix($0) }) { reads[String(path), default: 0] += 1 }
        }
        try #require(
            reads.keys.contains { $0.contains("/2.0.0") || $0.contains("/1.0.0") }, "strace saw nothing: \(reads)")
        return reads
    }
}
