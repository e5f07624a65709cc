internal import MoultBasics
package import MoultCore
package import StepKit

/// The lines of a plan: a sign, the phase, the database, and what becomes of it.
package struct PlanLines: Sendable {
    /// The effects that have a line.
    package let effects: [Effect]
    private let databaseWidth: Int

    package init(_ plan: Plan, details: Bool) {
        effects = plan.effects.filter { details || !$0.isDetail }
        databaseWidth = max(10, effects.compactMap(\.database).map(displayWidth).max() ?? 0)
    }

    /// The lines of one effect; `before` is of the same width for all of them, `note` comes before what becomes of it.
    package func lines(
        of effect: Effect, after before: StyledText = "", note: String = "", on terminal: Terminal
    ) -> [StyledText] {
        let phase = effect.phase.rawValue
        var start: StyledText = "\(before)\(effect.mark.rawValue, effect.mark.style) \(phase)"
        start += spaces(9 - phase.count)
        if let database = effect.database {
            // What changes a database has its name in a column of its own; what is only said of it begins with it.
            start +=
                effect.mark == .none
                ? "\(database): " : StyledText(database) + spaces(databaseWidth + 2 - displayWidth(database))
        }
        let text = StyledText(note + effect.text, effect.mark == .keeps ? .dim : nil)
        let parts = terminal.width.map { text.wrapped(to: max($0 - start.width, 20)) } ?? [text]
        return [start + parts[0]] + parts.dropFirst().map { spaces(start.width) + $0 }
    }
}

extension Effect.Mark {
    var style: Style? {
        switch self {
        case .none: nil
        case .adds: .added
        case .removes: .removed
        case .changes: .changed
        case .keeps: .dim
        }
    }
}

extension Page {
    /// What a plan is about, in one line: `dailyvalue 2.0.0 -> 2.1.0   (store ./store, bundle 83.8 MiB, not signed)`.
    mutating func title(of plan: Plan, store: String) {
        let name = plan.product.split(separator: ".").last.map { String($0) } ?? plan.product
        let from = plan.from.map { "\($0.version)" } ?? "nothing"
        let what = plan.reset.map { "reset of \($0.database) in \(name) \(plan.to.version)" }
        let title: StyledText = "\(what ?? "\(name) \(from) -> \(plan.to.version)", .heading)"
        let facts = [
            "store \(store)", plan.purpose == .rollback ? "rollback" : nil,
            plan.bundle.map { "bundle \(ByteCount($0.size))" }, plan.trust,
        ]
        let origin: StyledText = "\("(\(facts.compactMap(\.self).joined(separator: ", ")))", .dim)"
        if title.width + 3 + origin.width <= terminal.width ?? .max {
            line(title + spaces(3) + origin)
        } else {
            line(title)
            wrapped(origin, indent: 2)
        }
        line()
    }
}
