extension FeedModel {
    /// One step of a history. A step contains all its choices, so that a history stays the same when others are removed.
    enum Step: CustomStringConvertible {
        /// `from` picks the oldest release that a store must have; nil for none.
        case publish(
            machine: Int, line: Int, patch: Int, channel: String, rollout: Int, groups: [String], app: Bool, from: Int?)
        case roll(machine: Int, pick: Int, to: Int)
        case promote(machine: Int, pick: Int, rollout: Int)
        case withdraw(machine: Int, pick: Int)
        case renew(machine: Int)
        /// More feeds than the next one names.
        case renewOften(machine: Int)
        case keep(machine: Int, count: Int)
        case keepPatches(machine: Int, count: Int)
        case rotate(machine: Int)
        /// The upload stops at this file; the same machine publishes again later.
        case fail(machine: Int, file: Int)
        /// While one machine uploads the feed, the other one publishes.
        case race(machine: Int, patch: Int)
        /// An attacker with the keys in force publishes a release; the owner then replaces the keys.
        case steal(serial: Int)
        case recover(machine: Int)
        /// A server returns the files of an earlier moment.
        case replay(pick: Int, store: Int)
        case wait(hours: Int)
        case poll(store: Int)

        var description: String {
            switch self {
            case .publish(let machine, let line, let patch, let channel, let rollout, let groups, let app, let from):
                "publish m\(machine) \(line).0.\(patch) --channel \(channel) --rollout \(rollout)"
                    + groups.map { " --group \($0)" }.joined()
                    + (app ? "  # requires app" : "") + (from.map { "  # requires from release \($0)" } ?? "")
            case .roll(let machine, let pick, let to): "roll m\(machine) release \(pick) --rollout \(to)"
            case .promote(let machine, let pick, let rollout):
                "promote m\(machine) release \(pick) --to stable --rollout \(rollout)"
            case .withdraw(let machine, let pick): "withdraw m\(machine) release \(pick)"
            case .renew(let machine): "renew m\(machine)"
            case .renewOften(let machine): "renew m\(machine) 17 times"
            case .keep(let machine, let count): "renew m\(machine) --keep-releases \(count)"
            case .keepPatches(let machine, let count): "renew m\(machine) --patches \(count)"
            case .rotate(let machine): "rotate both keys on m\(machine)"
            case .fail(let machine, let file): "renew m\(machine), and the upload stops at file \(file)"
            case .race(let machine, let patch):
                "renew m\(machine), and during its upload m\(1 - machine) publishes 1.9.\(patch)"
            case .steal(let serial): "a thief publishes 9.9.9 with a serial \(serial) higher"
            case .recover(let machine): "m\(machine) replaces the stolen keys"
            case .replay(let pick, let store): "s\(store) gets the files of moment \(pick)"
            case .wait(let hours): "wait \(hours) hours"
            case .poll(let store): "apply s\(store)"
            }
        }
    }
}
