import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A private systemd manager runs the service, without the confinement, which only works on a whole machine.
@Suite(
    .tags(.thorough),
    .enabled(
        if: geteuid() == 0 && access("/usr/bin/systemd", X_OK) == 0
            && (try? Shell.run(["unshare", "--mount", "true"]).status) == 0, "needs root, systemd and a mount namespace"
    ))
struct SystemdServiceTests {
    private let bench: Bench
    private let instance: String

    /// Installs the unit with one second of retries instead of an hour, and another unit that creates a file when the first one
    /// fails.
    init() throws {
        bench = try Bench()
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult init -q --product org.example.test")
        let escaped = try bench.must("systemd-escape --path '\(bench.path("store"))'")
        instance = "moult@\(escaped.trimmed).service"
        let unit = try Project.text("packaging/systemd/moult@.service")
        let confinement = try #require(unit.firstRange(of: "# The service writes only to the store"))
        let text = unit[..<confinement.lowerBound].replacing("/usr/bin/moult", with: try BuiltMoult.path())
            .replacing("--wait 300 --retry 3600", with: "--retry 1")
            .replacing("[Unit]\n", with: "[Unit]\nOnFailure=alarm.service\n")
        try bench.must("mkdir -p home/.config/systemd/user")
        let units = bench.path("home/.config/systemd/user")
        let release = "Environment=MOULT_RELEASE=\(bench.path("rel/test-1.0.0.json"))\n"
        try Files.replace("\(units)/moult@.service", with: Array("\(text)\(release)".utf8))
        let alarm = "[Service]\nType=oneshot\nExecStart=touch \(bench.path("alarm"))\n"
        try Files.replace("\(units)/alarm.service", with: Array(alarm.utf8))
    }

    private func start(then more: String = "") throws -> String {
        let script = """
            mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user || exit 90
            export XDG_RUNTIME_DIR=/run/user HOME=\(bench.path("home"))
            /usr/bin/systemd --user & manager=$!
            until systemctl --user is-system-running --wait >/dev/null 2>&1; do kill -0 $manager || exit 91; sleep 0.05; done
            systemctl --user start '\(instance)' 2>/dev/null
            \(more)
            systemctl --user show -p ActiveState,Result,ExecMainStatus '\(instance)'
            """
        return try Shell.run([
            "timeout", "120", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
            script,
        ]).output
    }

    @Test func `a unit fails if apply still exits with 75 after its retries`() throws {
        let updater = try bench.updater()
        let state = try start(then: "until [ -e '\(bench.path("alarm"))' ]; do sleep 0.05; done")
        #expect(Set(state.split(separator: "\n")) == ["ActiveState=failed", "Result=exit-code", "ExecMainStatus=75"])
        #expect(try Files.facts(bench.path("alarm")) != nil)
        updater.stop()
    }

    @Test func `a unit that installs a release succeeds`() throws {
        let state = try start()
        #expect(Set(state.split(separator: "\n")) == ["ActiveState=inactive", "Result=success", "ExecMainStatus=0"])
        #expect(try Files.facts(bench.path("alarm")) == nil)
        #expect(try bench.installed() == "1.0.0")
    }
}
