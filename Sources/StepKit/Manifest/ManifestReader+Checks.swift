internal import MoultBasics

extension ManifestReader {
    mutating func checks(_ fields: Fields) throws -> [Manifest.GoldenQuery] {
        try fields.objects("checks").map { part in
            let text = try part.string("expect")
            guard let expect = Expectation(text) else {
                throw part.fail(
                    "expect", "\"\(text)\" is not an expectation",
                    now:
                        "Write the expected value, or an operator and a value, for example: \"52\", \"= 5\", \"!= 0\" or "
                        + "\">= 7000\" (>=, <=, > and < need a number).")
            }
            let check = Manifest.GoldenQuery(on: try part.string("on"), sql: try part.string("sql"), expect: expect)
            try done(part)
            return check
        }
    }

    mutating func budget(_ fields: Fields) throws -> [Manifest.Budget] {
        try fields.named("budget").map { name, part in
            func allowance(_ key: String) throws -> Allowance? {
                guard let text = try part.optionalString(key) else { return nil }
                guard let allowance = Allowance(text) else {
                    throw part.fail(
                        key, "\"\(text)\" is not an allowance",
                        now: "For example: \"20%\", \"0.5%\" or \"100\" (rows).")
                }
                return allowance
            }
            guard let dot = name.firstIndex(of: "."), name.index(after: dot) < name.endIndex else {
                throw fields.fail(
                    "budget.\(name)", "does not name a table",
                    now: "Write DATABASE.TABLE, for example food.items.")
            }
            let budget = Manifest.Budget(
                database: String(name[..<dot]), table: String(name[name.index(after: dot)...]),
                shrink: try allowance("shrink"), grow: try allowance("grow"))
            try done(part)
            return budget
        }
    }

    mutating func steps(_ fields: Fields) throws -> [Manifest.StepUse] {
        try fields.objects("steps").map { part in
            let before = try part.word("before", Phase.self)
            let after = try part.word("after", Phase.self)
            guard let phase = before ?? after, before == nil || after == nil else {
                throw failure(
                    part.place, "has \(before == nil ? "neither \"before\" nor" : "both \"before\" and") \"after\"",
                    "Choose one phase, for example \"after\": \"copy\".")
            }
            let with = part.json("with") ?? .object([])
            guard with.members != nil else { throw part.fail("with", "must be an object, but is \(with.kind)") }
            let step = Manifest.StepUse(
                step: try plainName(part, "step"), when: before == nil ? .after : .before, phase: phase, with: with)
            try done(part)
            return step
        }
    }
}
