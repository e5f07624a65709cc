import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// A long history is closed and compressed; all entries stay readable.
@Suite struct HistoryRotationTests {
    private let scratch: Scratch
    private let layout: StoreLayout

    init() throws {
        scratch = try Scratch()
        layout = try StoreLayout(root: scratch.directory("store"))
        try Orchestrator.create(at: layout.root, Settings(product: "org.example.test"))
    }

    private static func entry(_ number: Int, words: Int = 40, holds: [Hold]? = nil) -> History.Entry {
        History.Entry(
            time: Timestamp(seconds: 1_000_000 + number), transaction: "t\(number)", action: "update", from: nil,
            to: "1.0.0+\(number)", outcome: .done, reason: String(repeating: "because \(number) ", count: words),
            holds: holds)
    }

    /// Writes entries as if no part had ever been closed.
    private func write(_ numbers: Range<Int>, words: Int = 40, to layout: StoreLayout) throws {
        let lines = numbers.map { Self.entry($0, words: words).json.line + "\n" }.joined()
        try Files.replace(layout.history, with: Array(lines.utf8))
    }

    private func names() throws -> [String] { try Files.list("\(layout.hidden)/history").sorted() }

    private func transactions() throws -> [String] {
        let (entries, torn) = try History.read(layout)
        #expect(torn == 0)
        return entries.map(\.transaction)
    }

    @Test(.tags(.thorough)) func `the history stays small, and all of it can be read`() throws {
        for number in 0..<3_000 { try History.append(Self.entry(number), to: layout) }
        #expect(try names().count >= 2 && names().allSatisfy { $0.hasSuffix(".jsonl.zst") })
        #expect(try Files.facts(layout.history)?.size ?? 0 < 600_000)
        #expect(try transactions() == (0..<3_000).map { "t\($0)" })
        // Other programs can read the closed parts.
        let packed = "\(layout.hidden)/history/1.jsonl.zst"
        #expect(try Shell.must(["zstd", "-dcq", packed]).hasPrefix(Self.entry(0).json.line + "\n"))
        #expect(try Files.facts(packed)?.size ?? 0 < 100_000)
        let shown = try BuiltMoult.run("history", "--number", "5000", "--json", "--store", layout.root)
        #expect(shown.output.split(separator: "t").count > 3_000 && shown.output.contains("\"t0\""), "\(shown.errors)")
        #expect(try BuiltMoult.run("status", "--deep", "--store", layout.root).output.contains("history") == false)
    }

    @Test func `holds are rebuilt from a closed part`() throws {
        let hold = Hold(release: "2.0.0", reason: "bad", since: .now)
        try History.append(Self.entry(0, holds: [hold]), to: layout)
        for number in 1..<2_000 { try History.append(Self.entry(number), to: layout) }
        #expect(try names().contains("1.jsonl.zst"))
        try Files.replace(layout.holds, with: Array("{".utf8))
        #expect(try BuiltMoult.run("recover", "--store", layout.root).status == 0)
        let status = try BuiltMoult.run("status", "--store", layout.root).output
        #expect(status.contains("2.0.0") && status.contains("bad"), "\(status)")
    }

    /// After a kill, no later system call is made.
    @Test func `no entry is lost or doubled after a kill at any system call of the rotation`() throws {
        var number = 0
        var states: Set<[String]> = []
        while true {
            number += 1
            try Files.removeTree("\(layout.hidden)/history")
            try write(0..<60, words: 1_000, to: layout)
            let faults = Faults(failAt: number, code: EIO, keepsFailing: true)
            let isKilled = Faults.$current.withValue(faults) {
                do {
                    try History.append(Self.entry(60), to: layout)
                    return faults.failedCall != nil
                } catch { return true }
            }
            let expected = (0..<60).map { "t\($0)" }
            let found = try transactions()
            #expect(found == expected || found == expected + ["t60"], "call \(number)")
            states.insert(try names())
            // The next entry completes the work.
            try History.append(Self.entry(61), to: layout)
            #expect(try transactions() == found + ["t61"], "call \(number)")
            if !isKilled { break }
        }
        #expect(number > 20)
        #expect(states.contains(["1.jsonl"]) && states.contains(["1.jsonl.zst"]), "\(states)")
    }

    @Test func `a damaged part is reported, and recover moves it away`() throws {
        for number in 0..<3_000 { try History.append(Self.entry(number), to: layout) }
        let packed = "\(layout.hidden)/history/1.jsonl.zst"
        try Shell.must(["truncate", "-s", "-9", packed])
        let (entries, torn) = try History.read(layout)
        #expect(torn == 1 && entries.last?.transaction == "t2999" && entries.first?.transaction != "t0")
        #expect(
            try BuiltMoult.run("status", "--deep", "--store", layout.root).output.contains("1.jsonl.zst cannot be read")
        )
        let repaired = try BuiltMoult.run("recover", "--store", layout.root)
        #expect(repaired.errors.contains("the damaged file was kept as \(layout.root)/history-1.jsonl.zst.damaged"))
        #expect(try !names().contains("1.jsonl.zst") && names().contains("2.jsonl.zst"))
        #expect(try History.read(layout).torn == 0)
    }

    /// The newest entries are at the same place after years.
    @Test(.tags(.thorough)) func `status and status --deep are as fast with 20,000 entries as with 200`() throws {
        let old = try StoreLayout(root: scratch.path("old"))
        try scratch.must("cp -a store old")
        try write(0..<200, to: layout)
        for part in 0..<20 {
            try write(part * 1_000..<part * 1_000 + 999, to: old)
            try History.append(Self.entry(part * 1_000 + 999), to: old)
        }
        try #require(Files.list("\(old.hidden)/history").count == 20)
        for words in [["status"], ["status", "--deep"]] {
            var times: [String: [Duration]] = [:]
            // By turns, because other tests run at the same time.
            for _ in 0..<9 {
                for store in [layout.root, old.root] {
                    let begun = ContinuousClock.now
                    _ = try Shell.run([BuiltMoult.path()] + words + ["--json", "--store", store])
                    times[store, default: []].append(ContinuousClock.now - begun)
                }
            }
            let medians = try [layout.root, old.root].map { try #require(times[$0]).sorted()[4] }
            #expect(medians[1] < medians[0] * 2, "\(words): \(medians)")
        }
    }
}
