package import MoultBasics
package import StepKit

/// A rule that blocks one release, a range of releases, or all of them.
package struct Hold: Sendable, Equatable {
    /// Matches every release.
    package static let everything = "*"
    /// The reason of a hold if the user gave none for the rollback.
    package static let rolledBack = "rolled back"

    /// A version, a range such as `>=2.1 <3`, or `*`.
    package var release: String
    package var reason: String
    package var since: Timestamp?
    /// The rollback that placed the hold.
    package var transaction: String?

    package init(release: String, reason: String, since: Timestamp?, transaction: String? = nil) {
        (self.release, self.reason, self.since, self.transaction) = (release, reason, since, transaction)
    }

    /// Returns whether a text is a version, a range or `*`.
    package static func isRelease(_ text: String) -> Bool {
        text == everything || Version(text) != nil || VersionRange(text) != nil
    }

    package var coversEveryRelease: Bool { release == Self.everything }

    package func covers(_ version: Version) -> Bool {
        // A complete version means exactly that release, and a range includes the pre-releases within its bounds.
        if coversEveryRelease || release == version.description { return true }
        return Version(release) == nil && VersionRange(release)?.spans(version) == true
    }

    /// The hold, in words: `2.1.0 is on hold`.
    package var subject: String { coversEveryRelease ? "every release is on hold" : "\(release) is on hold" }

    /// The hold with its reason, without a full stop: `2.1.0 is on hold: it crashes`.
    package var sentence: String { reason.isEmpty ? subject : "\(subject): \(reason)" }

    package var json: JSON {
        .record([
            "release": release, "reason": reason, "since": since?.description, "transaction": transaction,
        ])
    }

    /// Reads a hold from a record, or from the settings, in which a hold has no transaction.
    package init(_ fields: Fields, isRecord: Bool = true) throws {
        self.init(
            release: try fields.string("release"), reason: try fields.optionalString("reason") ?? "",
            since: try fields.optionalString("since").flatMap { Timestamp($0) },
            transaction: isRecord ? try fields.optionalString("transaction") : nil)
    }

    init?(json: JSON) {
        guard let release = json["release"]?.string else { return nil }
        self.init(
            release: release, reason: json["reason"]?.string ?? "",
            since: json["since"]?.string.flatMap { Timestamp($0) }, transaction: json["transaction"]?.string)
    }
}
