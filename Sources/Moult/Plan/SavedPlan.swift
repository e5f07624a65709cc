internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// A saved plan may be executed once, and only while everything that it relies on is unchanged.
extension Plan {
    func requireUpToDate(in layout: StoreLayout) throws {
        // A store may be reached through several paths.
        guard
            try store == layout.root
                || Files.factsThroughLinks(store)?.isSameFile(Files.factsThroughLinks(layout.root)) == true
        else { throw stale("it was made for the store \(store), not for \(layout.root)") }
        let used = try HistoryReader(layout).first {
            $0.transaction == id && $0.outcome != .cleaned || $0.isLongBefore(self)
        }
        if used?.transaction == id { throw stale("it was already applied") }
        for fact in facts {
            let now = try Plan.Fact.read(fact.path, fact.field)
            if now.value != fact.value {
                throw stale("\(fact.path): \(fact.field) was \(short(fact.value)), and is now \(short(now.value))")
            }
        }
    }

    /// Throws if the steps now plan other effects. The facts are unchanged, so something else has changed: for instance, a
    /// program has opened a database, or this is a different version of moult.
    func requireSameEffects(_ made: Plan) throws {
        let (now, before) = (made.effects.map(\.withoutRows), effects.map(\.withoutRows))
        guard now == before else {
            let difference = zip(now, before).first { $0 != $1 }
            throw stale(
                difference.map { "\"\($1.text)\" would now be \"\($0.text)\"" }
                    ?? "the store now needs different changes")
        }
    }

    private func short(_ value: String) -> String { value.utf8.count == 64 ? String(value.prefix(8)) : value }

    func stale(_ why: String) -> MoultError {
        MoultError(
            .stale, .stale, what: "the plan \(id) is out of date", why: why,
            now: "Create a new plan with: \(moult: "plan", "--output", "FILE", "RELEASE")")
    }
}

extension History.Entry {
    /// Returns whether the entry is more than a day older than the plan. Such an entry cannot be about the plan, even if the
    /// clock was changed.
    func isLongBefore(_ plan: Plan) -> Bool { time.seconds < plan.created.seconds - 24 * 3600 }

    init(of plan: Plan, _ outcome: Outcome, reason: String?) {
        self.init(
            transaction: plan.id, action: plan.action, from: plan.from?.generation, to: plan.to.generation,
            outcome: outcome, reason: reason)
    }
}

extension Change {
    func counting(_ fates: [RowFate]?) -> Change {
        switch self {
        case .replace(var new):
            new.rows = fates ?? []
            return .replace(new)
        case .migrate(let path, let members, let from, let to, _):
            return .migrate(path: path, members: members, from: from, to: to, rows: fates)
        default: return self
        }
    }
}

extension Effect {
    /// The effect without row counts, which change while an app writes.
    fileprivate var withoutRows: Effect {
        var effect = self
        effect.change = change.counting(nil)
        return effect
    }
}
