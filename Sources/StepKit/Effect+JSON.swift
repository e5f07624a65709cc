public import MoultBasics

extension Effect {
    /// The effect as it is stored in plans and journals; `init(json:)` reads it back.
    public var json: JSON {
        .compact([
            "step": .string(step), "phase": .string(phase.rawValue), "database": .optional(database),
            "mark": .string(mark.rawValue), "text": .string(text), "change": change.json,
        ])
    }

    /// Reads an effect from JSON; `source` names the origin of the JSON in errors.
    public init(json: JSON, source: String) throws {
        let fields = try Fields(json) { place, why, _ in
            MoultError(
                .manifest, what: "\(source): \(place) \(why)", now: "Another version of moult may have written it.")
        }
        guard let phase = try fields.word("phase", Phase.self) else { throw fields.fail("phase", "is missing") }
        self.init(
            step: try fields.string("step"), phase: phase, database: try fields.optionalString("database"),
            try Change(fields.object("change")))
    }
}

extension Change {
    var json: JSON {
        switch self {
        case .confirm(let text): ["do": "confirm", "text": .string(text)]
        case .retire(let generation): ["do": "retire", "generation": .string(generation)]
        case .unlink(let path): ["do": "unlink", "path": .string(path)]
        case .seal(let member, let size): ["do": "seal", "member": .string(member), "size": .size(size)]
        case .keepTemplate(let member, let size):
            ["do": "keepTemplate", "member": .string(member), "size": .size(size)]
        case .linkInPlace(let target, let size): ["do": "linkInPlace", "target": .string(target), "size": .size(size)]
        case .restore(let generation): ["do": "restore", "generation": .string(generation)]
        case .installGeneration(let generation): ["do": "installGeneration", "generation": .string(generation)]
        case .switchCurrent(let to, let from):
            .compact(["do": "switchCurrent", "to": .string(to), "from": .optional(from)])
        case .link(let path, let member): ["do": "link", "path": .string(path), "member": .string(member)]
        case .create(let path, let size): ["do": "create", "path": .string(path), "size": .size(size)]
        case .displace(let path, let why, let reason):
            ["do": "displace", "path": .string(path), "why": .string(why), "reason": .string(reason.rawValue)]
        case .quarantine(let path, let why, let reason):
            ["do": "quarantine", "path": .string(path), "why": .string(why), "reason": .string(reason.rawValue)]
        case .replace(let new): new.json
        case .migrate(let path, let members, let from, let to, let rows):
            .compact([
                "do": "migrate", "path": .string(path), "members": .array(members.map { .string($0) }),
                "from": .size(from), "to": .size(to), "rows": rows.map { .array($0.map(\.json)) },
            ])
        case .restoreRows(let path, let table, let set, let size, let generations):
            [
                "do": "restoreRows", "path": .string(path), "table": .string(table), "set": .string(set),
                "size": .size(size), "generations": .array(generations.map { .string($0) }),
            ]
        case .keep(let why): ["do": "keep", "why": .string(why)]
        case .attach(let main, let names):
            .compact(["do": "attach", "main": .optional(main), "names": .array(names.map { .string($0) })])
        case .prove(let methods): ["do": "prove", "methods": .array(methods.map { .string($0) })]
        case .custom(let name, let text, let with):
            ["do": "custom", "name": .string(name), "text": .string(text), "with": with]
        }
    }

    init(_ fields: Fields) throws {
        let kind = try fields.string("do")
        switch kind {
        case "confirm": self = .confirm(try fields.string("text"))
        case "retire": self = .retire(generation: try fields.string("generation"))
        case "unlink": self = .unlink(path: try fields.string("path"))
        case "seal": self = .seal(member: try fields.string("member"), size: try fields.count("size"))
        case "keepTemplate": self = .keepTemplate(member: try fields.string("member"), size: try fields.count("size"))
        case "linkInPlace": self = .linkInPlace(target: try fields.string("target"), size: try fields.count("size"))
        case "restore": self = .restore(generation: try fields.string("generation"))
        case "installGeneration": self = .installGeneration(generation: try fields.string("generation"))
        case "switchCurrent":
            self = .switchCurrent(to: try fields.string("to"), from: try fields.optionalString("from"))
        case "link": self = .link(path: try fields.string("path"), member: try fields.string("member"))
        case "create": self = .create(path: try fields.string("path"), size: try fields.count("size"))
        case "displace":
            self = .displace(
                path: try fields.string("path"), why: try fields.string("why"),
                reason: try fields.word("reason", KeptReason.self) ?? .reset)
        case "quarantine":
            self = .quarantine(
                path: try fields.string("path"), why: try fields.string("why"),
                reason: try fields.word("reason", KeptReason.self) ?? .reset)
        case "replace": self = .replace(try Replacement(fields))
        case "migrate":
            self = .migrate(
                path: try fields.string("path"), members: try fields.optionalStrings("members") ?? [],
                from: try fields.integer("from"), to: try fields.integer("to"),
                rows: try RowFate.list(fields))
        case "restoreRows":
            self = .restoreRows(
                path: try fields.string("path"), table: try fields.string("table"), set: try fields.string("set"),
                size: try fields.count("size"), generations: try fields.optionalStrings("generations") ?? [])
        case "keep": self = .keep(why: try fields.string("why"))
        case "attach":
            self = .attach(main: try fields.optionalString("main"), names: try fields.optionalStrings("names") ?? [])
        case "prove": self = .prove(try fields.optionalStrings("methods") ?? [])
        case "custom":
            self = .custom(
                name: try fields.string("name"), text: try fields.string("text"), with: fields.json("with") ?? .null)
        default: throw fields.fail("do", "\"\(kind)\" is not a known change")
        }
    }
}
