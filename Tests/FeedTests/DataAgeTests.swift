import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `maxAge` in the settings: data that is too old is reported, and apps can refuse it.
@Suite struct DataAgeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `data that is older than maxAge is reported everywhere, and an app can refuse it`() throws {
        try bench.key("a")
        try bench.release("1.0.0", sequence: 1, top: [.init("created", "2026-01-01T00:00:00Z")])
        try bench.must("moult publish public rel/test-1.0.0.json -k a.key -q")
        try bench.must("moult init --product org.example.test --key a.pub --feed public/feed.json -q; moult apply -q")
        let store = Store(at: bench.path("store"))
        func connect() throws { try store.connect(refusingOldData: true).close() }
        #expect(try bench.run("moult check -q").status == 0)
        #expect(try !bench.must("moult status --prometheus").contains("moult_too_old"))
        try connect()
        try bench.set("maxAge", 3_153_600_000)
        #expect(try bench.run("moult status --nagios").status == 0)
        #expect(
            try bench.must("moult status --prometheus").contains("moult_too_old{store=\"\(bench.path("store"))\"} 0\n"))
        try connect()
        try bench.set("maxAge", 86_400)
        let what = "the installed data is from 2026-01-01T00:00:00Z"
        let checked = try bench.run("moult check")
        #expect(
            checked.status == 3 && checked.output.contains("\(what), and \"maxAge\" in moult.json is 1 d\n"),
            "\(checked)")
        let alarm = try bench.run("moult status --nagios")
        #expect(alarm.status == 2 && alarm.output.contains(what), "\(alarm)")
        #expect(
            try bench.must("moult status --prometheus").contains("moult_too_old{store=\"\(bench.path("store"))\"} 1\n"))
        let error = #expect(throws: MoultError.self) { try connect() }
        #expect(error?.code == .tooOld)
        try store.connect().close()
        // A newer release is the remedy. Without a time in the manifest, the time of the installation counts.
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -k a.key -q")
        #expect(try bench.run("moult check -q").status == 2)
        try bench.must("moult apply -q")
        #expect(try bench.run("moult check -q").status == 0)
        try connect()
    }
}
