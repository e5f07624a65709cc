internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
public import StepKit

/// Attach: checks that the databases open together as the app will open them, each group on one connection.
public struct AttachStep: Step {
    public let name = "attach"
    public let summary = "opens each group of databases on one connection; checks their names and number"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        if context.purpose == .reset { return [] }
        let sets = Self.sets(context.release)
        for set in sets { try set.refuseTooMany() }
        return [
            effect(
                .attach, nil,
                .attach(main: context.release.group(nil).main?.name, names: sets.flatMap(\.described)))
        ]
    }

    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        if effects.isEmpty { return }
        let sets = Self.sets(context.plan.release)
        try examine(sets.flatMap(\.sealed).map { database in (database, try staged(database, context)) }, context)
        for set in sets {
            let files = try set.sealed.map { database in (database, try staged(database, context)) }
            try set.requireSameEncoding(set.writable.map { ($0, try place($0, context)) } + files)
            try set.open(files)
        }
    }

    private static func sets(_ release: Manifest) -> [AttachedSet] { release.groups.map(AttachedSet.init) }

    /// Examines the files that another step has changed since they were examined, so that no unsafe file is opened here. The
    /// verify step checks their content.
    private func examine(_ files: [(database: Database, path: String)], _ context: PrepareContext) throws {
        let changed = Set(context.plan.planned.filter(\.isCustom).compactMap(\.database))
        let exams = files.filter { changed.contains($0.database.name) }.map { file in
            var validation = Validation(name: file.database.member, path: file.path, depth: .header, processor: 60)
            validation.wantsIdentity = true
            return validation
        }
        if exams.isEmpty { return }
        for report in try Validator.available().examine(exams, scratch: "\(context.staging)/exam-attach") {
            if let failure = report.failure { throw failure }
        }
    }

    /// Repeats the check with the paths that the app will use.
    public func check(_ effect: Effect, _ context: ApplyContext) throws {
        for set in Self.sets(context.plan.release) {
            try set.open(set.sealed.map { ($0, context.plan.store.path($0.path)) })
        }
    }

    /// Returns the file that the app will open: the existing one if it stays, otherwise that of the release.
    private func place(_ database: Database, _ context: PrepareContext) throws -> String {
        let existing = context.plan.store.path(context.plan.path(of: database))
        return try database.kind.isMigrated && Files.facts(existing) != nil ? existing : staged(database, context)
    }

    private func staged(_ database: Database, _ context: PrepareContext) throws -> String {
        let staged = "\(context.stagedGeneration)/\(database.member)"
        if try Files.facts(staged) != nil { return staged }
        return context.plan.store.path(ofMember: database.member, in: context.plan.generation)
    }
}
