internal import MoultBasics
internal import MoultPublish
internal import StepKit

/// The output of `publish --dry-run`, and what `publish` shows at a terminal before it asks.
extension PublishPreview: Report {
    func write(to page: inout Page) {
        let from = serialBefore.map { "serial \($0) -> \(serial)" } ?? "new feed, serial \(serial)"
        page.wrapped("\(feed, .heading)  \(from), valid until \(expires.text(for: page.terminal))")
        for entry in entries { page.wrapped(line(entry), indent: 2) }
        for file in patchesAdded { page.line("  \("+", .added) \(file)") }
        for file in patchesRemoved { page.line("  \("-", .removed) \(file)") }
        if entries.isEmpty, patchesAdded.isEmpty, patchesRemoved.isEmpty {
            page.line("  \("=", .dim) no release changes")
        }
        if !signedAgain.isEmpty {
            page.wrapped("the new keys also sign \(signedAgain.map(\.description).joined(separator: ", "))", indent: 2)
        }
        if let list = keyList, let expires = keysExpire {
            page.line("  keys of \(list), valid until \(expires.text(for: page.terminal))")
        }
        for note in takenIn { page.wrapped("taken in from a feed that was overwritten: \(note)", indent: 2) }
        for warning in warnings { page.wrapped("\("!", .warning) \(warning)", indent: 2) }
    }

    private func before(_ entry: PublishPreview.Entry) -> StyledText {
        guard let before = entry.before else { return "" }
        return before.channel == entry.release.channel && before.groups.isEmpty
            ? "\("\(before.rollout)") %" : "for \(before.audience)"
    }

    private func line(_ entry: PublishPreview.Entry) -> StyledText {
        let (version, audience) = ("\(entry.release.version)", entry.release.audience)
        return switch entry.change {
        case .added: "\("+", .added) \(version) for \(audience)"
        case .changed: "\("~", .changed) \(version) for \(audience), before \(before(entry))"
        case .withdrawn:
            "\("-", .removed) \(version) is withdrawn: \(entry.release.withdrawn ?? "")\(entry.release.onWithdrawn.clause)"
        case .removed: "\("-", .removed) \(version) leaves the feed"
        }
    }

    var json: JSON {
        .record([
            "feed": feed, "serial": serial, "serialBefore": serialBefore, "expires": expires.description,
            "keyList": keyList, "keysExpire": keysExpire?.description,
            "entries": entries.map { entry in
                JSON.record([
                    "change": entry.change.rawValue, "version": entry.release.version.description,
                    "channel": entry.release.channel, "rollout": entry.release.rollout,
                    "groups": entry.release.groups.unlessEmpty, "rolloutBefore": entry.before.map(\.rollout),
                    "channelBefore": entry.before?.channel, "app": entry.release.requires.app?.description,
                    "withdrawn": entry.release.withdrawn, "onWithdrawn": entry.release.onWithdrawn?.rawValue,
                ])
            }, "patchesAdded": patchesAdded, "patchesRemoved": patchesRemoved,
            "signedAgain": signedAgain.map(\.description), "takenIn": takenIn, "warnings": warnings.map(\.description),
        ])
    }
}

extension Feed.OnWithdrawn? {
    /// The publisher's recommendation, at the end of a line about the withdrawal.
    var clause: String {
        switch self {
        case nil: ""
        case .keep: "; stores that have it keep it"
        case .rollback: "; stores that have it roll back"
        case .newest: "; stores that have it install the newest release of the feed"
        }
    }
}

extension Feed.Release {
    /// Whether every store gets the release.
    var isForAll: Bool { rollout == 100 && channel == Self.defaultChannel && requires.app == nil }

    var audience: String {
        let app = requires.app.map { ", app \($0)" } ?? ""
        return channel == Self.defaultChannel ? "\(share)\(app)" : "\(share) that follow \(channel)\(app)"
    }
}
