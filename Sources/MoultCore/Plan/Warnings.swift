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
}
