internal import MoultBasics
internal import StepKit

/// What an operator should know about a release although it does not stop it.
enum Warnings {
    static func of(_ manifest: Manifest, in context: PlanContext) throws -> [String] {
        var warnings: [String] = []
        if let expires = manifest.expires, expires < context.policy.now {
            warnings.append("release \(manifest.version) expired on \(expires)")
        }
        return warnings
    }

    /// A name that no release knows is most likely a slip, and its consumer would never be called.
    static func of(_ consumers: [Consumer], _ manifest: Manifest, _ installed: Manifest?) -> [String] {
        consumers.flatMap { consumer in
            (consumer.databases ?? []).filter { manifest.database($0) == nil && installed?.database($0) == nil }.map {
                "the consumer \(consumer.name) is concerned with \"\($0)\", which release \(manifest.version) does not have"
            }
        }
    }
}
