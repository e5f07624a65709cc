internal import MoultBasics
internal import StepKit

/// Checks whether a release may follow the installed one.
struct VersionOrder {
    let context: PlanContext

    private var new: Manifest { context.release }
    private var downgradeAllowed: Bool {
        context.policy.follow == .match || context.policy.allowDowngrade || context.policy.reasonToLeave != nil
    }

    func finding() throws -> String {
        guard let old = context.installed else { return "first install" }
        if context.generation == context.installedGeneration { return "\(new.version) is installed" }
        if new.version.precedes(old.version) { return try downgrade(from: old) }
        if new.version.ranksWith(old.version) { return try sameVersion(as: old) }
        return "installed \(old.version) < \(new.version)"
    }

    private func downgrade(from old: Manifest) throws -> String {
        guard downgradeAllowed else {
            throw MoultError.refusal(
                what: "release \(new.version) is older than the installed \(old.version)",
                why: "this store accepts only newer releases",
                now:
                    "To install it anyway: \(moult: "apply", "--allow-downgrade"). To roll back instead: \(moult: "rollback")"
            )
        }
        if let reason = context.policy.reasonToLeave {
            return "installed \(old.version) \(reason), and \(new.version) replaces it"
        }
        return "installed \(old.version) > \(new.version): a downgrade, "
            + (context.policy.allowDowngrade ? "allowed" : "accepted because \"follow\" is \"match\"")
    }

    private func sameVersion(as old: Manifest) throws -> String {
        guard downgradeAllowed else {
            throw MoultError.refusal(
                what: "version \(new.version) is already installed with different content",
                why: "its manifest differs from that of generation \(context.installedGeneration ?? "")",
                now: "Publish changed content as a new version, or accept it with --allow-downgrade.")
        }
        return "the content of \(new.version) differs from that of the installed \(old.version)"
    }
}
