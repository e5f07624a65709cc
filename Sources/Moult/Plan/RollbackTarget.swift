internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Chooses the kept generation that a rollback returns to: the given one, or else the newest older release that is neither on
/// hold nor withdrawn by its publisher.
package struct RollbackTarget {
    let layout: StoreLayout
    let settings: Settings
    let current: Generation
    let holds: Holds

    struct Choice {
        let name: String
        var skipped: [String] = []
    }

    package var exists: Bool {
        get throws {
            do { _ = try choose(nil, force: false) } catch let error as MoultError where error.outcome == .refused {
                return false
            }
            return true
        }
    }

    /// Returns why the publisher has withdrawn a release, according to the feed that the store has saved.
    private func withdrawal(of version: Version) -> String? {
        PlanWarnings.withdrawalReason(
            of: version, product: current.manifest.product, in: ["\(layout.feed)/\(Feed.fileName)"])
    }

    /// Returns why a kept generation is not trusted any more; nil if it is, or if that is unknown.
    private func revocation(of name: String) -> String? {
        // Records that cannot be read say nothing about keys.
        guard let pinned = settings.keys, let generation = try? Generation.load(name, in: layout),
            let seal = try? generation.seal(),
            let keys = try? KeyChain(pinned: pinned, product: settings.product, in: layout)
        else { return nil }
        let feed = try? Feed.saved(in: layout)
        return (try? RevokedRelease(generation, seal: seal, keys: keys, feed: feed))?.sentence
    }

    package static func isNamed(_ wanted: String, _ generation: String) -> Bool {
        wanted == generation || wanted == Generation.version(of: generation)
    }

    func choose(_ wanted: String?, force: Bool) throws -> Choice {
        let all = try Generation.names(layout).filter { $0 != current.name }
        if let wanted, all.isEmpty, Self.isNamed(wanted, current.name) {
            throw MoultError(
                .refused, .refused, what: "\(wanted) is already installed", why: "no other generation is kept",
                now: "Install an older release: \(moult: "apply", "RELEASE", "--allow-downgrade")")
        }
        if let wanted, !all.isEmpty { return Choice(name: try named(wanted, among: all, force: force)) }
        // The name has the version: an unreadable generation must not prevent returning to another.
        let kept = all.compactMap { name in Version(Generation.version(of: name)).map { (name: name, version: $0) } }
        guard !kept.isEmpty else { throw nothingKept() }
        let older = kept.filter { $0.version.precedes(current.manifest.version) }
            .sorted { $1.version.precedes($0.version) }
        guard !older.isEmpty else {
            throw MoultError(
                .refused, .refused, what: "no kept release is older than \(current.manifest.version)",
                why: "kept generations: \(all.joined(separator: ", "))", now: Self.choosing(all))
        }
        var skipped: [String] = []
        for target in older where holds.rollbackRefusal(of: target.version) == nil {
            if let reason = revocation(of: target.name) {
                skipped.append("\(target.name) is skipped: \(reason)")
                continue
            }
            guard let reason = withdrawal(of: target.version) else {
                return Choice(name: target.name, skipped: skipped)
            }
            skipped.append("release \(target.version) is skipped, because its publisher withdrew it: \(reason)")
        }
        if holds.fault != nil, let refusal = holds.refusal(of: older[0].version) { throw refusal }
        let obstacles = older.map { kept in
            "\(kept.version): \(holds.obstacle(to: kept.version) ?? revocation(of: kept.name) ?? "it was withdrawn: \(withdrawal(of: kept.version) ?? "")")"
        }
        let isHeld = holds.rollbackRefusal(of: older[0].version) != nil
        throw MoultError(
            .refused, .refused,
            what:
                "every kept release older than \(current.manifest.version) is on hold\(skipped.isEmpty ? "" : " or withdrawn")",
            why: obstacles.joined(separator: "; "),
            now:
                "To roll back anyway: \(moult: ["rollback", "--to", "\(older[0].version)"] + (isHeld ? ["--force"] : []))"
        )
    }

    private static func choosing(_ names: [String]) -> Advice {
        if names.count == 1 { return "To roll back to it: \(moult: "rollback", "--to", names[0])" }
        return "Choose one of them: \(moult: "rollback", "--to", "GENERATION")"
    }

    private func nothingKept() -> MoultError {
        MoultError(
            .refused, .refused, what: "nothing to roll back to",
            why: "\(current.name) is the only generation of \(layout.root)",
            now: "Install an older release: \(moult: "apply", "RELEASE", "--allow-downgrade")")
    }

    private func notKept(_ wanted: String, _ all: [String]) -> MoultError {
        let kept = "kept generations: \(all.joined(separator: ", "))"
        let (what, why) =
            if wanted == "installed" || Self.isNamed(wanted, current.name) {
                ("\(current.name) is the installed generation", "a rollback needs another generation; \(kept)")
            } else { ("generation \(wanted) is not kept", kept) }
        return MoultError(.refused, .refused, what: what, why: why, now: Self.choosing(all))
    }

    private func named(_ wanted: String, among all: [String], force: Bool) throws -> String {
        let matching = all.contains(wanted) ? [wanted] : all.filter { Generation.version(of: $0) == wanted }
        if matching.isEmpty { throw notKept(wanted, all) }
        guard matching.count == 1, let name = matching.first else {
            throw MoultError(
                .refused, .refused, what: "several generations have version \(wanted)",
                why: "they are \(matching.joined(separator: ", "))", now: Self.choosing(matching))
        }
        if !force, let reason = revocation(of: name) {
            throw MoultError(
                .refused, .refused, what: "\(wanted) is not trusted any more", why: reason,
                now: "To roll back anyway: \(moult: "rollback", "--to", wanted, "--force")")
        }
        if !force, let version = Version(Generation.version(of: name)), var refusal = holds.rollbackRefusal(of: version)
        {
            if holds.fault == nil {
                refusal.now = "To roll back anyway: \(moult: "rollback", "--to", "\(wanted)", "--force")"
            }
            throw refusal
        }
        return name
    }
}
