package import MoultBasics

extension Manifest {
    /// Returns the sealed manifest, with its fields in a fixed order; reading it gives an equal manifest.
    ///
    /// Default values are left out, and so are fields that only drafts have.
    package func sealedJSON() -> JSON {
        .record([
            "manifest": Self.format, "product": product, "version": version.description, "sequence": sequence,
            "created": created?.description, "expires": expires?.description, "notes": notes, "sqlite": sqlite,
            "critical": critical.unlessEmpty, "requires": requires.json.unlessEmpty,
            "bundle": bundle.map { JSON.record(["file": $0.file, "size": $0.size, "sha256": $0.sha256]) },
            "patches": patches.map(\.json).unlessEmpty,
            "databases": JSON.object(databases.map { JSON.Member($0.name, $0.json) }),
            "checks": checks.map {
                JSON.record(["on": $0.on, "sql": $0.sql, "expect": $0.expect.description])
            }.unlessEmpty,
            "budget": JSON.object(
                budget.map { budget in
                    let limits = JSON.record(["shrink": budget.shrink?.written, "grow": budget.grow?.written])
                    return .init("\(budget.database).\(budget.table)", limits)
                }
            ).unlessEmpty,
            "steps": steps.map { use in
                JSON.record([
                    "step": use.step, use.when.rawValue: use.phase.rawValue,
                    "with": use.with == .object([]) ? nil : use.with,
                ])
            }.unlessEmpty,
        ])
    }
}

extension Manifest.Requires {
    var json: JSON { .record(["app": app?.description, "moult": moult?.description, "from": from?.description]) }
}

extension Manifest.Content {
    package var json: JSON { .record(["size": size, "sha256": sha256]) }
}

extension Manifest.Patch {
    fileprivate var json: JSON {
        .record([
            "member": member, "from": from.description, "base": base?.json, "result": result?.json, "file": file,
            "size": size, "sha256": sha256,
        ])
    }
}

extension Database {
    /// The JSON object that describes the database in a sealed manifest.
    var json: JSON {
        .record([
            "kind": kind.rawValue, "member": bundlePath, "size": size, "sha256": sha256,
            "path": path == member ? nil : path, "place": place == .generation ? nil : place.rawValue,
            "verify": verify?.rawValue,
            "proved": proved.map {
                JSON.record(["check": $0.check.rawValue, "sqlite": $0.sqlite, "moult": $0.moult.description])
            },
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
            "migrations": migrations.map {
                JSON.record(["member": $0.member, "size": $0.size, "sha256": $0.sha256])
            }.unlessEmpty,
            "schema": schemaOwner == .release ? nil : schemaOwner.rawValue,
            "compatible": compatible.map {
                JSON.record([
                    "applicationID": $0.applicationID, "userVersionAtLeast": $0.userVersionAtLeast,
                    "userVersionAtMost": $0.userVersionAtMost,
                ])
            },
        ])
    }
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

extension Manifest {
    /// Returns a draft in which every text stands for itself: in a draft, `${NAME}` stands for a value, and `$${` for `${`.
    package static func literalDraft(_ draft: JSON) -> JSON {
        switch draft {
        case .string(let text): .string(text.replacing("${", with: "$${"))
        case .array(let items): .array(items.map(literalDraft))
        case .object(let members): .object(members.map { JSON.Member($0.name, literalDraft($0.value)) })
        default: draft
        }
    }
}
