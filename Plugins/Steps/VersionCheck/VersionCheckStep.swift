internal import MoultBasics
internal import MoultSQLite
public import StepKit

/// Check: determines whether this store may install the release after the installed one, with this app and this version of
/// moult.
public struct VersionCheckStep: Step {
    public let name = "version-check"
    public let summary = "compares versions, and checks what the release requires"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        if context.purpose == .reset { return [effect(.check, context.only, .confirm(context.reason))] }
        if context.purpose == .rollback {
            var findings = [try rollback(context)]
            // A release that is newer than the installed one has the same requirements as in an update.
            if let installed = context.installed, installed.version.precedes(context.release.version) {
                findings += try requirements(context)
            }
            return findings.map { effect(.check, nil, .confirm($0)) }
        }
        var findings = [try order(context)]
        if context.generation != context.installedGeneration { findings += try requirements(context) }
        return [effect(.check, nil, .confirm(findings.joined(separator: "; ")))]
    }

    // MARK: the order of releases

    /// Checks whether the release may follow the installed one.
    private func order(_ context: PlanContext) throws -> String {
        let (new, policy) = (context.release, context.policy)
        guard let old = context.installed else { return "first install" }
        if context.generation == context.installedGeneration { return "\(new.version) is installed" }
        let isAllowed = policy.takesOlder || policy.reasonToLeave != nil
        if new.version.precedes(old.version) {
            guard isAllowed else {
                throw refusal(
                    "release \(new.version) is older than the installed \(old.version)",
                    "this store accepts only newer releases",
                    "To install it anyway: \(moult: "apply", "--allow-downgrade"). To roll back instead: \(moult: "rollback")"
                )
            }
            if let reason = policy.reasonToLeave {
                return "installed \(old.version) \(reason), and \(new.version) replaces it"
            }
            return "installed \(old.version) > \(new.version): a downgrade, "
                + (policy.allowDowngrade ? "allowed" : "accepted because \"follow\" is \"match\"")
        }
        guard new.version.ranksWith(old.version) else { return "installed \(old.version) < \(new.version)" }
        guard isAllowed else {
            throw refusal(
                "version \(new.version) is already installed with different content",
                "its manifest differs from that of generation \(context.installedGeneration ?? "")",
                "Publish changed content as a new version, or accept it with --allow-downgrade.")
        }
        return "the content of \(new.version) differs from that of the installed \(old.version)"
    }

    // MARK: requirements

    /// Checks what the release requires of the app, of moult and of the installed release.
    private func requirements(_ context: PlanContext) throws -> [String] {
        let (requires, version) = (context.release.requires, context.release.version)
        func require(_ holds: Bool, _ what: String, _ why: String, _ now: Advice) throws {
            if !holds { throw refusal("release \(version) requires \(what)", why, now) }
        }
        var findings: [String] = []
        if let range = requires.app {
            guard let app = context.policy.appVersion else {
                throw refusal(
                    "release \(version) requires app \(range)", "the store does not know the version of the app",
                    "Specify it with --app VERSION, or set \"app\" in moult.json.")
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

    // MARK: rollback

    /// Checks whether the store can return to a kept generation.
    private func rollback(_ context: PlanContext) throws -> String {
        try context.store.proveSeal(of: context.generation)
        for database in context.release.databases where database.kind.isMigrated {
            try requireReadable(database, context)
        }
        let from = context.installed.map { "\($0.version)" } ?? "nothing"
        return "rollback from \(from) to \(context.release.version), with its verified files"
    }

    /// Throws if the app of the older release could not read the user's data.
    private func requireReadable(_ database: Database, _ context: PlanContext) throws {
        guard let known = database.knownUserVersion, case .file = try context.store.look(database.path) else { return }
        let path = context.store.path(database.path)
        let version: Int64
        do { version = try NonInvasiveReader.into(path) { try $0.int("PRAGMA user_version") } } catch {
            // A file that is not a database has no version, so it does not prevent the rollback.
            if (error as? MoultError)?.outcome == .busy { throw error }
            return
        }
        if version > known {
            throw refusal(
                "\(path) is too new for release \(context.release.version)",
                "the user_version of the database is \(version), and the release supports at most \(known)",
                "Keep the installed release, or apply a newer one.")
        }
    }

    /// The release must not replace the installed one: it is older, needs a different version of the app or of moult, or
    /// cannot read newer user data.
    static let order = MoultError.Code(510)

    private func refusal(_ what: String, _ why: String, _ now: Advice) -> MoultError {
        MoultError(Self.order, .refused, what: what, why: why, now: now)
    }
}
