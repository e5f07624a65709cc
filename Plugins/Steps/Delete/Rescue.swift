internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Before a user's database is set aside, what can still be read of it is copied into a file that opens.
struct Rescue {
    let context: PrepareContext

    func prepare(_ effect: Effect) throws {
        guard case .quarantine(let path, _, _) = effect.change,
            let database = effect.database.flatMap(context.plan.release.database), database.kind != .cache
        else { return }
        let place = context.plan.store.path(path)
        // Somebody who has it open keeps it from being reset, and reading it from here would drop his locks.
        if try OpenFiles.isOpenHere(place) { return }
        try context.progress(.init("read what is left of \(database.name)", done: 0, total: 0))
        let scratch = "\(context.staging)/copies"
        let directory = "\(context.staging)/salvaged"
        for made in [scratch, directory] { try Files.makeDirectory(made, mode: 0o700) }
        let target = "\(directory)/\(Self.fileName)"
        var report: Salvage.Report
        do {
            report = try Salvage.run(
                place, template: context.plan.store.path(ofMember: database.member, in: context.plan.generation),
                to: target, scratch: scratch)
        } catch {
            // The reset is not about this: the set itself stays, and can be looked at later.
            report = Salvage.Report()
            report.note = "\(error)"
            try Files.remove(target)
        }
        if try Files.facts(target) != nil { try Files.seal(target, mode: 0o600) }
        try Files.writeNew(Array(report.json.pretty.utf8), to: "\(directory)/\(Self.reportName)", mode: 0o600)
        try Files.removeTree(scratch)
        try Files.syncDirectory(directory)
    }

    private static let fileName = "salvaged.db"
    private static let reportName = "salvaged.json"
}
