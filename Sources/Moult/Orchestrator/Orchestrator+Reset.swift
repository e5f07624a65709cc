package import MoultBasics
internal import MoultFiles
import MoultRows
package import MoultSQLite
internal import MoultSandbox
internal import StepKit

extension Orchestrator {
    package struct Reset: Sendable {
        package let database: String
        package let place: String
        /// The directory with the old files; nil if there were none.
        package let setAside: String?
        /// The report on the salvaged rows; nil for a cache.
        package let salvage: Salvage.Report?
        /// The file with the salvaged rows; nil if nothing could be read.
        package let salvaged: String?
        /// With `keepReadable`: what became of the readable rows of each table, and why a table could not be restored.
        package var restored: [RowFate] = []
        package var failures: [MoultError] = []

        /// Returns the command that repeats the salvage; nil if that would find no more rows.
        package func again(_ storeWords: [String]) -> String? {
            salvage?.mayBeRepeated == true
                ? shellLine(["moult", "reset", database, "--salvage-again"] + storeWords) : nil
        }

        package func json(_ storeWords: [String]) -> JSON {
            .record([
                "database": database, "path": place, "setAside": setAside, "salvaged": salvaged,
                "salvage": salvage?.json, "again": again(storeWords), "restored": restored.map(\.json).unlessEmpty,
                "failures": failures.map(\.description).unlessEmpty,
            ])
        }
    }

    package func planReset(_ name: String, why: String, setsUserDataAside: Bool) throws -> Plan {
        try planner(snapshot()).reset(name, why: why, setsUserDataAside: setsUserDataAside).plan
    }

    /// Sets a writable database of the installed release aside with all its sidecars, and creates a new one, whatever file is
    /// at its path. User data is set aside only with explicit permission; `keepingReadable` puts its readable rows back.
    /// `isNeeded` is evaluated under the store's lock, because another process may have reset the database in the meantime.
    package func reset(
        _ name: String, why: String, setsUserDataAside: Bool, keepingReadable: Bool = false, wait: Int = 0,
        isNeeded: () throws -> Bool = { true }, announce: (Plan) throws -> Void = { _ in }
    ) throws -> (result: Result, reset: Reset?) {
        let result = try locked(wait) { store, recovered in
            // If recovery has just finished the same reset, nothing is left to do: another one would set the new file aside.
            if let done = recovered.compactMap(\.finished).first(where: { $0.action == "reset \(name)" }) {
                return Result(plan: done, recovered: recovered, generation: try store.installedName)
            }
            guard try isNeeded() else { return Result(recovered: recovered, generation: try store.installedName) }
            return try execute(in: store, recovered: recovered, announce) {
                try planner($0).reset(name, why: why, setsUserDataAside: setsUserDataAside)
            }
        }
        var reset = result.plan.map { resetResult($0, name) }
        if keepingReadable, reset?.salvage?.rows != 0, let set = reset?.setAside.map(Files.name) {
            // The reset is complete, so an error here is a part of its result.
            do {
                let (rows, failures) = try restoreTables(of: set, wait: wait)
                reset?.restored = rows
                reset?.failures = failures
            } catch let error as MoultError where error.code != .interrupted { reset?.failures = [error] }
        }
        return (result, reset)
    }

    /// Salvages again from the newest set that a reset, an update or a repair put into quarantine for this database, and
    /// replaces the earlier result in the set. The set's database files do not change.
    package func salvageAgain(_ name: String, wait: Int = 0) throws -> Reset {
        var reset: Reset?
        _ = try locked(wait) { store, recovered in
            let installed = try store.installed
            let template = installed?.manifest.database(name).flatMap { installed?.path($0.member) }
            reset = try salvage(newestSet(of: name), template: template)
            return Result(recovered: recovered, generation: try store.installedName)
        }
        guard let reset else { throw noSet(of: name) }
        return reset
    }

    func newestSet(of name: String) throws -> QuarantineShelf.Set {
        guard let set = try quarantine().last(where: { $0.record?.database == name && !$0.isCache }) else {
            throw noSet(of: name)
        }
        return set
    }

    private func noSet(of name: String) -> MoultError {
        MoultError(
            .refused, .refused, what: "cannot salvage \(name) again",
            why: "\(layout.quarantine) has no user data of this database",
            now: "To see the installed databases: \(moult: "status")")
    }

    private func salvage(_ set: QuarantineShelf.Set, template: String?) throws -> Reset {
        guard let label = set.record else { throw noSet(of: Files.name(of: set.directory)) }
        // The record is untrusted: only the file name in its path is used, and no symlink is followed.
        let file = "\(set.directory)/\(label.keptName)"
        let what = "cannot salvage \(label.database) again"
        guard try Files.facts(file)?.kind == .file else {
            throw MoultError(
                .system, what: what, why: "\(file) is not a regular file",
                now: "The files that were set aside are in \(set.directory).")
        }
        let scratch = "\(set.directory)/\(QuarantineRecord.salvageScratch)"
        try Files.removeTree(scratch)
        let result = Swift.Result { () throws -> (Salvage.Report, found: Bool) in
            try Files.makeDirectory(scratch, mode: 0o700)
            let found = "\(scratch)/\(QuarantineRecord.salvaged)"
            let report = try Validator.available().salvage(
                file, name: label.database, template: template.flatMap { try Files.facts($0) == nil ? nil : $0 },
                to: found, scratch: scratch, stop: watcher.stopIfAsked)
            if report.mayBeRepeated {
                throw MoultError(
                    .system, what: what, why: report.note,
                    now: "Remove the cause (if the disk is full, free some space on the file system of "
                        + "\(set.directory)), then: " + "\(moult: "reset", label.database, "--salvage-again")")
            }
            let isFound = try Files.facts(found) != nil
            if isFound {
                try Files.seal(found, mode: 0o600)
                try Files.rename(found, to: "\(set.directory)/\(QuarantineRecord.salvaged)")
            } else {
                try Files.remove("\(set.directory)/\(QuarantineRecord.salvaged)")
            }
            try Files.replace(
                "\(set.directory)/\(QuarantineRecord.salvageReport)", with: Array(report.json.pretty.utf8), mode: 0o600)
            return (report, isFound)
        }
        do { try Files.removeTree(scratch) } catch {
            _ = try result.get()
            throw error
        }
        let (report, isFound) = try result.get()
        return Reset(
            database: label.database, place: label.path, setAside: set.directory, salvage: report,
            salvaged: isFound ? "\(set.directory)/\(QuarantineRecord.salvaged)" : nil)
    }

    static func salvageReport(in directory: String) throws -> Salvage.Report? {
        try Files.read("\(directory)/\(QuarantineRecord.salvageReport)", limit: 1 << 24).map {
            try Salvage.Report(json: JSON(parsing: $0, source: directory))
        }
    }

    private func resetResult(_ plan: Plan, _ name: String) -> Reset {
        let path = plan.stagedPaths.first ?? name
        let directory = layout.quarantined(name, path: path, by: plan.id)
        var (setAside, report, salvaged): (String?, Salvage.Report?, String?) = (nil, nil, nil)
        // The reset is already complete; a read error from here on does not change that.
        warning {
            guard try Files.facts(directory) != nil else { return }
            setAside = directory
            report = try Self.salvageReport(in: directory)
            // Rows are salvaged only if SQLite could not copy the file as a whole.
            let isSetAside = plan.effects.contains { if case .quarantine = $0.change { true } else { false } }
            if report == nil, isSetAside, try QuarantineRecord(in: directory).map({ !$0.kind.isDisposable }) == true {
                report = Salvage.Report()
                report?.note = "no disk space was left for a report"
                report?.mayBeRepeated = true
            }
            let file = "\(directory)/\(QuarantineRecord.salvaged)"
            if try Files.facts(file) != nil { salvaged = file }
        }
        return Reset(database: name, place: layout.file(path), setAside: setAside, salvage: report, salvaged: salvaged)
    }
}
