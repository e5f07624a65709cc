package import MoultBasics
internal import MoultFiles
package import MoultSQLite
internal import StepKit

extension Orchestrator {
    /// What became of a database that was reset.
    package struct Reset: Sendable {
        package let database: String
        package let place: String
        /// Where the old files are; nil if there were none.
        package let setAside: String?
        /// What could still be read of them; nil for a cache.
        package let salvage: Salvage.Report?
        /// The file with it; nil if nothing could be read.
        package let salvaged: String?

        package var json: JSON {
            .compact([
                "database": .string(database), "path": .string(place), "setAside": .optional(setAside),
                "salvaged": .optional(salvaged), "salvage": salvage?.json,
            ])
        }
    }

    package func planReset(_ name: String, why: String, setsUserDataAside: Bool) throws -> Plan {
        try planner.reset(name, why: why, setsUserDataAside: setsUserDataAside).plan
    }

    /// Sets a living database of the installed release aside, with everything beside it, and makes a fresh one; works
    /// whatever is at its path. What people wrote is set aside only on their word.
    ///
    /// `isNeeded` is asked under the store's lock: another process may have done it meanwhile.
    package func reset(
        _ name: String, why: String, setsUserDataAside: Bool, wait: Int = 0, isNeeded: () throws -> Bool = { true },
        announce: (Plan) throws -> Void = { _ in }
    ) throws -> (result: Result, reset: Reset?) {
        let result = try locked(wait) { settled in
            guard try isNeeded() else {
                return Result(settled: settled, generation: try Generation.currentName(layout))
            }
            return try execute(
                planner.reset(name, why: why, setsUserDataAside: setsUserDataAside), settled: settled, announce)
        }
        return (result, result.plan.map { made($0, name) })
    }

    private func made(_ plan: Plan, _ name: String) -> Reset {
        let path = plan.made.first ?? name
        let directory = layout.quarantined(name, path: path, by: plan.id)
        var (setAside, report, salvaged): (String?, Salvage.Report?, String?) = (nil, nil, nil)
        // It is done: what cannot be read now changes nothing about that.
        warning {
            guard try Files.facts(directory) != nil else { return }
            setAside = directory
            report = try Files.read("\(directory)/\(SetAside.reportName)", limit: 1 << 24).map {
                try Salvage.Report(json: JSON(parsing: $0, source: directory))
            }
            let file = "\(directory)/\(SetAside.salvagedName)"
            if try Files.facts(file) != nil { salvaged = file }
        }
        return Reset(
            database: name, place: layout.file(path), setAside: setAside, salvage: report, salvaged: salvaged)
    }
}
