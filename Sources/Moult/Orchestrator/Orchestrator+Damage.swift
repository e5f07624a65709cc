internal import MoultBasics
internal import MoultSQLite
internal import StepKit

extension Orchestrator {
    /// Turns SQLite errors about a damaged database into refusals, like the faults that the checks find.
    ///
    /// Errors after the decision already have a different outcome, and stay unchanged.
    func refusingDamage<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError
            where error.code == .databaseCorrupt && error.outcome == .failed
        {
            var refusal = error
            refusal.outcome = .refused
            if refusal.now == nil {
                refusal.now =
                    "Nothing was changed. To check the database: "
                    + "\(run: ["moult", "verify"] + (damagedDatabase(error).map { [$0] } ?? []))"
            }
            throw refusal
        }
    }

    private func damagedDatabase(_ error: MoultError) -> String? {
        // The name is additional information: if the store cannot be read, that must not hide the error.
        let store = snapshot()
        guard let path = error.sqlite?.path, let installed = try? store.installed else { return nil }
        return installed.manifest.databases.first { (try? store.place(of: $0)) == path }?.name
    }
}
