import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import Moult

/// `apply --download-only`, and `window` in the settings: the files are downloaded before the release is installed.
@Suite struct DownloadOnlyTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func downloads() throws -> [String] {
        try Files.list(bench.path("store/.moult/downloads")).filter { $0.contains(".tar") }
    }

    @Test func `a downloaded release is installed by the next apply, without its bundle on the server`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        // The files of a directory are not downloaded, so the manifest and the bundle are in different ones.
        try bench.must("mkdir bundles; cp -r public mirror; mv public/*.tar* bundles; mv bundles/*1.0.0* public")
        try bench.set(
            "feed",
            ["url": .string(bench.path("public/feed.json")), "mirrors": [.string(bench.path("mirror/feed.json"))]])
        try bench.must("moult apply -q 1.0.0")
        let output = try bench.must("moult apply --download-only")
        #expect(output == "2.0.0 is downloaded; install it with: moult apply\n")
        #expect(try bench.installed() == "1.0.0" && downloads().count == 1)
        let json = try JSON(
            parsing: Array(bench.must("moult apply --download-only 2.0.0 --json").utf8), source: "apply")
        #expect(json["downloaded"]?.string == "2.0.0" && json["changed"] == false)
        try bench.must("rm mirror/*2.0.0*tar*; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        #expect(try bench.must("moult apply --download-only").hasPrefix("no newer release"))
        for other in ["--plan x", "--create", "--confirm"] {
            #expect(
                try bench.refusal("moult apply --download-only \(other) public", status: 64).contains(
                    "cannot be used together"))
        }
        #expect(
            try bench.refusal("moult apply --download-only rel/test-1.0.0.json", status: 64).contains("needs a feed"))
    }

    @Test func `outside its window a store only downloads, unless the operator names the release`() throws {
        try bench.follow(["1.0.0"])
        let hour = try #require(Int(bench.must("date +%H").prefix(2)))
        func window(_ from: Int, _ to: Int) throws -> String {
            let text = [from, to].map { hour -> String in
                let hour = (hour + 48) % 24
                return "\(hour < 10 ? "0" : "")\(hour):00"
            }
            .joined(separator: "-")
            try bench.set("window", .string(text))
            return text
        }
        let closed = try window(hour + 2, hour - 2)
        // A first install does not wait.
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key")
        #expect(try bench.must("moult apply") == "2.0.0 is downloaded; it is installed at \(closed)\n")
        #expect(try bench.installed() == "1.0.0")
        #expect(try bench.run("moult status --nagios").status == 0)
        _ = try window(hour - 2, hour + 2)
        #expect(try bench.run("moult status --nagios").status == 1)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        try bench.release("3.0.0", sequence: 3)
        _ = try window(hour + 2, hour - 2)
        try bench.must("moult publish public rel/test-3.0.0.json -q -k a.key; moult apply -q 3.0.0")
        #expect(try bench.installed() == "3.0.0")
    }

    @Test func `a window has a start and an end, and may extend over midnight`() throws {
        let day = try #require(TimeWindow("02:00-05:30"))
        #expect(day.contains(minute: 120) && day.contains(minute: 329))
        #expect(!day.contains(minute: 119) && !day.contains(minute: 330))
        let night = try #require(TimeWindow("22:00-04:00"))
        #expect(night.contains(minute: 1320) && night.contains(minute: 0) && night.contains(minute: 239))
        #expect(!night.contains(minute: 240) && !night.contains(minute: 1319))
        for text in ["", "02:00", "2:00-05:00", "02:00-24:00", "02:60-03:00", "02:00-05:00-06:00", "a2:00-05:00"] {
            #expect(TimeWindow(text) == nil, "\(text)")
        }
    }
}
