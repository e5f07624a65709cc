internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

extension StatusReport {
    var json: JSON {
        .compact([
            "store": .string(status.root), "time": .string(Timestamp.now.description),
            "product": .string(status.product),
            "severity": .optional(findings.worst?.rawValue),
            "findings": .array(findings.map(\.json)),
            "app": .optional(status.app?.description), "follow": .string(status.follow.rawValue),
            "installed": .optional(status.current.map { Generation.version(of: $0.name) }),
            "generation": .optional(status.current?.name), "since": .optional(status.since?.description),
            "created": .optional(status.created?.description), "expires": .optional(status.expires?.description),
            "hold": status.holds.holdToShow?.json, "holds": status.holds.json,
            "feed": .optional(status.feed), "known": status.known?.json,
            "keyList": status.keyList.map {
                .compact(["name": .string($0.name), "expires": .optional($0.expires?.description)])
            },
            "trusted": status.keys.map { .array($0.all.map { .string($0) }) },
            "revoked": status.revoked.map {
                ["version": .string($0.version.description), "signers": .array($0.signers.map { .string($0) })]
            },
            "trustedKeys": status.trustedKeys.isEmpty ? nil : .array(status.trustedKeys.map { .string($0) }),
            "unfinished": .array(status.unfinished.updates.map { .string($0) }),
            "workers": .array(status.unfinished.workers.map { .size(Int($0.pid)) }),
            "databases": .array(status.databases.map { $0.json(completing) }),
            "generations": .array(status.generations.map(\.json)),
            "uncarried": status.uncarried.isEmpty ? nil : .array(status.uncarried.map(\.json)),
            "consumers": .array(
                status.consumers.map { consumer in
                    .compact([
                        "name": .string(consumer.name), "by": .string(consumer.by),
                        "databases": consumer.databases.map { .array($0.map { .string($0) }) },
                    ])
                }),
            "laggards": .array(status.laggards.map(\.json)), "guard": .string(status.protection),
            "attempt": status.attempt?.json, "last": status.last?.json, "failure": status.failure?.json,
        ])
    }
}

extension DatabaseState {
    fileprivate func json(_ completing: (Advice) -> Advice) -> JSON {
        .compact([
            "name": .string(database.name), "kind": .string(database.kind.rawValue), "path": .string(path),
            "size": size.map { .size($0) }, "state": .string(state.rawValue), "proof": .optional(proof),
            "checked": database.kind.isSealed ? nil : .string(depth.rawValue), "since": .optional(time?.description),
            "finding": findings.first?.advising(completing).json,
            "notChecked": notChecked.isEmpty ? nil : .array(notChecked.map { .string($0) }),
        ])
    }
}

extension Status.Kept {
    fileprivate var json: JSON {
        [
            "name": .string(name), "version": .string(Generation.version(of: name)), "size": .size(size),
            "current": .bool(isCurrent),
            "holders": .array(holders.map { ["pid": .size(Int($0.pid)), "command": .string($0.command)] }),
        ]
    }
}

extension KnownFeed {
    fileprivate var json: JSON {
        .compact([
            "serial": .size(serial), "created": .optional(created?.description),
            "expires": .string(expires.description), "expired": .bool(isExpired()),
            "available": .optional(newest?.description), "missing": .bool(choice.isMissing),
            "skipped": .array(
                choice.skipped.map { ["version": .string($0.version.description), "why": .string($0.why)] }),
            "withdrawn": .optional(choice.withdrawn), "onWithdrawn": .optional(choice.onWithdrawn?.rawValue),
        ])
    }
}

extension OutdatedReader {
    /// The process, and the files that it has open.
    var json: JSON {
        [
            "pid": .size(Int(process.pid)), "command": .string(process.command),
            "databases": .array(databases.map { .string($0) }),
        ]
    }
}

extension Laggard {
    /// The process, and the release that it reads.
    var json: JSON {
        [
            "pid": .size(Int(process.pid)), "command": .string(process.command), "generation": .string(generation),
        ]
    }
}
