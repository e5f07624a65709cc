package import MoultBasics
internal import MoultFiles
package import StepKit

/// The releases that must not be installed: `.moult/holds.json`, and a hold in `moult.json`. `moult.json` belongs to the
/// operator, and moult does not change it. The record therefore contains the hold in `moult.json` that it replaced
/// (`overrides`); a different hold there was written later, by the operator or an older moult, and also counts.
package struct Holds: Sendable, Equatable {
    package static let fileName = "holds.json"
    private static let largest = 1 << 20

    /// All holds, oldest first; if the record cannot be read, a single hold on every release.
    package private(set) var all: [Hold]
    package let fault: String?

    private init(_ all: [Hold], fault: String? = nil) { (self.all, self.fault) = (all, fault) }

    /// Reads the holds of a store. If the record cannot be read, every release is blocked, because the record may have named
    /// any release.
    package static func read(_ layout: StoreLayout, _ settings: Settings) -> Holds {
        do {
            guard let bytes = try Files.read(layout.holds, limit: largest) else {
                if try Files.facts(layout.holds) == nil {
                    try requireNoneLost(layout, settings)
                    return Holds([settings.hold].compactMap(\.self))
                }
                throw MoultError(.store, what: "\(layout.holds) is a symlink to a missing file")
            }
            var (holds, overridden) = try parse(bytes, source: layout.holds)
            if let hold = settings.hold, hold != overridden { holds.place(hold) }
            return holds
        } catch {
            let reason = error.problem
            let text = reason.contains(layout.holds) ? reason : "cannot read \(layout.holds): \(reason)"
            return Holds([Hold(release: Hold.everything, reason: text, since: nil)], fault: text)
        }
    }

    /// The number of bytes at the end of the history that are searched for holds. A store that never had a hold has no record
    /// of holds, and reading all of a long history would slow down every command.
    private static let maxSearchedBytes = 256 << 10

    /// Throws if the history has holds, so that their missing record must have been lost: it is written even without holds.
    private static func requireNoneLost(_ layout: StoreLayout, _ settings: Settings) throws {
        let known: [Hold]
        // Without a readable history, nothing is known about a lost record; the history's own fault is reported elsewhere.
        do { known = try HistoryReader(layout).newestHolds(within: maxSearchedBytes) ?? [] } catch is MoultError {
            return
        }
        let lost = known.filter { $0 != settings.hold }
        guard !lost.isEmpty else { return }
        throw MoultError(
            .store, what: "\(layout.holds) is missing",
            why: "the history has \(counted(lost.count, "hold")): \(lost.map(\.release).joined(separator: ", "))")
    }

    private static func parse(_ bytes: [UInt8], source: String) throws -> (Holds, overridden: Hold?) {
        let fields = try Fields(record: bytes, source: source, .store)
        guard try fields.integer("format") == 1 else { throw fields.fail("format", "must be 1") }
        if fields.json("holds") == nil { throw fields.fail("holds", "is missing") }
        let holds = try fields.objects("holds").map { part in
            let hold = try Hold(part)
            if Hold.isRelease(hold.release) { return hold }
            throw part.fail("release", "is not a version or a range")
        }
        return (Holds(holds), try fields.optionalObject("overrides").map { try Hold($0) })
    }

    // MARK: queries

    func covering(_ version: Version) -> [Hold] { all.filter { $0.covers(version) } }
    /// Returns whether a hold is on exactly this release, so that its sentence already says that the release is on hold.
    package func names(_ version: Version) -> Bool { all.contains { $0.release == version.description } }

    /// Returns why a release is blocked, in a few words; nil if it may be installed.
    package func obstacle(to version: Version) -> String? {
        let holds = covering(version)
        if holds.isEmpty { return nil }
        return Self.reasons(holds).map { "it is on hold: \($0)" } ?? "it is on hold"
    }

    /// Returns the error for a blocked release, with the command that removes the hold; nil if the release may be installed.
    package func refusal(of version: Version) -> MoultError? {
        let holds = covering(version)
        guard let first = holds.first else { return nil }
        return MoultError(
            fault == nil ? .held : .refused, .refused,
            what: first.coversEveryRelease ? first.subject : "release \(version) is on hold",
            why: Self.reasons(holds) ?? "no reason was given", now: remedy(holds))
    }

    private static func reasons(_ holds: [Hold]) -> String? {
        holds.map(\.reason).filter { !$0.isEmpty }.unlessEmpty?.joined(separator: "; ")
    }

    /// Like `refusal`, but for a rollback: a hold on every release does not block it, unless the record is damaged.
    func rollbackRefusal(of version: Version) -> MoultError? {
        if fault != nil { return refusal(of: version) }
        return Holds(all.filter { !$0.coversEveryRelease }).refusal(of: version)
    }

    /// Returns how to remove the given holds: `Remove the hold with: moult unhold 2.0.0`.
    package func remedy(_ holds: [Hold]) -> Advice {
        if fault != nil { return "Rebuild the record from the history: \(moult: "recover")" }
        return "Remove the hold\(holds.count == 1 ? "" : "s") with: \(moult: ["unhold"] + holds.map(\.release))"
    }

    /// The hold to show if only one can be shown: a hold on every release, otherwise the newest.
    package var holdToShow: Hold? { all.first(where: \.coversEveryRelease) ?? all.last }
    package func hold(on release: String) -> Hold? { all.first { $0.release == release } }

    // MARK: changes

    /// Adds a hold, and returns the older one on the same releases that it replaces; nil if it replaces none.
    @discardableResult
    package mutating func place(_ hold: Hold) -> Hold? {
        let before = self.hold(on: hold.release)
        all.removeAll { $0.release == hold.release }
        all.append(hold)
        return before
    }

    package mutating func remove(_ isUnwanted: (Hold) -> Bool) { all.removeAll(where: isUnwanted) }
    package mutating func removeAll() { all = [] }

    /// Changes the record, under the store's lock. A damaged record is rebuilt first.
    package static func change(_ layout: StoreLayout, _ body: (inout Holds) throws -> Void) throws {
        let settings = try Settings.read(layout)
        let before = read(layout, settings)
        var holds = before.fault == nil ? before : rebuilt(layout, settings)
        try body(&holds)
        if holds != before { try holds.write(layout, settings) }
    }

    private func write(_ layout: StoreLayout, _ settings: Settings) throws {
        let json = JSON.record(["format": 1, "holds": all.map(\.json), "overrides": settings.hold?.json])
        let bytes = Array(json.pretty.utf8)
        guard bytes.count <= Self.largest / 2 else {
            throw MoultError(
                .store, .refused, what: "\(layout.holds) would be too large",
                why: "the file would contain \(all.count) holds",
                now: "Remove holds with: \(moult: "unhold"), or hold a range of versions.")
        }
        // A rename cannot replace a directory, and moult did not create this one, so it is moved away.
        if try Files.facts(layout.holds)?.kind == .directory {
            try Files.rename(layout.holds, to: "\(layout.holds).damaged-\(Timestamp.now.seconds)")
        }
        // The record is written even without holds, so that its loss is noticed.
        try Files.replace(layout.holds, with: bytes)
    }

    /// Returns the holds according to the history. If some may be missing, every release is on hold until the operator removes
    /// that hold.
    static func rebuilt(_ layout: StoreLayout, _ settings: Settings) -> Holds {
        var holds = Holds([])
        var gap: String?
        do {
            let reader = try HistoryReader(layout)
            if let known = try reader.first(where: { $0.holds != nil })?.holds {
                holds = Holds(known)
                if reader.torn > 0 { gap = "lines of the history cannot be read" }
            } else {
                gap = "the history has no record of holds"
            }
        } catch { gap = "\(error)" }
        if let hold = settings.hold { holds.place(hold) }
        if let gap {
            let reason = "the record of holds was damaged and may be incomplete: \(gap)"
            holds.place(Hold(release: Hold.everything, reason: reason, since: .now))
        }
        return holds
    }

    /// Returns the holds for a line of the history; nil if they cannot be read, because the line would be trusted.
    package static func recorded(_ layout: StoreLayout) throws -> [Hold]? {
        let holds = try read(layout, Settings.read(layout))
        return holds.fault == nil ? holds.all : nil
    }
}

extension History.Entry {
    /// Whether the transaction changed only holds and not the installed release.
    var isAboutHolds: Bool { holds != nil && from == to }
}

package struct Hold: Sendable, Equatable {
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
        .record(["release": release, "reason": reason, "since": since?.description, "transaction": transaction])
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
