package import MoultBasics

extension Manifest {
    /// Returns the sealed manifest, with its fields in a fixed order; reading it gives an equal manifest.
    ///
    /// Default values are left out, and so are fields that only drafts have.
    package func sealedJSON() -> JSON {
        .compact([
            "manifest": .size(Self.format),
            "product": .string(product),
            "version": .string(version.description),
            "sequence": .size(sequence),
            "created": .optional(created?.description),
            "expires": .optional(expires?.description),
            "notes": .optional(notes),
            "sqlite": .optional(sqlite),
            "critical": .unlessEmpty(critical.map { .string($0) }),
            "requires": .unlessEmpty([
                "app": .optional(requires.app?.description), "moult": .optional(requires.moult?.description),
                "from": .optional(requires.from?.description),
            ]),
            "bundle": bundle?.json,
            "patches": .unlessEmpty(patches.map(\.json)),
            "databases": .object(databases.map { JSON.Member($0.name, $0.json) }),
            "checks": .unlessEmpty(checks.map(\.json)),
            "budget": budget.isEmpty ? nil : .object(budget.map(\.member)),
            "steps": .unlessEmpty(steps.map(\.json)),
        ])
    }
}

extension JSON {
    /// Returns a list; nil if it is empty.
    static func unlessEmpty(_ values: [JSON]) -> JSON? { values.isEmpty ? nil : .array(values) }

    /// Returns an object with the members that have a value; nil if none has.
    static func unlessEmpty(_ members: KeyValuePairs<String, JSON?>) -> JSON? {
        let object = JSON.compact(members)
        return object.members?.isEmpty == true ? nil : object
    }

    /// Returns an object with the texts, ordered by name.
    static func unlessEmpty(_ texts: [String: String]) -> JSON? {
        texts.isEmpty ? nil : .object(texts.sorted { $0.key < $1.key }.map { Member($0.key, .string($0.value)) })
    }

    static func optional(_ value: Int?) -> JSON? { value.map { .size($0) } }
}

extension Manifest.Bundle {
    fileprivate var json: JSON {
        ["file": .string(file), "size": .size(size), "sha256": .string(sha256)]
    }
}

extension Manifest.Patch {
    fileprivate var json: JSON {
        .compact([
            "member": .string(member), "from": .string(from.description), "base": base?.json, "result": result?.json,
            "file": .string(file), "size": .size(size), "sha256": .string(sha256),
        ])
    }
}

extension Manifest.Content {
    package var json: JSON { ["size": .size(size), "sha256": .string(sha256)] }
}

extension Manifest.GoldenQuery {
    fileprivate var json: JSON {
        ["on": .string(on), "sql": .string(sql), "expect": .string(expect.description)]
    }
}

extension Manifest.Budget {
    fileprivate var member: JSON.Member {
        JSON.Member(
            "\(database).\(table)",
            .compact(["shrink": .optional(shrink?.written), "grow": .optional(grow?.written)]))
    }
}

extension Manifest.StepUse {
    fileprivate var json: JSON {
        .compact([
            "step": .string(step), when.rawValue: .string(phase.rawValue), "with": with == .object([]) ? nil : with,
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
