internal import MoultBasics
internal import MoultSQLite
internal import MoultSandbox
public import StepKit

/// Attach: proves that the whole set opens together on one connection, as the app will open it.
public struct AttachStep: Step {
    public let name = "attach"
    public let summary = "opens the set on one connection; names must be legal, and few enough"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        if context.purpose == .reset { return [] }
        let set = AttachedSet(context.release)
        try set.refuseTooMany()
        return [effect(.attach, nil, .attach(main: set.main?.name, names: set.others.map(set.described)))]
    }

    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        if effects.isEmpty { return }
        let set = AttachedSet(context.plan.release)
        let files = try set.sealed.map { database in
            (database, try staged(database, context))
        }
        try examine(files, context)
        // Files from before moult need not open together: their app knows how to use them.
        if context.plan.bringsBackAdopted { return try files.forEach { _ = try set.open([$0]) } }
        try set.proveEncoding(set.writable.map { ($0, try place($0, context)) } + files)
        let tables = try set.open(files)
        for warning in set.clashes(tables) { context.warn(warning) }
    }

    /// A file that an external step has changed is no longer the file that was examined: it is not opened here before it is
    /// known to open safely. The verify step checks its content.
    private func examine(_ files: [(database: Database, path: String)], _ context: PrepareContext) throws {
        let changed = Set(context.plan.planned.filter(\.isCustom).compactMap(\.database))
        let exams = files.filter { changed.contains($0.database.name) }.map { file in
            var validation = Validation(name: file.database.member, path: file.path, depth: .header, processor: 60)
            validation.wantsIdentity = true
            return validation
        }
        if exams.isEmpty { return }
        for report in try Validator.present().examine(exams, scratch: "\(context.staging)/exam-attach") {
            if let failure = report.failure { throw failure }
        }
    }

    /// The same again through the paths that the app will use.
    public func apply(_ effect: Effect, _ context: ApplyContext) throws {
        let set = AttachedSet(context.plan.release)
        let files = set.sealed.map { (database: $0, path: context.plan.store.path($0.path)) }
        for group in context.plan.bringsBackAdopted ? files.map({ [$0] }) : [files] { _ = try set.open(group) }
    }

    /// The file that the app will open: its own where that stays, otherwise what the release has for it.
    private func place(_ database: Database, _ context: PrepareContext) throws -> String {
        let living = context.plan.store.path(context.plan.path(of: database))
        return try database.kind.isMigrated && Found.exists(living) ? living : staged(database, context)
    }

    private func staged(_ database: Database, _ context: PrepareContext) throws -> String {
        let staged = "\(context.stagedGeneration)/\(database.member)"
        if try Found.exists(staged) { return staged }
        return context.plan.store.path(ofMember: database.member, in: context.plan.generation)
    }
}
