internal import MoultBasics
internal import MoultEngine
internal import MoultStore

extension Orchestrator {
    /// Pins the digest of a step's program. An unfinished update is not recovered first, because it may need just that.
    package func trustStep(_ name: String, sha256: String, wait: Int = 0) throws {
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        guard let step = try Settings.written(layout).steps.first(where: { $0.name == name }) else {
            throw MoultError(
                .settings, what: "\(layout.settings) has no step \(name)", now: "To list the steps: moult steps")
        }
        var trusted = TrustedSteps(layout)
        try trusted.pin(name, sha256: sha256, insteadOf: step.sha256, in: layout)
    }
}
