internal import MoultBasics
internal import StepKit

/// Which kept generation a rollback goes to.
struct RollbackTarget {
    let layout: StoreLayout
    let current: Generation

    func choose(_ wanted: String?) throws -> String {
        let all = try Generation.names(layout).filter { $0 != current.name }
        if let wanted, !all.isEmpty { return try named(wanted, among: all) }
        // Files from before moult come back only if the operator names them.
        let kept = all.filter { !$0.hasPrefix(Generation.adopted) }
        guard !kept.isEmpty else {
            if !all.isEmpty {
                throw MoultError(
                    .refused, .refused, what: "there is no release to roll back to",
                    why: "only the files from before moult are kept: \(all.joined(separator: ", "))",
                    now: "To bring those back: moult rollback --to \(all[0])")
            }
            throw MoultError(
                .refused, .refused, what: "there is nothing to roll back to",
                why: "\(current.name) is the only generation of \(layout.root)",
                now: "Bring an older release in: moult apply MANIFEST --allow-downgrade")
        }
        // What was in service before, as the history tells it; else the highest version below the present one.
        // A reset leaves the generation as it is.
        let before = try HistoryReader(layout).first {
            $0.to == current.name && $0.from != current.name && [.done, .finished].contains($0.outcome)
        }?.from
        if let before, kept.contains(before) { return before }
        let older = try kept.map { (name: $0, version: try Generation.load($0, in: layout).manifest.version) }
            .filter { $0.version.precedes(current.manifest.version) }
            .max { $0.version.precedes($1.version) }
        guard let older else {
            throw MoultError(
                .refused, .refused, what: "no kept generation is older than \(current.manifest.version)",
                why: "those kept are \(kept.joined(separator: ", "))",
                now: "Name the one you want: moult rollback --to GENERATION")
        }
        return older.name
    }

    private func named(_ wanted: String, among kept: [String]) throws -> String {
        if kept.contains(wanted) { return wanted }
        let matching = try kept.filter { try Generation.load($0, in: layout).manifest.version.description == wanted }
        if matching.count == 1 { return matching[0] }
        throw MoultError(
            .refused, .refused,
            what: matching.isEmpty
                ? "there is no kept generation \(wanted)" : "several generations are of version \(wanted)",
            why: "those kept are \(kept.joined(separator: ", "))",
            now: "Name one of them: moult rollback --to GENERATION")
    }
}
