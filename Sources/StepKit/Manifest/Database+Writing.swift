internal import MoultBasics

extension Database {
    /// The JSON object that describes the database in a sealed manifest.
    var json: JSON {
        .compact([
            "kind": .string(kind.rawValue),
            "member": .string(bundlePath),
            "size": .size(size),
            "sha256": .string(sha256),
            "path": path == member ? nil : .string(path),
            "place": place == .generation ? nil : .string(place.rawValue),
            "verify": .optional(verify?.rawValue),
            "proved": proved?.json,
            "attach": .unlessEmpty([
                "as": attach.alias == name ? nil : .string(attach.alias), "group": .optional(attach.group),
                "qualified": attach.isQualified ? true : nil,
            ]),
            "identity": .unlessEmpty([
                "applicationID": .optional(identity.applicationID), "userVersion": .optional(identity.userVersion),
                "schema": .optional(identity.schema), "encoding": .optional(identity.encoding),
            ]),
            // `pack` without a draft takes the decision from the previous release, so an empty list is one, too.
            "preserve": kind.isReplaced ? .array(preserve.map(\.json)) : nil,
            "unpreserved": unpreserved == .refuse ? nil : .string(unpreserved.rawValue),
            "migrations": .unlessEmpty(migrations.map(\.json)),
            "schema": schemaOwner == .release ? nil : .string(schemaOwner.rawValue),
            "compatible": compatible?.json,
        ])
    }
}

extension Database.Proof {
    fileprivate var json: JSON {
        ["check": .string(check.rawValue), "sqlite": .string(sqlite), "moult": .string(moult.description)]
    }
}

extension Database.Preserve {
    fileprivate var json: JSON {
        .compact([
            "table": .string(table),
            "where": .optional(`where`),
            "onConflict": onConflict == .keepUser ? nil : .string(onConflict.rawValue),
            "onReject": onReject == .block ? nil : .string(onReject.rawValue),
            "columns": .unlessEmpty(columns),
        ])
    }
}

extension Database.Migration {
    fileprivate var json: JSON {
        ["member": .string(member), "size": .size(size), "sha256": .string(sha256)]
    }
}

extension Database.Compatible {
    fileprivate var json: JSON {
        .compact([
            "applicationID": .optional(applicationID), "userVersionAtLeast": .optional(userVersionAtLeast),
            "userVersionAtMost": .optional(userVersionAtMost),
        ])
    }
}
