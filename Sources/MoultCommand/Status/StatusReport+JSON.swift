internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

extension StatusReport {
    var json: JSON {
        .record([
            "store": status.root, "time": Timestamp.now.description, "product": status.product,
            "severity": findings.worst?.rawValue, "findings": findings.map(\.json), "app": status.app?.description,
            "follow": status.follow.rawValue, "installed": status.current.map { Generation.version(of: $0.name) },
            "generation": status.current?.name, "since": status.since?.description,
            "created": status.created?.description, "expires": status.expires?.description,
            "hold": status.holds.holdToShow?.json, "holds": status.holds.json, "feed": status.feed,
            "known": status.known?.json,
            "keyList": status.keyList.map { JSON.record(["name": $0.name, "expires": $0.expires?.description]) },
            "trusted": status.keys.map(\.all),
            "revoked": status.revoked.map { JSON.record(["version": $0.version.description, "signers": $0.signers]) },
            "trustedKeys": status.trustedKeys.unlessEmpty, "unfinished": status.unfinished.updates,
            "workers": status.unfinished.workers.map(\.pid),
            "databases": status.databases.map { $0.json(completing) }, "generations": status.generations.map(\.json),
            "uncarried": status.uncarried.map(\.json).unlessEmpty,
            "consumers": status.consumers.map { consumer in
                JSON.record(["name": consumer.name, "by": consumer.by, "databases": consumer.databases])
            },
            "laggards": status.laggards.map(\.json), "guard": status.protection, "attempt": status.attempt?.json,
            "last": status.last?.json, "failure": status.failure?.json,
        ])
    }
}

extension DatabaseState {
    fileprivate func json(_ completing: (Advice) -> Advice) -> JSON {
        .record([
            "name": database.name, "kind": database.kind.rawValue, "path": path, "size": size, "state": state.rawValue,
            "proof": proof, "checked": database.kind.isSealed ? nil : depth.rawValue, "since": time?.description,
            "finding": findings.first?.advising(completing).json, "notChecked": notChecked.unlessEmpty,
        ])
    }
}

extension Status.Kept {
    fileprivate var json: JSON {
        .record([
            "name": name, "version": Generation.version(of: name), "size": size, "current": isCurrent,
            "holders": holders.map { JSON.record(["pid": $0.pid, "command": $0.command]) },
        ])
    }
}

extension KnownFeed {
    fileprivate var json: JSON {
        .record([
            "serial": serial, "created": created?.description, "expires": expires.description, "expired": isExpired(),
            "available": newest?.description, "missing": choice.isMissing,
            "skipped": choice.skipped.map { JSON.record(["version": $0.version.description, "why": $0.why]) },
            "withdrawn": choice.withdrawn, "onWithdrawn": choice.onWithdrawn?.rawValue,
        ])
    }
}

extension Holders.OutdatedReader {
    /// The process, and the files that it has open.
    var json: JSON { .record(["pid": process.pid, "command": process.command, "databases": databases]) }
}

extension Laggard {
    /// The process, and the release that it reads.
    var json: JSON { .record(["pid": process.pid, "command": process.command, "generation": generation]) }
}
