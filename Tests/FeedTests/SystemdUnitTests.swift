import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// The installed units, as systemd itself reads them.
@Suite(
    .tags(.thorough),
    .enabled(if: (try? Files.factsThroughLinks("/usr/bin/systemd-analyze")) != nil, "systemd is not installed"))
struct SystemdUnitTests {
    private let scratch: Scratch

    /// Writes the units for a store in `/var/lib/app`, with the built command instead of the installed one.
    init() throws {
        scratch = try Scratch()
        for ending in ["service", "timer"] {
            let text = try Self.unit("moult@.\(ending)").replacing("/usr/bin/moult", with: try BuiltMoult.path())
            try Files.writeNew(Array(text.utf8), to: scratch.path("moult@var-lib-app.\(ending)"))
        }
    }

    /// Returns the text of a file in `packaging/systemd`.
    private static func unit(_ name: String) throws -> String {
        try Project.text("packaging/systemd/\(name)")
    }

    private func analyze(_ arguments: String...) throws -> Shell.Ended {
        try Shell.run(["systemd-analyze"] + arguments, in: scratch.path)
    }

    @Test(arguments: ["service", "timer"])
    func `systemd-analyze verify reports no problem in the units`(ending: String) throws {
        let ended = try analyze("verify", "--man=no", "./moult@var-lib-app.\(ending)")
        #expect(ended.errors == "")
        #expect(ended.status == 0)
    }

    /// systemd rates the exposure of the service; 100 means that nothing is restricted.
    @Test func `the service that runs as root is hardened`() throws {
        let ended = try analyze("security", "--offline=yes", "--threshold=23", "./moult@var-lib-app.service")
        #expect(ended.status == 0, "\(ended.output.suffix(200))")
    }

    @Test func `the service that runs as an app's user is hardened`() throws {
        let root = scratch.path("root/etc/systemd/system/moult@.service.d")
        try Shell.must(["mkdir", "-p", root])
        try Files.replace(
            "\(root)/user.conf", with: Array(try Self.unit("user.conf").replacing("APP", with: "app").utf8))
        try Files.replace(
            "\(Files.directory(of: root))/moult@.service", with: Array(try Self.unit("moult@.service").utf8))
        let ended = try analyze(
            "security", "--offline=yes", "--threshold=20", "--root=\(scratch.path("root"))", "moult@var-lib-app.service"
        )
        #expect(ended.status == 0, "\(ended.output.suffix(200))")
        // Without the drop-in, this line would be different.
        #expect(ended.output.contains("✓ User="))
        // In a user namespace of its own, the service would not see the processes of the app.
        #expect(try !Self.unit("user.conf").contains("\nPrivateUsers="))
    }

    @Test func `the service has no capability to trace processes or to write to every file`() throws {
        for text in [try Self.unit("moult@.service"), try Self.unit("user.conf")] {
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("CapabilityBoundingSet=") })
            #expect(!line.contains("CAP_SYS_PTRACE") && !line.contains("CAP_DAC_OVERRIDE"))
        }
        #expect(try Self.unit("moult@.service").contains("\nProtectProc=invisible\n"))
    }

    /// The command has the capabilities of root in the service, and no access to the processes of other users.
    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `the service that runs as root needs no capabilities beyond those in its unit`() throws {
        let bench = try Bench()
        for number in 1...2 { try bench.release("\(number).0.0", sequence: number) }
        let line = try #require(
            Self.unit("moult@.service").split(separator: "\n").first { $0.hasPrefix("CapabilityBoundingSet=") })
        let names = line.dropFirst("CapabilityBoundingSet=CAP_".count).lowercased().replacing(" cap_", with: ",+")
        func limited(_ command: String) throws {
            try bench.must("setpriv --no-new-privs --bounding-set -all,+\(names) \(command)")
        }
        try limited("grep -q 'CapEff:.*[1-9a-f]' /proc/self/status")
        try bench.must("moult init -q --product org.example.test")
        for number in 1...2 { try limited("moult apply -q rel/test-\(number).0.0.json") }
        // The drop-in writes the metrics with the same capabilities.
        let metrics = try #require(
            Self.unit("metrics.conf").split(separator: "\n").first { $0.hasPrefix("ExecStopPost=-/usr/bin/") })
        let command = String(metrics.dropFirst("ExecStopPost=-/usr/bin/".count))
        try limited(
            command.replacing("/var/lib/prometheus/node-exporter/", with: "").replacing("%i", with: "app")
                .replacing("%f", with: "store"))
        #expect(try bench.must("cat moult-app.prom").contains("moult_up{"))
        try limited("moult rollback -q")
        try limited("moult verify --deep -q")
        #expect(try bench.installed() == "1.0.0")
    }

    /// Otherwise a program that the update has stopped would stay stopped until the timer's next run.
    @Test(arguments: [("signal", true), ("timeout", true), ("exit-code", false), ("success", false)])
    func `an update that was killed is finished at once`(_ result: String, _ recovers: Bool) throws {
        let bench = try Bench()
        for number in 1...2 { try bench.release("\(number).0.0", sequence: number) }
        try bench.must("moult init -q --product org.example.test; moult apply -q rel/test-1.0.0.json")
        // The link `current` is renamed after the decision.
        _ = try bench.run(
            "strace -f -o trace -e trace=renameat2,renameat -e inject=renameat2,renameat:signal=KILL:when=4 moult apply -q rel/test-2.0.0.json"
        )
        #expect(try bench.must("moult status").contains("Finish it with: moult recover"))
        let line = try #require(
            Self.unit("moult@.service").split(separator: "\n").first { $0.hasPrefix("ExecStopPost=") })
        let command = line.dropFirst("ExecStopPost=".count).replacing("%f", with: "store").replacing(
            "/usr/bin/moult", with: "moult")
        try bench.must("SERVICE_RESULT=\(result); export SERVICE_RESULT; \(command)")
        #expect(try bench.must("moult status").contains("Finish it with") == !recovers)
    }

    /// systemd must not stop the command before the command ends by itself, after `--retry`, `--wait` and the network
    /// deadline.
    @Test func `the start timeout of the service exceeds the waiting times of its command`() throws {
        let service = try Self.unit("moult@.service")
        let command = try #require(service.split(separator: "\n").first { $0.hasPrefix("ExecStart=") }).split(
            separator: " ")
        func seconds(_ option: String) throws -> Int {
            let index = try #require(command.firstIndex { $0 == option })
            return try #require(Int(command[index + 1]))
        }
        #expect(service.contains("\nTimeoutStartSec=3h\n"))
        #expect(try seconds("--retry") + seconds("--wait") + 3600 < 3 * 3600)
        #expect(!service.contains("SuccessExitStatus"))
    }

    /// Machines start at different times, and each machine always starts at the same time.
    @Test func `the timer spreads start times`() throws {
        let timer = try Shell.must(["cat", scratch.path("moult@var-lib-app.timer")])
        for line in ["OnCalendar=hourly", "RandomizedDelaySec=45min", "FixedRandomDelay=yes", "Persistent=yes"] {
            #expect(timer.contains("\n\(line)\n"))
        }
    }

    /// The command needs these calls to confine the processes that read a new database.
    @Test func `the unit allows the system calls that confine processes`() throws {
        let service = try Shell.must(["cat", scratch.path("moult@var-lib-app.service")])
        let filter = try #require(service.split(separator: "\n").first { $0.hasPrefix("SystemCallFilter=") })
        for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"] {
            #expect(filter.contains(call))
        }
    }
}
