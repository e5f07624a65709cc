internal import MoultBasics

extension Database {
    /// The JSON object that describes the database in a sealed manifest.
    var json: JSON {
        .record([
            "kind": kind.rawValue, "member": bundlePath, "size": size, "sha256": sha256,
            "path": path == member ? nil : path, "place": place == .generation ? nil : place.rawValue,
            "verify": verify?.rawValue, "proved": proved?.json,
            "attach": JSON.record([
                "as": attach.alias == name ? nil : attach.alias, "group": attach.group,
                "qualified": attach.isQualified ? true : nil,
            ]).unlessEmpty,
            "identity": JSON.record([
                "applicationID": identity.applicationID, "userVersion": identity.userVersion,
                "schema": identity.schema, "encoding": identity.encoding,
            ]).unlessEmpty,
            // `pack` without a draft takes the decision from the previous release, so an empty list is one, too.
            "preserve": kind.isReplaced ? preserve.map(\.json) : nil,
            "unpreserved": unpreserved == .refuse ? nil : unpreserved.rawValue,
            "migrations": migrations.map(\.json).unlessEmpty,
            "schema": schemaOwner == .release ? nil : schemaOwner.rawValue, "compatible": compatible?.json,
        ])
    }
}

extension Database.Proof {
    fileprivate var json: JSON { .record(["check": check.rawValue, "sqlite": sqlite, "moult": moult.description]) }
}

extension Database.Preserve {
    fileprivate var json: JSON {
        .record([
            "table": table, "where": `where`, "onConflict": onConflict == .keepUser ? nil : onConflict.rawValue,
            "onReject": onReject == .block ? nil : onReject.rawValue,
            "columns": JSON.object(columns.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })
                .unlessEmpty,
        ])
    }
}

extension Database.Migration {
    fileprivate var json: JSON { .record(["member": member, "size": size, "sha256": sha256]) }
}

extension Database.Compatible {
    fileprivate var json: JSON {
        .record([
            "applicationID": applicationID, "userVersionAtLeast": userVersionAtLeast,
            "userVersionAtMost": userVersionAtMost,
        ])
    }
}
