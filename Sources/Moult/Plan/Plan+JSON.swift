package import MoultBasics
internal import StepKit

extension Plan {
    package var json: JSON {
        .compact([
            "format": .size(Self.format), "plan": .string(id), "created": .string(created.description),
            "purpose": .string(purpose.rawValue), "store": .string(store), "product": .string(product),
            "from": from?.json, "to": to.json, "manifest": .optional(manifestPath),
            "origin": origin?.json, "bundle": bundle?.json,
            "reuse": reuse.isEmpty ? nil : .array(reuse.map(\.json)), "trust": .string(trust),
            "request": .compact([
                "follow": .string(request.follow.rawValue), "allowDowngrade": .bool(request.allowDowngrade),
                "app": .optional(request.app?.description), "cacheRoot": .optional(request.cacheRoot),
                "takeOver": request.takeOver.isEmpty ? nil : .array(request.takeOver.sorted().map { .string($0) }),
                "acceptUnpreserved": request.acceptUnpreserved ? true : nil,
                "checkTimeout": request.checkTimeout.map { .size($0) },
                "force": request.force ? true : nil,
            ]),
            "changes": .bool(changesStore), "effects": .array(effects.map(\.json)),
            "consumers": .array(calls.map(\.json)),
            "steps": steps.isEmpty
                ? nil : .array(steps.map { ["step": .string($0.step), "enforced": .string($0.text)] }),
            "needs": .size(needs),
            "facts": .array(
                facts.map { ["path": .string($0.path), "field": .string($0.field), "value": .string($0.value)] }),
            "warnings": .array(warnings.map { .string($0.description) }), "hold": hold?.json,
            "replacedHold": replacedHold?.json,
        ])
    }

    package init(json: JSON, source: String) throws {
        let fields = try Fields(json) { place, why, now in
            MoultError(
                .stale, .refused, what: "\(source) is not a plan: \(place) \(why)",
                now: now ?? "Create a new plan with: \(moult: "plan", "--output", "FILE", "RELEASE")")
        }
        let format = try fields.integer("format")
        guard format == Self.format else {
            throw fields.fail("format", "is \(format), and this version of moult reads \(Self.format)")
        }
        func side(_ part: Fields) throws -> Generation.Reference {
            guard let version = Version(try part.string("version")) else {
                throw part.fail("version", "is not a version")
            }
            let generation = try part.string("generation")
            guard Generation.isName(generation) else {
                throw part.fail("generation", "is not the name of a generation")
            }
            return Generation.Reference(version: version, generation: generation)
        }
        guard let created = Timestamp(try fields.string("created")) else {
            throw fields.fail("created", "is not a time")
        }
        guard let purpose = try fields.word("purpose", PlanContext.Purpose.self) else {
            throw fields.fail("purpose", "is missing")
        }
        // The identifier becomes the name of a directory.
        guard Transaction.isID(try fields.string("plan")) else {
            throw fields.fail("plan", "is not a plan ID")
        }
        let bundle = try fields.optionalObject("bundle")
        let request = try fields.object("request")
        self.init(
            id: try fields.string("plan"), created: created, purpose: purpose, store: try fields.string("store"),
            product: try fields.string("product"), from: try fields.optionalObject("from").map(side),
            to: try side(fields.object("to")), manifestPath: try fields.optionalString("manifest"),
            origin: try fields.optionalObject("origin").map { try Origin($0) },
            bundle: try bundle.map {
                Bundle(
                    path: try $0.string("path"), size: try $0.count("size"),
                    missing: try $0.optionalCount("missing") ?? 0)
            },
            reuse: try fields.objects("reuse").map { try Reuse($0) }, trust: try fields.string("trust"),
            request: Request(
                follow: try request.word("follow", Policy.Follow.self) ?? .newer,
                allowDowngrade: try request.optionalBool("allowDowngrade") ?? false,
                app: try request.optionalString("app").flatMap { Version($0) },
                cacheRoot: try request.optionalString("cacheRoot"),
                takeOver: Set(try request.optionalStrings("takeOver") ?? []),
                acceptUnpreserved: try request.optionalBool("acceptUnpreserved") ?? false,
                checkTimeout: try request.optionalNumber("checkTimeout", in: CheckTime.range),
                force: try request.optionalBool("force") ?? false),
            effects: try (fields.json("effects")?.array ?? []).map { try Effect(json: $0, source: source) },
            calls: try fields.objects("consumers").map { try Call($0) },
            steps: try fields.objects("steps").map {
                Enforcement(step: try $0.string("step"), text: try $0.string("enforced"))
            }, needs: try fields.count("needs"),
            facts: try fields.objects("facts").map {
                Fact(path: try $0.string("path"), field: try $0.string("field"), value: try $0.string("value"))
            },
            warnings: (try fields.optionalStrings("warnings") ?? []).map { Advice($0) },
            hold: try fields.optionalObject("hold").map { try Hold($0) },
            replacedHold: try fields.optionalObject("replacedHold").map { try Hold($0) })
    }
}

extension Plan.Bundle {
    fileprivate var json: JSON {
        .compact(["path": .string(path), "size": .size(size), "missing": missing > 0 ? .size(missing) : nil])
    }
}

extension Plan.Origin {
    fileprivate var json: JSON {
        .compact([
            serial == nil ? "url" : "feed": .string("\(place)"), "serial": serial.map { .size($0) },
            "manifest": .string(manifest), "size": .size(size), "sha256": .string(sha256),
            "then": then.isEmpty ? nil : .array(then.map { .string($0.description) }),
            "notes": notes.isEmpty ? nil : .array(notes.map { .string($0) }),
            "found": found.isEmpty ? nil : .array(found.map { .string("\($0)") }),
        ])
    }

    fileprivate init(_ fields: Fields) throws {
        let url = try fields.optionalString("url")
        self.init(
            place: Address(try url ?? fields.string("feed")), serial: url == nil ? try fields.count("serial") : nil,
            manifest: try fields.string("manifest"), size: try fields.count("size"),
            sha256: try fields.string("sha256"),
            then: (try fields.optionalStrings("then") ?? []).compactMap { Version($0) },
            notes: try fields.optionalStrings("notes") ?? [])
        found = (try fields.optionalStrings("found") ?? []).map { Address($0) }
        if let fault = PlainName.fault(manifest) { throw fields.fail("manifest", "\"\(manifest)\" \(fault)") }
    }
}
