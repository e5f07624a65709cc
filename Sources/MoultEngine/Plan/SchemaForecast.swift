internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
package import MoultStore
package import StepKit

/// Makes a plan fail if the update would fail, because a user database is kept but does not have the release's schema.
package struct SchemaForecast {
    let layout: StoreLayout
    let context: PlanContext
    /// Whether to read the bundle even if it is large (`plan --deep`).
    let isDeep: Bool

    package init(layout: StoreLayout, context: PlanContext, isDeep: Bool) {
        (self.layout, self.context, self.isDeep) = (layout, context, isDeep)
    }

    package func check(_ plan: Plan) throws {
        guard context.purpose == .update else { return }
        for database in context.release.databases where try isKept(database, plan) {
            try Files.withScratchDirectory { scratch in
                guard let template = try template(database, plan, scratch) else { return }
                try check(database, plan, template)
            }
        }
    }

    /// Returns the path of a file with the release's schema; nil if no such file is available.
    private func template(_ database: Database, _ plan: Plan, _ scratch: String) throws -> String? {
        if let reuse = plan.reuse.first(where: { $0.member == database.member }) {
            guard let base = reuse.base, reuse.patches.isEmpty else { return nil }
            return "\(layout.generation(base.generation))/\(base.member)"
        }
        guard let bundle = plan.bundle, bundle.missing == 0, isDeep || bundle.size <= MigrationForecast.largest else {
            return nil
        }
        let template = "\(scratch)/template.db"
        try Unpacker(
            place: { $0 == database.member ? template : "\(scratch)/other" }, release: context.release,
            bundle: bundle.path, members: [database.member], progress: { _ in }
        ).unpack()
        try UncheckedTemplate(name: database.name, path: template).requireReadable(plan, scratch)
        return template
    }

    /// Returns whether a user's database stays unchanged, and its template is part of the release.
    private func isKept(_ database: Database, _ plan: Plan) throws -> Bool {
        guard database.kind.isMigrated, database.schemaOwner == .release, plan.members.contains(database.member) else {
            return false
        }
        let isKept = plan.effects.contains { effect in
            if effect.database == database.name, case .keep = effect.change { true } else { false }
        }
        return try isKept && Files.factsThroughLinks(place(database, plan))?.kind == .file
    }

    private func place(_ database: Database, _ plan: Plan) -> String {
        layout.file(database.path)
    }

    private func check(_ database: Database, _ plan: Plan, _ template: String) throws {
        let place = place(database, plan)
        let expected = try SchemaShape.ofContent(Connection(path: template, access: .immutable))
        do {
            if let lack = try NonInvasiveReader.into(place, { try SchemaShape.ofContent($0) }).lacks(of: expected).first
            {
                throw context.schemaMisfit(lack, at: place)
            }
        } catch let error as MoultError where error.outcome == .busy {
            // An app that has the database locked can evidently use its schema.
        }
    }
}

/// A database that a plan unpacked from a bundle. It may be hostile: reading its schema may take SQLite days.
struct UncheckedTemplate {
    let name: String
    let path: String

    /// Throws unless a sandboxed process with a time limit can read the schema.
    func requireReadable(_ plan: Plan, _ scratch: String) throws {
        var time = CheckTime()
        time.fixed = plan.request.checkTimeout
        var validation = Validation(
            name: name, path: path, depth: .header, processor: time.seconds(for: try Files.facts(path)?.size ?? 0))
        validation.wantsIdentity = true
        if let failure = try Validator.available().examine([validation], scratch: "\(scratch)/exam").first?.failure {
            throw failure
        }
    }
}
