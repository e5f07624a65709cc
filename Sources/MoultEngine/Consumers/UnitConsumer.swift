internal import MoultFiles
internal import MoultStore

extension UnitConsumer: ConsumerChannel {
    var summary: String { "systemd" }

    /// Returns whether the unit is running. A unit that is not running is neither stopped nor started.
    func canRelease(_ call: ConsumerCall) throws -> Bool {
        try Subprocess.run(["systemctl", "is-active", "--quiet", unit], within: call.time).succeeded
    }

    func release(_ call: ConsumerCall) throws { try CommandConsumer.run(["systemctl", "stop", unit], call) }

    func reload(_ call: ConsumerCall) throws {
        let verb = call.wasReleased ? "start" : "try-reload-or-restart"
        try CommandConsumer.run(["systemctl", verb, unit], call)
    }
}
