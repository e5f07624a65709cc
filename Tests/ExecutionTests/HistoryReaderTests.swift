import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The history is read from its end, block by block.
@Suite struct HistoryReaderTests {
    let scratch: Scratch
    let layout: StoreLayout

    init() throws {
        scratch = try Scratch()
        layout = try StoreLayout(root: scratch.path)
        try scratch.directory(".moult")
    }

    private func entry(_ number: Int, reason: String? = nil) -> History.Entry {
        History.Entry(
            time: Timestamp(seconds: 1_000_000 + number), transaction: "t\(number)", action: "update",
            from: nil, to: "\(number).0.0+00000000", outcome: .done, reason: reason)
    }

    private func append(raw text: String) throws {
        let file = try Descriptor(layout.history, .append, mode: 0o644)
        try file.write(Array(text.utf8))
        try file.close()
    }

    @Test func `a missing history is empty`() throws {
        #expect(try HistoryReader(layout).next() == nil)
        #expect(try History.read(layout).entries == [])
    }

    /// Lines cross block boundaries, and one line is longer than several blocks.
    @Test func `the newest history entry is returned first`() throws {
        let entries = (0..<900).map { entry($0, reason: String(repeating: "x", count: $0 == 700 ? 200_000 : $0)) }
        for entry in entries { try History.append(entry, to: layout) }
        let reader = try HistoryReader(layout)
        var found: [History.Entry] = []
        while let entry = try reader.next() { found.append(entry) }
        #expect(found == entries.reversed())
        #expect(reader.torn == 0)
        #expect(try History.read(layout, newest: 3).entries == Array(entries.suffix(3)))
        #expect(try HistoryReader(layout).first { $0.transaction == "t5" } == entries[5])
        #expect(try HistoryReader(layout).first { $0.transaction == "none" } == nil)
    }

    /// A block may end anywhere in a line: each length of the newest line moves all boundaries by one byte.
    @Test func `history entries are read across block boundaries`() throws {
        for entry in (0..<500).map({
            entry($0, reason: "a reason of some length, so that there are several blocks of it")
        }) {
            try History.append(entry, to: layout)
        }
        let before = try #require(try Files.read(layout.history, limit: 1 << 20))
        try #require(before.count > 65_536)
        for length in stride(from: 0, through: 300, by: 7) {
            try Files.replace(layout.history, with: before)
            try History.append(entry(500, reason: String(repeating: "y", count: length)), to: layout)
            let entries = try History.read(layout).entries
            #expect(entries.map(\.transaction) == (0...500).map { "t\($0)" })
        }
    }

    /// An incomplete line from a crash does not affect the next line. Unreadable lines are counted.
    @Test func `torn lines are counted`() throws {
        try History.append(entry(1), to: layout)
        try append(raw: "{\"time\":\"20")
        #expect(try History.read(layout).entries.map(\.transaction) == ["t1"])
        try History.append(entry(2), to: layout)
        try append(raw: "\n\n{\"no\":\"entry\"}\n")
        try History.append(entry(3), to: layout)
        let read = try History.read(layout)
        #expect(read.entries.map(\.transaction) == ["t1", "t2", "t3"])
        #expect(read.torn == 1)
    }

    /// A line that is too long for an entry is skipped without reading it into memory.
    @Test(arguments: [1_100_000, 20_000_000]) func `an overlong line is skipped`(length: Int) throws {
        try History.append(entry(1), to: layout)
        try Shell.must(["truncate", "-s", "+\(length)", layout.history])
        #expect(try History.read(layout).entries.map(\.transaction) == ["t1"])
        #expect(try History.read(layout).torn == 1)
        try append(raw: "\n")
        try append(raw: "\(entry(2).json.line)\n")
        let read = try History.read(layout)
        #expect(read.entries.map(\.transaction) == ["t1", "t2"])
        #expect(read.torn == 1)
    }

    /// A damaged file must not keep a command busy for hours.
    @Test func `a history line longer than 64 MiB is an error that suggests the repair`() throws {
        try Shell.must(["truncate", "-s", "100M", layout.history])
        let error = #expect(throws: MoultError.self) { try HistoryReader(layout).next() }
        #expect(error?.why == "one of its lines is longer than 64 MiB")
        #expect(error?.now?.description == "Repair the history with: moult recover")
    }
}
