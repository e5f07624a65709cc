internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import MoultSandbox
internal import StepKit

/// Copies the readable rows of a user's database into a new file before the database is set aside.
struct RowSalvage {
    let context: PrepareContext

    func prepare(_ effect: Effect) throws {
        guard case .quarantine(let path, _, _) = effect.change,
            let database = effect.database.flatMap(context.plan.release.database), !database.kind.isDisposable
        else { return }
        let place = context.plan.store.path(path)
        // If this process itself has the file open, reading it here would drop its locks; the reset is then refused anyway.
        if try OpenFiles.isOpenHere(place) { return }
        let progress = PrepareContext.Progress("salvage the rows of \(database.name)", done: 0, total: 0)
        try context.progress(progress)
        let scratch = "\(context.staging)/copies"
        let directory = Staging.salvaged(in: context.staging)
        let target = "\(directory)/\(Staging.salvagedRows)"
        var report: Salvage.Report
        // A failure does not stop the reset: the set itself stays in quarantine, and the salvage can be repeated.
        do {
            for made in [scratch, directory] { try Files.makeDirectory(made, mode: 0o700) }
            report = try Validator.available().salvage(
                place, name: database.name,
                template: context.plan.store.path(ofMember: database.member, in: context.plan.generation),
                to: target, scratch: scratch
            ) { try context.progress(progress) }
            if try Files.facts(target) != nil { try Files.seal(target, mode: 0o600) }
        } catch {
            // A request to stop is not a failure of the salvage.
            try context.progress(progress)
            report = Salvage.Report(failure: error)
            try Files.remove(target)
        }
        try Files.removeTree(scratch)
        do {
            let bytes = Array(report.json.pretty.utf8)
            try Files.writeNew(bytes, to: "\(directory)/\(Staging.salvageReport)", mode: 0o600)
            try Files.syncDirectory(directory)
        } catch {
            guard Salvage.Report(failure: error).mayBeRepeated else { throw error }
            // Without a report of missing rows, the copy would look complete.
            try Files.removeTree(directory)
        }
    }
}
