package import MoultBasics

extension Manifest {
    /// Returns the sealed manifest, with its fields in a fixed order; reading it gives an equal manifest.
    ///
    /// Default values are left out, and so are fields that only drafts have.
    package func sealedJSON() -> JSON {
        .record([
            "manifest": Self.format, "product": product, "version": version.description, "sequence": sequence,
            "created": created?.description, "expires": expires?.description, "notes": notes, "sqlite": sqlite,
            "critical": critical.unlessEmpty,
            "requires": requires.json.unlessEmpty, "bundle": bundle?.json, "patches": patches.map(\.json).unlessEmpty,
            "databases": JSON.object(databases.map { JSON.Member($0.name, $0.json) }),
            "checks": checks.map(\.json).unlessEmpty, "budget": JSON.object(budget.map(\.member)).unlessEmpty,
            "steps": steps.map(\.json).unlessEmpty,
        ])
    }
}

extension Manifest.Requires {
    var json: JSON { .record(["app": app?.description, "moult": moult?.description, "from": from?.description]) }
}

extension Manifest.Bundle {
    fileprivate var json: JSON { .record(["file": file, "size": size, "sha256": sha256]) }
}

extension Manifest.Patch {
    fileprivate var json: JSON {
        .record([
            "member": member, "from": from.description, "base": base?.json, "result": result?.json, "file": file,
            "size": size, "sha256": sha256,
        ])
    }
}

extension Manifest.Content {
    package var json: JSON { .record(["size": size, "sha256": sha256]) }
}

extension Manifest.GoldenQuery {
    fileprivate var json: JSON { .record(["on": on, "sql": sql, "expect": expect.description]) }
}

extension Manifest.Budget {
    fileprivate var member: JSON.Member {
        JSON.Member(
            "\(database).\(table)",
            .record(["shrink": shrink?.written, "grow": grow?.written]))
    }
}

extension Manifest.StepUse {
    fileprivate var json: JSON {
        .record(["step": step, when.rawValue: phase.rawValue, "with": with == .object([]) ? nil : with])
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
