import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A consumer that is a systemd unit, tested with a private manager.
@Suite(.tags(.thorough)) struct SystemdTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    /// In a `chroot`, mounts cannot be made private, so a private manager cannot run.
    private static let canRun =
        geteuid() == 0 && access("/usr/bin/systemd", X_OK) == 0
        && (try? Shell.run(["unshare", "--mount", "true"]).status) == 0

    /// A unit that logs when systemd starts, stops or reloads it, and keeps the writable database open while it runs.
    private var unit: String {
        let said = shop.scratch.path("said")
        return """
            [Service]
            Type=notify
            NotifyAccess=all
            ExecStart=/bin/sh -c 'echo start >> \(said); exec python3 -c "import os, signal, sqlite3; c = sqlite3.connect(\\'\(shop.pantry)\\'); c.execute(\\'SELECT * FROM pantry\\').fetchall(); os.system(\\'systemd-notify --ready\\'); signal.pause()"'
            ExecStop=/bin/sh -c 'echo stop >> \(said)'
            ExecReload=/bin/sh -c 'echo reload >> \(said)'
            """
    }

    /// Runs a script under a private manager. All processes that the script starts end with their PID namespace.
    private func underSystemd(_ script: String) throws -> Shell.Ended {
        let bin = try shop.scratch.directory("bin")
        let home = try shop.scratch.directory("home")
        try Shell.must(["mkdir", "-p", "\(home)/.config/systemd/user"])
        try Files.writeNew(Array(unit.utf8), to: "\(home)/.config/systemd/user/web.service")
        // A `systemctl` that passes moult's arguments to the private manager.
        try Files.writeNew(
            Array("#!/bin/sh\nexec /usr/bin/systemctl --user \"$@\"\n".utf8), to: "\(bin)/systemctl", mode: 0o755)
        let text = """
            mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user || exit 90
            export XDG_RUNTIME_DIR=/run/user HOME=\(home) PATH=\(bin):$PATH
            /usr/bin/systemd --user & manager=$!
            until systemctl is-system-running --wait >/dev/null 2>&1; do kill -0 $manager || exit 91; sleep 0.05; done
            \(script)
            """
        return try Shell.run([
            "timeout", "120", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", text,
        ])
    }

    private func apply(_ number: Int, writable: Bool = true) throws -> String {
        "\(try BuiltMoult.path()) apply --store \(shop.root) \(try shop.release(number, writable: writable)) || exit 92"
    }

    /// The unit is stopped before the writable database is replaced, and started afterwards.
    @Test(.enabled(if: canRun, "needs root, systemd and a mount namespace"))
    func `a unit is stopped for a replacement and started again`() throws {
        try shop.set(consumers: ["name": "web", "systemd": "web.service"])
        let ended = try underSystemd(
            "systemctl start web && \(apply(2)) && systemctl is-active web && systemctl stop web && \(apply(3)) && ! systemctl is-active web"
        )
        #expect(ended.status == 0, "\(ended)")
        // Before the second update, the unit was already stopped, so the update does not start it.
        #expect(try shop.said == ["start", "stop", "start", "stop"])
        #expect(try shop.value(shop.pantry, "SELECT release FROM pantry") == "3")
    }

    /// Programs may have a read-only database open during an update, so the unit is not stopped.
    @Test(.enabled(if: canRun, "needs root, systemd and a mount namespace"))
    func `a unit is reloaded and not stopped if only a read-only database changes`() throws {
        try shop.set(consumers: ["name": "web", "systemd": "web.service", "databases": ["food"]])
        let ended = try underSystemd("systemctl start web && \(apply(2, writable: false)) && systemctl is-active web")
        #expect(ended.status == 0, "\(ended)")
        #expect(try shop.said.prefix(2) == ["start", "reload"])
    }

    /// A unit that does not exist cannot have a database open, so it does not block the update.
    @Test(.enabled(if: canRun, "needs root, systemd and a mount namespace"))
    func `an update succeeds although the unit of a consumer is missing`() throws {
        try shop.set(consumers: ["name": "web", "systemd": "nothere.service"])
        let ended = try underSystemd(apply(2))
        #expect(ended.status == 0, "\(ended)")
        #expect(try shop.value(shop.pantry, "SELECT release FROM pantry") == "2")
    }
}
