internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Applies the built-in changes of a plan's effects, and undoes them. Each can be repeated after a crash.
extension Execution {
    /// Applies an effect of the plan. A `custom` change belongs to its step.
    func perform(_ effect: Effect) throws {
        switch effect.change {
        case .confirm, .retire, .displace, .seal, .keepTemplate, .linkInPlace, .restore, .keep, .attach, .prove,
            .custom:
            break
        // `WritableEffects.finish` commits these.
        case .replace, .migrate, .restoreRows: break
        case .unlink(let path): try unlink(path)
        case .installGeneration(let generation): try install(generation)
        case .switchCurrent(let to, _): try switchCurrent(to)
        case .link(let path, let member): try link(path, member)
        case .create(let path, _): try create(path, effect)
        case .quarantine: try writable.perform(effect)
        }
    }

    func revert(_ effect: Effect) throws {
        switch effect.change {
        case .confirm, .retire, .displace, .seal, .keepTemplate, .linkInPlace, .restore, .keep, .attach, .prove,
            .custom:
            break
        case .unlink(let path): try relink(path)
        case .installGeneration(let generation): try uninstall(generation)
        case .switchCurrent(_, let from): try switchBack(from)
        case .link(let path, let member): try undoLink(path, member)
        case .create(let path, _):
            // An app may already use the file.
            let isCreated = try Files.facts(transaction.waiting(path)) == nil && Files.facts(layout.file(path)) != nil
            // After a reset, the old file gets its place back.
            if isCreated, plan.effects.allSatisfy({ !$0.setsAside(path) }) {
                warn("\(layout.file(path)) stays: the update created it, and an app may have written to it")
            }
        case .quarantine, .replace, .migrate, .restoreRows: try writable.revert(effect)
        }
    }

    // MARK: the generation

    private func install(_ generation: String) throws {
        let place = layout.generation(generation)
        let staged = transaction.generation
        try Files.ensureDirectory(layout.generations)
        if try Files.facts(staged) != nil, try !transaction.hasCreated(place) {
            // A generation of this name can exist only if it is damaged; then it is exchanged with the staged one.
            if try !Files.renameIfFree(staged, to: place) {
                try Files.setMode(place, Self.movable)
                try Files.exchange(staged, place)
            }
        }
        try Files.setMode(place, 0o555)
        try LeaseFile.make([generation], layout)
        try Files.syncDirectory(layout.generations)
    }

    private func uninstall(_ generation: String) throws {
        let place = layout.generation(generation)
        guard try Files.facts(place) != nil else { return }
        var isGone = false
        if try transaction.hasCreated(place) {
            try Files.setMode(place, Self.movable)
            isGone = try Files.renameIfFree(place, to: transaction.generation)
            if !isGone { try Files.exchange(transaction.generation, place) }
        }
        // Unless the new generation was moved away, a damaged one is still in place, or in place again.
        if isGone { try LeaseFile.remove(generation, layout) } else { try Files.setMode(place, 0o555) }
        try Files.syncDirectory(layout.generations)
    }

    /// The mode for moving a generation: a directory without owner write permission cannot be moved to another directory.
    /// Readers are not affected.
    private static let movable: UInt32 = 0o755

    // MARK: the pointer

    private func switchCurrent(_ to: String) throws {
        let target = StoreLayout.target(of: to)
        if try Files.target(ofLink: layout.current) != target { try replaceLink(layout.current, with: target) }
        // After a power failure, an app that has read the new release must not find the old one again.
        try Files.syncDirectory(layout.hidden)
    }

    private func switchBack(_ from: String?) throws {
        if let from { return try switchCurrent(from) }
        try Files.remove(layout.current)
        try Files.syncDirectory(layout.hidden)
    }

    // MARK: links

    private func link(_ path: String, _ member: String) throws {
        let place = layout.file(path)
        let target = StoreLayout.link(to: member)
        if try Files.target(ofLink: place) != target { try replaceFile(path, with: target) }
        try Files.syncDirectory(layout.root)
    }

    private func undoLink(_ path: String, _ member: String) throws {
        let place = layout.file(path)
        if let before = installed?.databases.first(where: { $0.kind.isSealed && $0.path == path }) {
            try replaceFile(path, with: StoreLayout.link(to: before.member))
        } else if try Files.target(ofLink: place) == StoreLayout.link(to: member) {
            try Files.remove(place)
        }
        try Files.syncDirectory(layout.root)
    }

    private func unlink(_ path: String) throws {
        // Only a symlink is removed, because a regular file at this path may be a writable database.
        if try Files.target(ofLink: layout.file(path)) != nil { try Files.remove(layout.file(path)) }
        try Files.syncDirectory(layout.root)
    }

    private func relink(_ path: String) throws {
        guard let before = installed?.databases.first(where: { $0.path == path }) else { return }
        if try Files.facts(layout.file(path)).map({ $0.kind == .file }) ?? true {
            try replaceFile(path, with: StoreLayout.link(to: before.member))
        }
        try Files.syncDirectory(layout.root)
    }

    /// Replaces the file at the path of a database with a symlink. A regular file is kept.
    private func replaceFile(_ path: String, with target: String) throws {
        try Aside.keep(path, transaction)
        try replaceLink(layout.file(path), with: target)
    }

    private func replaceLink(_ path: String, with target: String) throws {
        let temporary = "\(transaction.directory)/link"
        try Files.remove(temporary)
        try Files.symlink(to: target, at: temporary)
        try Files.rename(temporary, to: path)
    }

    // MARK: writable files

    private func create(_ path: String, _ effect: Effect) throws {
        // If the app has created the file in the meantime, it is user data and stays.
        let waiting = transaction.waiting(path)
        if try Files.facts(waiting) != nil {
            _ = try Files.renameIfFree(waiting, to: layout.file(path))
        } else if try Files.facts(layout.file(path)) == nil {
            let error = MoultError(
                .stuck, what: "\(layout.file(path)) is missing", why: "a program has removed the new file",
                now: "Apply the release again.")
            guard writable.isRecovery else { throw error }
            writable.leave(effect, error)
        }
        try Files.syncDirectory(Files.directory(of: layout.file(path)))
    }
}

extension Effect {
    fileprivate func setsAside(_ path: String) -> Bool {
        change.traits.handling == .setAside && change.traits.paths.contains(path)
    }
}

extension Plan {
    /// Places the hold on the release that a rollback replaces. Can be repeated.
    func placeHold(_ layout: StoreLayout) throws {
        guard var hold else { return }
        hold.transaction = id
        try Holds.change(layout) { holds in if holds.hold(on: hold.release) != hold { holds.place(hold) } }
    }

    /// Removes the hold of a rollback that is undone, and no other.
    func withdrawHold(_ layout: StoreLayout) throws {
        guard hold != nil else { return }
        try Holds.change(layout) { holds in
            guard holds.all.contains(where: { $0.transaction == id }) else { return }
            holds.remove { $0.transaction == id }
            if let replacedHold { holds.place(replacedHold) }
        }
    }
}
