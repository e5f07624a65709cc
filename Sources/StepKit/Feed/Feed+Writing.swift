package import MoultBasics

extension Feed {
    /// The feed as JSON, with its fields in a fixed order; parsing this JSON gives an equal feed.
    package var json: JSON {
        .record([
            "feed": Self.format, "product": product, "serial": serial, "keys": keyList, "created": created?.description,
            "expires": expires.description, "previous": previous.unlessEmpty, "releases": releases.map(\.json),
        ])
    }
}

extension Feed.Release {
    /// The machines of a rollout.
    package var share: String { Self.share(rollout, groups) }

    package static func share(_ rollout: Int, _ groups: [String]) -> String {
        let share = rollout == 100 ? "all machines" : "\(rollout) % of machines"
        if groups.isEmpty || rollout == 100 { return share }
        return (rollout == 0 ? "the machines" : "\(share) and those") + " of \(groups.joined(separator: ", "))"
    }

    package var json: JSON {
        .record([
            "version": version.description, "sequence": sequence,
            "channel": channel == Self.defaultChannel ? nil : channel,
            "manifest": JSON.record(["file": manifest.name, "size": manifest.size, "sha256": manifest.sha256]),
            "requires": requires.json.unlessEmpty, "rollout": rollout == 100 ? nil : rollout,
            "groups": groups.unlessEmpty, "withdrawn": withdrawn, "onWithdrawn": onWithdrawn?.rawValue,
            "recommendedBy": recommendedBy.unlessEmpty,
            "patches": patches.map { JSON.record(["from": $0.from.description, "file": $0.file]) }.unlessEmpty,
        ])
    }
}
