internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
package import MoultStore
package import StepKit

/// Computes for a plan exactly what happens to each row of the shared databases: carries their content over into a copy of the
/// release's file, with the same code that the update uses.
package struct ContentForecast {
    let layout: StoreLayout
    let release: Manifest
    let installed: Manifest?
    /// The size limit in bytes; larger databases are left out.
    let limit: Int

    /// The limit for plans that must not take long.
    package static let quick = 64 << 20

    package init(layout: StoreLayout, release: Manifest, installed: Manifest?, limit: Int = .max) {
        (self.layout, self.release, self.installed, self.limit) = (layout, release, installed, limit)
    }

    package func fill(_ plan: inout Plan) throws {
        for index in plan.effects.indices {
            guard case .replace(var new) = plan.effects[index].change else { continue }
            let live = try Files.factsThroughLinks(layout.file(new.path))
            guard new.size <= limit, live?.size ?? 0 <= limit else { continue }
            let effect = plan.effects[index]
            let rows = try Files.withScratchDirectory { scratch -> [RowFate]? in
                guard let file = try unpack(new.member, plan, scratch) else { return nil }
                return try count(effect, new, plan, file)
            }
            guard let rows else { continue }
            new.rows = rows
            plan.effects[index].change = .replace(new)
        }
    }

    /// Throws if an update would refuse to write to a database. The file of the release must be available.
    package func checkRewrites(_ plan: Plan) throws {
        for traits in plan.effects.map(\.change.traits) where traits.handling == .written {
            for path in traits.paths { try SoleName.require(layout.file(path)) }
        }
        for effect in plan.effects {
            guard case .replace(let new) = effect.change, max(new.size, plan.bundle?.size ?? 0) <= limit
            else { continue }
            try Files.withScratchDirectory { scratch in
                guard let file = try unpack(new.member, plan, scratch) else { return }
                let place = layout.file(new.path)
                try LockedDatabase.requireSameEncoding(
                    place, Connection.encoding(ofFileAt: place)?.description,
                    DatabaseHeader(ofOwnFile: file).encoding?.description)
            }
        }
    }

    /// Returns the path of a copy of the release's file; nil if that file is not available.
    private func unpack(_ member: String, _ plan: Plan, _ scratch: String) throws -> String? {
        let file = "\(scratch)/new.db"
        let kept = "\(layout.generation(plan.to.generation))/\(member)"
        if try Files.facts(kept) != nil {
            try Files.copy(kept, to: file, mode: 0o600)
        } else if let bundle = plan.bundle, bundle.missing == 0 {
            try Unpacker(
                place: { name in name == member ? file : "\(scratch)/other" }, release: release, bundle: bundle.path,
                members: [member], progress: { _ in }
            ).unpack()
            try UncheckedTemplate(name: member, path: file).requireReadable(plan, scratch)
        } else {
            return nil
        }
        return file
    }

    private func count(_ effect: Effect, _ new: Replacement, _ plan: Plan, _ file: String) throws -> [RowFate] {
        let transaction = Transaction(layout: layout, id: plan.id)
        let effects = WritableEffects(
            transaction: transaction, plan: plan, decided: nil, installed: installed, release: release)
        let displacement = Displacement(
            place: file, directory: "",
            record: QuarantineRecord(
                database: effect.database ?? "", kind: .shared, path: new.path, why: "", reason: .replaced, release: "")
        )
        let transfer = try effects.transfer(effect, new)
        let place = layout.file(new.path)
        do {
            try NonInvasiveReader.into(place) { live in
                let scratch = try Connection(path: file, access: .readWrite)
                try scratch.execute("PRAGMA synchronous = OFF; BEGIN IMMEDIATE")
                try transfer.run(from: live, to: scratch, displacement)
                try scratch.execute("ROLLBACK")
                try scratch.close()
            }
        } catch let error as MoultError where error.code == .databaseCorrupt && transfer.isForeign {
            // The update keeps a file of which no table can be read, unless it has to carry rows over.
            if transfer.mustCarry { throw MoultError.unreadable(transfer.database, nil, error) }
            return []
        }
        return displacement.fates
    }
}
