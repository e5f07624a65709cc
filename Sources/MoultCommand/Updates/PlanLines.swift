internal import Moult
internal import MoultBasics
internal import StepKit

/// The lines of a plan: a mark, the phase, the database, and the change.
struct PlanLines: Sendable {
    let effects: [Effect]
    private let databaseWidth: Int
    /// The sources of members that do not come from the bundle.
    private let sources: [String: String]

    init(_ plan: Plan, details: Bool) {
        effects = plan.effects.filter { details || !$0.isDetail }
        var sources: [String: String] = [:]
        for reuse in plan.reuse {
            let version = reuse.base.map { Generation.version(of: $0.generation) }
            let size = ByteCount(reuse.patches.reduce(0) { $0 + $1.size })
            sources[reuse.member] =
                reuse.patches.isEmpty
                ? "unchanged, the file\(version.map { " of \($0)" } ?? "")"
                : "by \(counted(reuse.patches.count, "patch", "patches")) of \(size)\(version.map { " on \($0)" } ?? "")"
        }
        self.sources = sources
        databaseWidth = max(10, effects.compactMap(\.database).map(displayWidth).max() ?? 0)
    }

    /// Returns the lines of one effect. `before` has the same width for all effects; `note` precedes the change.
    func lines(
        of effect: Effect, after before: StyledText = "", note: String = "", on terminal: Terminal
    ) -> [StyledText] {
        let phase = effect.phase.rawValue
        var start: StyledText = "\(before)\(effect.mark.rawValue, effect.mark.style) \(phase)"
        start += spaces(9 - phase.count)
        if let database = effect.database {
            // For a change to a database, the name is in a separate column; a remark on the database starts with the name.
            start +=
                effect.mark == .none
                ? "\(database): " : StyledText(database) + spaces(databaseWidth + 2 - displayWidth(database))
        }
        var words = effect.text
        if case .seal(let member, let size) = effect.change, let source = sources[member] {
            words = "\(ByteCount(size)) \(source), read-only"
        }
        let text = StyledText(note + words, effect.mark == .keeps ? .dim : nil)
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
    /// Writes the title of a plan on one line: `dailyvalue 2.0.0 -> 2.1.0   (store ./store, bundle 83.8 MiB, not signed)`.
    mutating func title(of plan: Plan, store: String) {
        let name = plan.product.split(separator: ".").last.map { String($0) } ?? plan.product
        let from = plan.from.map { "\($0.version)" } ?? "nothing"
        let what = plan.reset.map { "reset of \($0.database) in \(name) \(plan.to.version)" }
        let title: StyledText = "\(what ?? "\(name) \(from) -> \(plan.to.version)", .heading)"
        let facts = [
            "store \(store)", plan.purpose == .rollback ? "rollback" : nil,
            plan.bundle.map { "bundle \(ByteCount($0.size))" },
            plan.patches.isEmpty ? nil : "patches \(ByteCount(plan.patchBytes)) instead of the bundle", plan.trust,
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
