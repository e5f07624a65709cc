internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
public import StepKit

/// Verify: verifies the staged databases before the update changes anything, and afterwards checks that the app's paths lead to
/// them.
public struct VerifyStep: Step {
    public let name = "verify"
    public let summary =
        "checks digest, identity, health, golden queries and change budget; then the file at the app's path"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        let staged = context.planned.contains { effect in
            if case .installGeneration = effect.change { true } else { false }
        }
        return try context.release.databases.compactMap { database in
            let methods = try methods(database, staged: staged, context)
            return methods.isEmpty ? nil : effect(.verify, database.name, .prove(methods))
        }
    }

    private func methods(_ database: Database, staged: Bool, _ context: PlanContext) throws -> [String] {
        if context.purpose == .reset, database.name != context.only { return [] }
        guard staged else {
            switch database.kind {
            case .reference: return ["the verified file: inode, size, time"]
            case .shared: return ["marker"]
            case .user, .cache: return context.creates(context.path(of: database)) ? ["opens with its schema"] : []
            }
        }
        // An existing user database stays unchanged; the template for a reset was digested when it was unpacked.
        if database.kind.isMigrated, try context.store.look(database.path) != .nothing { return [] }
        let (proof, isFull) = (context.carriedProof(of: database), context.demandedCheck(of: database) == .full)
        let isChanged = try context.isChangedInPlace(database)
        var methods =
            proof != nil && !isChanged
            ? [] : database.place == .inPlace && !isFull && !isChanged ? ["header"] : ["digest"]
        methods.append("identity")
        if isFull { methods += ["integrity_check", "foreign_key_check"] }
        if database.place == .generation, !isFull, proof == nil { methods.append("quick_check") }
        let queries = context.release.checks.filter { $0.on == database.name }.count
        if queries > 0 { methods.append(counted(queries, "golden query", "golden queries")) }
        if try old(database, context) != nil { methods.append("change budget") }
        if let proof { methods.append(proof.words) }
        return methods
    }

    /// Verifies staged files in a separate process, before they are opened here.
    public func examine(_ effects: [Effect], _ context: PrepareContext) throws {
        // A file of a kept generation was verified when it was installed, and has not changed.
        let proofs = try context.plan.release.databases.compactMap { database -> ContentCheck? in
            let path =
                database.place == .inPlace
                ? "\(context.plan.resources)/\(database.member)" : context.unpacked(database.member)
            let isNew = database.place != .inPlace || effects.contains { $0.database == database.name }
            guard try isNew && Files.factsThroughLinks(path) != nil else { return nil }
            return try ContentCheck(
                database, at: path, old: try old(database, context.plan), isPublished: true, context.plan)
        }
        for proof in proofs { try proof.verifyDigest() }
        let reports = try Validator.available().examine(proofs.map(\.validation), scratch: "\(context.staging)/exam") {
            validation in
            try context.progress(.init("check \(validation.name)", done: 0, total: 0))
        }
        for (proof, report) in zip(proofs, reports) { try proof.verify(report) }
    }

    /// Examines again the files that another step has changed.
    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        let changed = Set(context.plan.planned.filter(\.isCustom).compactMap(\.database))
        let proofs = try context.plan.release.databases.compactMap { database -> ContentCheck? in
            let path = "\(context.stagedGeneration)/\(database.member)"
            guard changed.contains(database.name), database.kind.isSealed, database.place == .generation,
                try Files.facts(path) != nil
            else { return nil }
            return try ContentCheck(
                database, at: path, old: try old(database, context.plan), isPublished: false, context.plan)
        }
        guard !proofs.isEmpty else { return }
        let reports = try Validator.available().examine(
            proofs.map(\.validation), scratch: "\(context.staging)/exam-again")
        for (proof, report) in zip(proofs, reports) { try proof.verify(report) }
    }

    /// Returns the installed file of the same database, with which the budgets of the release compare it; nil without budgets.
    private func old(_ database: Database, _ context: PlanContext) throws -> String? {
        guard context.release.budget.contains(where: { $0.database == database.name }),
            let generation = context.installedGeneration, let before = context.installed?.database(database.name),
            before.kind.isSealed
        else { return nil }
        // A damaged file has no meaningful number of rows, and this update replaces it.
        do { try context.store.proveSeal(of: generation) } catch is MoultError { return nil }
        return context.store.path(ofMember: before.member, in: generation)
    }

    public func check(_ effect: Effect, _ context: ApplyContext) throws {
        guard let database = effect.database.flatMap(context.plan.release.database) else { return }
        try verify(database, context.plan)
    }

    /// After the switch, checks that the app's path leads to the verified file, and that no sidecar changes what SQLite reads.
    private func verify(_ database: Database, _ context: PlanContext) throws {
        let path = context.store.path(context.path(of: database))
        guard let reached = try Files.factsThroughLinks(path) else {
            throw failed(database, "\(path) does not lead to a file")
        }
        guard database.kind.isSealed else {
            // A database that the operator restores from quarantine may have the schema of an older release.
            if !database.kind.isReplaced, context.creates(context.path(of: database)), context.restoring == nil {
                try verifySchema(database, path, context)
            }
            return
        }
        let proven = context.store.path(ofMember: database.member, in: context.generation)
        let expected = try Files.factsThroughLinks(proven)
        guard let expected,
            (reached.device, reached.inode, reached.size) == (expected.device, expected.inode, expected.size)
        else {
            throw failed(database, "\(path) does not lead to \(proven)")
        }
        if let sidecar = try Sidecars.besideReadOnly(proven, link: path).first {
            throw failed(database, Sidecars.fault(of: sidecar))
        }
    }

    /// Checks that a new writable file opens, and has the schema of the published file.
    private func verifySchema(_ database: Database, _ path: String, _ context: PlanContext) throws {
        let published = context.store.path(ofMember: database.member, in: context.generation)
        do {
            let expected = try SchemaShape.ofContent(Connection(path: published, access: .immutable))
            if let lack = try NonInvasiveReader.into(path, { try SchemaShape.ofContent($0) }).lacks(of: expected).first
            {
                throw failed(database, "\(path): \(lack)")
            }
        } catch let error as MoultError where error.outcome == .busy {
            // A process is already using the database, so the database can be opened.
        }
    }

    private func failed(_ database: Database, _ why: String) -> MoultError {
        MoultError(
            MoultError.Code(720), what: "the database \(database.name) is not the installed file", why: why,
            now: "Find out which program changes the file, then apply the release again.")
    }
}
