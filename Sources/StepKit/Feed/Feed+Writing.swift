package import MoultBasics

extension Feed {
    /// The feed as JSON, with its fields in a fixed order; parsing this JSON gives an equal feed.
    package var json: JSON {
        .compact([
            "feed": .size(Self.format), "product": .string(product), "serial": .size(serial),
            "keys": keyList.map { .size($0) }, "created": .optional(created?.description),
            "expires": .string(expires.description),
            "previous": previous.isEmpty ? nil : .array(previous.map { .string($0) }),
            "releases": .array(releases.map(\.json)),
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
        let ranges = JSON.compact([
            "app": .optional(requires.app?.description), "moult": .optional(requires.moult?.description),
            "from": .optional(requires.from?.description),
        ])
        return .compact([
            "version": .string(version.description), "sequence": .size(sequence),
            "channel": channel == Self.defaultChannel ? nil : .string(channel),
            "manifest": [
                "file": .string(manifest.name), "size": .size(manifest.size), "sha256": .string(manifest.sha256),
            ],
            "requires": ranges.members?.isEmpty == true ? nil : ranges,
            "rollout": rollout == 100 ? nil : .size(rollout),
            "groups": groups.isEmpty ? nil : .array(groups.map { .string($0) }), "withdrawn": .optional(withdrawn),
            "onWithdrawn": .optional(onWithdrawn?.rawValue),
            "recommendedBy": recommendedBy.isEmpty ? nil : .array(recommendedBy.map { .string($0) }),
            "patches": patches.isEmpty
                ? nil
                : .array(patches.map { ["from": .string($0.from.description), "file": .string($0.file)] }),
        ])
    }
}
