internal import MoultBasics
internal import MoultFiles
package import MoultStore
internal import StepKit

extension Plan {
    /// Returns the plan with a warning for each database whose rows the plan does not count because that would take long.
    package func warningOfUncountedRows(in layout: StoreLayout) throws -> Plan {
        var plan = self
        let advice =
            purpose == .rollback
            ? "the rollback itself counts them, and keeps those that do not fit in quarantine"
            : "to count them, repeat the command with --deep"
        for effect in effects {
            let (path, new, limit): (String, Int, Int)
            switch effect.change {
            case .replace(let content):
                (path, new, limit) = (
                    content.path, purpose == .rollback ? content.size : 0, PlanContext.largestCounted
                )
            case .migrate(let migrated, _, _, _, _):
                (path, new, limit) = (migrated, bundle?.size ?? 0, MigrationForecast.largest)
            default: continue
            }
            guard let live = try Files.factsThroughLinks(layout.file(path)) else { continue }
            guard max(live.size, new) > limit else { continue }
            plan.warnings.append(
                "not all rows of \(path) were counted, because more than \(ByteCount(limit)) would have to be read; \(advice)"
            )
        }
        return plan
    }
}
