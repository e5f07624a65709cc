internal import MoultBasics
internal import StepKit

/// Checks what a release requires of the app, of moult and of the installed release.
struct Requirements {
    let context: PlanContext

    func findings() throws -> [String] {
        let requires = context.release.requires
        let version = context.release.version
        var findings: [String] = []
        if let range = requires.app {
            guard let app = context.policy.appVersion else {
                throw MoultError.refusal(
                    what: "release \(version) requires app \(range)",
                    why: "the store does not know the version of the app",
                    now: "Specify it with --app VERSION, or set \"app\" in moult.json.")
            }
            try require(
                range.contains(app), "app \(range)", "the app is \(app)", "Install a matching version of the app first."
            )
            findings.append("app \(app) satisfies \(range)")
        }
        if let range = requires.moult {
            let moult = context.policy.moultVersion
            try require(
                range.contains(moult), "moult \(range)", "this is moult \(moult)",
                "Install a matching version of moult.")
        }
        // The requirements concern the publisher's own releases, and not one that a thief has signed.
        if let range = requires.from, let installed = context.installed?.version, context.policy.reasonToLeave == nil {
            try require(
                range.contains(installed), "an installed version \(range)", "\(installed) is installed",
                "First apply a release in that range.")
            findings.append("installed \(installed) satisfies \(range)")
        }
        return findings
    }

    private func require(_ holds: Bool, _ what: String, _ why: String, _ now: Advice) throws {
        if holds { return }
        throw MoultError.refusal(what: "release \(context.release.version) requires \(what)", why: why, now: now)
    }
}
