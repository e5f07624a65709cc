internal import MoultBasics
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
            var findings = try Rollback(context: context).findings
            // A release that is newer than the installed one has the same requirements as in an update.
            if let installed = context.installed, installed.version.precedes(context.release.version) {
                findings += try Requirements(context: context).findings()
            }
            return findings.map { effect(.check, nil, .confirm($0)) }
        }
        var findings = [try VersionOrder(context: context).finding()]
        if context.generation != context.installedGeneration {
            findings += try Requirements(context: context).findings()
        }
        return [effect(.check, nil, .confirm(findings.joined(separator: "; ")))]
    }
}

extension MoultError.Code {
    /// The release must not replace the installed one: it is older, needs a different version of the app or of moult, or
    /// cannot read newer user data.
    static let order = Self(510)
}

extension MoultError {
    static func refusal(what: String, why: String, now: Advice) -> MoultError {
        MoultError(.order, .refused, what: what, why: why, now: now)
    }
}
