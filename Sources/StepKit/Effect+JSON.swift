public import MoultBasics

extension Effect {
    /// The effect as it is stored in plans and journals; `init(json:)` reads it back.
    public var json: JSON {
        .record([
            "step": step, "phase": phase.rawValue, "database": database, "mark": mark.rawValue, "text": text,
            "change": change.json,
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
        case .confirm(let text): .record(["do": "confirm", "text": text])
        case .retire(let generation): .record(["do": "retire", "generation": generation])
        case .unlink(let path): .record(["do": "unlink", "path": path])
        case .seal(let member, let size): .record(["do": "seal", "member": member, "size": size])
        case .keepTemplate(let member, let size):
            .record(["do": "keepTemplate", "member": member, "size": size])
        case .linkInPlace(let target, let size): .record(["do": "linkInPlace", "target": target, "size": size])
        case .restore(let generation): .record(["do": "restore", "generation": generation])
        case .installGeneration(let generation): .record(["do": "installGeneration", "generation": generation])
        case .switchCurrent(let to, let from):
            .record(["do": "switchCurrent", "to": to, "from": from])
        case .link(let path, let member): .record(["do": "link", "path": path, "member": member])
        case .create(let path, let size): .record(["do": "create", "path": path, "size": size])
        case .displace(let path, let why, let reason):
            .record(["do": "displace", "path": path, "why": why, "reason": reason.rawValue])
        case .quarantine(let path, let why, let reason):
            .record(["do": "quarantine", "path": path, "why": why, "reason": reason.rawValue])
        case .replace(let new): new.json
        case .migrate(let path, let members, let from, let to, let rows):
            .record([
                "do": "migrate", "path": path, "members": members, "from": from, "to": to,
                "rows": rows.map { $0.map(\.json) },
            ])
        case .restoreRows(let path, let table, let set, let size, let generations):
            .record([
                "do": "restoreRows", "path": path, "table": table, "set": set, "size": size, "generations": generations,
            ])
        case .keep(let why): .record(["do": "keep", "why": why])
        case .attach(let main, let names):
            .record(["do": "attach", "main": main, "names": names])
        case .prove(let methods): .record(["do": "prove", "methods": methods])
        case .custom(let name, let text, let with):
            .record(["do": "custom", "name": name, "text": text, "with": with])
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
