import MoultFiles
import TestSupport
import Testing

/// A command reads each record of a store only once, and bases all its decisions on that state.
@Suite struct SnapshotTests {
    static let records = [
        "moult.json", "holds.json", "links.json", "checks.json", "steps.json", "history.jsonl", "manifest.json",
        "seal.json", "/current",
    ]

    @Test(arguments: [
        ["apply", "RELEASE"], ["status"], ["status", "--json"], ["status", "--nagios"], ["verify"],
        ["verify", "--deep"], ["who"],
    ])
    func `a command reads each record of the store once`(_ command: [String]) throws {
        let (scratch, releases) = (try Scratch(), try CopiedStore.Releases())
        let store = try CopiedStore.make(.idle, at: scratch.path("store"), releases)
        let arguments = command.map { $0 == "RELEASE" ? releases.manifest(2) : $0 }
        // Without a record of holds, the history must show that none was lost.
        try store.must("hold", "9.0.0", "--reason", "too early")
        try store.must("unhold", "9.0.0")
        // The first command records its checks of the databases, and the second command reads the record.
        try store.must("apply", releases.manifest(2))
        let log = scratch.path("calls")
        try Shell.must(
            [
                "strace", "-f", "-qq", "-o", log, "-e", "trace=open,openat,openat2,readlink,readlinkat",
                BuiltMoult.path(),
            ]
                + arguments + ["--store", store.path])
        var reads: [Substring: Int] = [:]
        for call in String(decoding: try Files.read(log, limit: 1 << 24) ?? [], as: UTF8.self).split(separator: "\n") {
            guard let path = call.firstMatch(of: /"([^"]*)"/)?.1, path.hasPrefix(store.path) else { continue }
            if Self.records.contains(where: { path.hasSuffix($0) }) { reads[path, default: 0] += 1 }
        }
        #expect(reads.filter { $0.value > 1 } == [:])
        #expect(
            reads.keys.contains { $0.hasSuffix("/2.0.0") || $0.contains("/2.0.0+") }, "strace saw nothing: \(reads)")
    }
}
