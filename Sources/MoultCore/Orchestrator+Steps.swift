internal import MoultBasics

extension Orchestrator {
    /// Pins the digest of a step's program in the settings. Nothing is settled before: an unfinished update may need
    /// just that.
    package func trustStep(_ name: String, sha256: String, wait: Int = 0) throws {
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        guard let (steps, step) = try Settings.stepsAsWritten(layout, name) else {
            throw MoultError(
                .settings, what: "\(layout.settings) has no step \(name)", now: "See which there are with: moult steps")
        }
        try Settings.rewrite(layout, "steps", steps.setting(name, to: step.setting("sha256", to: .string(sha256))))
    }
}
