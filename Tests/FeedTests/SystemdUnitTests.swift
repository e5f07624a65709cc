import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The units that are installed, as systemd itself reads them.
@Suite(
    .enabled(if: (try? Files.factsThroughLinks("/usr/bin/systemd-analyze")) != nil, "systemd is not installed"))
struct SystemdUnitTests {
    private let scratch: Scratch

    /// The units with the built command in the place of the installed one, for a store in `/var/lib/app`.
    init() throws {
        scratch = try Scratch()
        let units = String(#filePath.prefix(upTo: #filePath.firstRange(of: "Tests/")?.lowerBound ?? #filePath.endIndex))
        for ending in ["service", "timer"] {
            let bytes = try Files.read("\(units)packaging/systemd/moult@.\(ending)", limit: 1 << 16) ?? []
            let text = String(decoding: bytes, as: UTF8.self)
                .replacing("/usr/bin/moult", with: try BuiltMoult.path())
            try Files.writeNew(Array(text.utf8), to: scratch.path("moult@var-lib-app.\(ending)"))
        }
    }

    private func analyze(_ arguments: String...) throws -> Shell.Ended {
        try Shell.run(["systemd-analyze"] + arguments, in: scratch.path)
    }

    @Test(arguments: ["service", "timer"])
    func `unit has no fault`(ending: String) throws {
        let ended = try analyze("verify", "--man=no", "./moult@var-lib-app.\(ending)")
        #expect(ended.errors == "")
        #expect(ended.status == 0)
    }

    /// What the service could do besides its work: systemd counts it, 100 for everything.
    @Test func `service is hardened`() throws {
        let ended = try analyze("security", "--offline=yes", "--threshold=30", "./moult@var-lib-app.service")
        #expect(ended.status == 0, "\(ended.output.suffix(200))")
    }

    /// No machine asks at the time of the others, nor each time at another one.
    @Test func `times are spread`() throws {
        let timer = try Shell.must(["cat", scratch.path("moult@var-lib-app.timer")])
        for line in ["OnCalendar=hourly", "RandomizedDelaySec=45min", "FixedRandomDelay=yes", "Persistent=yes"] {
            #expect(timer.contains("\n\(line)\n"))
        }
    }

    /// Without these the command inside could not shut away what reads a new database.
    @Test func `guard is allowed`() throws {
        let service = try Shell.must(["cat", scratch.path("moult@var-lib-app.service")])
        let filter = try #require(service.split(separator: "\n").first { $0.hasPrefix("SystemCallFilter=") })
        for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"] {
            #expect(filter.contains(call))
        }
    }
}
