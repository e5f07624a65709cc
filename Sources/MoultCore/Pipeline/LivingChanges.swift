internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Does the changes of living databases, to which apps write. What SQLite commits comes last, in `finish`.
final class LivingChanges {
    let transaction: Transaction
    let plan: Plan
    /// What was recorded with the decision: inodes of staged files, and change counters of new content.
    var inodes: [String: UInt64]
    let release: Manifest
    private var exchanges: [String: Exchange] = [:]
    /// The live replacements that `finish` does.
    private var live: [LiveReplacement] = []
    /// The migrations that `finish` commits.
    private var migrations: [UserMigration] = []
    /// What is set aside, by its path.
    private var quarantines: [String: Quarantine] = [:]
    /// Whether living files may be other than they were found.
    private var isEngaged = false
    /// The files whose WAL mode an exchange takes away.
    private var wal: Set<String> = []
    /// Whether something was done that cannot be taken back: from then on there is only forward.
    private(set) var isIrrevocable = false

    init(transaction: Transaction, plan: Plan, inodes: [String: UInt64], release: Manifest) {
        (self.transaction, self.plan, self.inodes, self.release) = (transaction, plan, inodes, release)
    }

    /// Takes what is replaced out of use; before the decision, or when an update is settled.
    func engage() throws {
        isEngaged = true
        // SQLite leaves a journal beside a file in which a power cut interrupts it, and settling looks only where a
        // transaction says that something was begun.
        if plan.effects.contains(where: \.isOfLivingFile) { try transaction.journal.sync() }
        // First what only waits for others to end their transactions; leases are for moments.
        for effect in plan.effects {
            guard try !isMigrated(effect), let migration = try migration(effect) else { continue }
            try migration.engage()
            migrations.append(migration)
        }
        for effect in plan.effects {
            guard case .quarantine(let path, _) = effect.change else { continue }
            let quarantine = try quarantine(effect, path)
            // After a crash it may be done already.
            if try inodes[Self.original(path)] == nil || inodes[Self.original(path)] == quarantine.original() {
                try quarantine.engage()
            }
        }
        try noteModes()
        for effect in plan.effects {
            guard case .replace(let path, _, _, let way, _) = effect.change, try !isReplaced(effect, path) else {
                continue
            }
            switch way {
            case .exchange:
                let exchange = Exchange(path: place(path), waiting: waiting(path), carrier: try carrier(effect))
                try exchange.engage()
                exchanges[path] = exchange
            case .live:
                let replacement = LiveReplacement(
                    path: place(path), waiting: waiting(path), carrier: try carrier(effect),
                    look: { [unowned self] in try isReplaced(effect, path) })
                try replacement.prove()
                live.append(replacement)
            }
        }
    }

    private func noteModes() throws {
        for effect in plan.effects {
            guard case .replace(let path, _, _, .exchange, _) = effect.change, try !isReplaced(effect, path),
                try Look.into(place(path), { try $0.header().isWAL })
            else { continue }
            wal.insert(path)
        }
        if !wal.isEmpty { try transaction.journal.draining(wal: wal) }
    }

    /// Lets go of everything, and leaves the app's files as an app would.
    func rest() throws {
        guard isEngaged else { return }
        exchanges = [:]
        live = []
        for migration in migrations { try migration.revert() }
        migrations = []
        try LivingRest.restore(plan, transaction.layout, wal: wal)
    }

    /// What an undo after a crash must know: whether somebody has written to new content.
    func counters() throws -> [String: UInt64] {
        let originals = try quarantines.map { (Self.original($0), try $1.original()) }
        return try Dictionary(
            uniqueKeysWithValues: exchanges.map { ("counter/\($0)", try $1.counter()) } + originals)
    }

    private static func original(_ path: String) -> String { "original/\(path)" }

    func perform(_ effect: Effect) throws {
        switch effect.change {
        case .replace(let path, _, _, .exchange, _): try exchanges[path]?.perform()
        case .quarantine(let path, _):
            try quarantine(effect, path).perform(original: inodes[Self.original(path)] ?? 0)
        default: break
        }
    }

    func revert(_ effect: Effect) throws {
        switch effect.change {
        case .replace(let path, _, _, .exchange, _):
            if let exchange = exchanges[path] { try exchange.revert() } else { try takeBack(effect, path) }
        case .quarantine(let path, _):
            try quarantine(effect, path).revert(original: inodes[Self.original(path)] ?? 0)
        case .migrate: for migration in migrations { try migration.revert() }
        default: break
        }
    }

    func finish() throws {
        for replacement in live {
            try commit(replacement.perform) { try replacement.isDone() }
        }
        live = []
        for migration in migrations {
            try commit(migration.commit) { try migration.isDone() }
        }
        migrations = []
        // From here on apps are let in, and what they write is not to be lost.
        isIrrevocable = isIrrevocable || !exchanges.isEmpty
        for exchange in exchanges.values { try exchange.finish() }
        for quarantine in quarantines.values { quarantine.finish() }
        try rest()
        try syncNames()
    }

    /// SQLite removes its journal and does not sync that: after a power cut it could be there again, and be rolled back.
    private func syncNames() throws {
        var directories: Set<String> = []
        for effect in plan.effects {
            switch effect.change {
            case .replace(let path, _, _, _, _), .migrate(let path, _, _, _):
                directories.insert(Files.directory(of: place(path)))
            default: break
            }
        }
        for directory in directories.sorted() { try Files.syncDirectory(directory) }
    }

    /// Does what cannot be taken back. An error need not mean that SQLite did not commit: only a look can tell.
    private func commit(_ body: () throws -> Void, isDone: () throws -> Bool) throws {
        do { try body() } catch {
            // Where not even that can be found out, forward is the only safe way.
            let mayBeDone = (try? isDone()) ?? true
            isIrrevocable = isIrrevocable || mayBeDone
            throw error
        }
        isIrrevocable = true
    }

    /// Whether the living file has this release's content already; a settling must not do it twice.
    func isReplaced(_ effect: Effect, _ path: String) throws -> Bool {
        guard let database = effect.database.flatMap(release.database), try Files.facts(place(path)) != nil else {
            return false
        }
        let connection = try Connection(path: place(path), access: .readWrite)
        let isThere =
            try connection.int(ReleaseMarker.isThere) == 1
            && connection.scalar(ReleaseMarker.digest) == .text(database.sha256)
        try connection.close()
        return isThere
    }

    /// Takes an exchange back that another process had done, if nobody has written to the new content since.
    private func takeBack(_ effect: Effect, _ path: String) throws {
        guard try isReplaced(effect, path), try Files.facts(waiting(path)) != nil else { return }
        let exchange = Exchange(path: waiting(path), waiting: place(path), carrier: try carrier(effect))
        guard try exchange.isUntouched(counter: inodes["counter/\(path)"]) else {
            throw MoultError(
                .stuck, .stuck, what: "\(place(path)) was written to after the update",
                why: "going back to \(waiting(path)) would lose those rows",
                now: "To keep them, remove \(waiting(path)) and run: moult recover --undo")
        }
        try Files.exchange(waiting(path), place(path))
        try Files.syncDirectory(transaction.layout.root)
    }

    /// Throws if something was committed that going back would leave behind: for an undo after a crash.
    func proveRevocable() throws {
        for effect in plan.effects {
            let isCommitted =
                switch effect.change {
                case .migrate: try isMigrated(effect)
                case .replace(let path, _, _, .live, _): try isReplaced(effect, path)
                default: false
                }
            guard isCommitted else { continue }
            throw MoultError(
                .stuck, .stuck, what: "the update to \(release.version) cannot be taken back any more",
                why: "it is done in \(effect.database ?? "a database") already, and apps may have written since",
                now: "Finish it: moult recover. Then go back with: moult rollback")
        }
    }

    private func quarantine(_ effect: Effect, _ path: String) throws -> Quarantine {
        if let known = quarantines[path] { return known }
        guard case .quarantine(_, let why) = effect.change, let database = effect.database.flatMap(release.database)
        else { throw MoultError(.stuck, what: "the plan names no database of the release", why: effect.text) }
        let quarantine = Quarantine(
            place: place(path),
            directory: transaction.layout.quarantined(database.name, path: path, by: transaction.id),
            fresh: waiting(path),
            label: QuarantineLabel(
                database: database.name, kind: database.kind, path: place(path), why: why,
                release: release.version.description),
            salvaged: "\(transaction.directory)/salvaged")
        quarantines[path] = quarantine
        return quarantine
    }

    /// Needs nothing of what was staged: of that, cleaning may have removed a part before the power was cut.
    private func isMigrated(_ effect: Effect) throws -> Bool {
        guard case .migrate(let path, _, _, let target) = effect.change else { return false }
        return try UserMigration.isDone(place(path), target: target)
    }

    private func migration(_ effect: Effect) throws -> UserMigration? {
        guard case .migrate(let path, let members, _, let target) = effect.change,
            let database = effect.database.flatMap(release.database)
        else { return nil }
        var migrations = Migrations(
            try database.migrations.filter { members.contains($0.member) }.map {
                try .init(name: $0.member, number: $0.number, file: "\(transaction.unpacked)/\($0.member)")
            })
        migrations.mayShrink = { [release] in release.mayShrink(database.name, table: $0, from: $1, to: $2) }
        return UserMigration(path: place(path), migrations: migrations, target: target)
    }

    private func place(_ path: String) -> String { transaction.layout.file(path) }
    private func waiting(_ path: String) -> String { transaction.waiting(path) }

    private func carrier(_ effect: Effect) throws -> RowCarrier {
        guard let database = effect.database.flatMap(release.database) else {
            throw MoultError(.stuck, what: "the plan names no database of the release", why: effect.text)
        }
        return RowCarrier(database: database, release: release.version)
    }
}

extension Effect {
    fileprivate var isOfLivingFile: Bool {
        switch change {
        case .replace, .migrate, .quarantine: true
        default: false
        }
    }
}
