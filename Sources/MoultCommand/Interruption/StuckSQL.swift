internal import Moult
internal import MoultBasics
internal import MoultLibc
internal import MoultSQLite
internal import MoultSandbox

/// Ends the command if SQLite does not return after a signal or a deadline. The end of the process releases all locks, and the
/// next command recovers.
enum StuckSQL {
    static func watch(reportingTo output: Output) {
        SQLWatchdog.enable(confinesLater: SandboxedReexec.isEntered, isStopRequested: { Interruption.isRequested }) {
            finding in
            let error = error(for: finding, isDecided: OpenDecision.exists)
            output.report(error)
            // The exit status matters more than results that cannot be written.
            _ = output.console.finish()
            _exit(ErrorReport(error).status.rawValue)
        }
    }

    static func error(for finding: SQLWatchdog.Finding, isDecided: Bool) -> MoultError {
        var error =
            switch finding.reason {
            case .stop:
                MoultError(
                    .interrupted, what: "interrupted while SQLite worked on \(finding.path)",
                    why:
                        "moult received \(Interruption.name ?? "a signal"), and a function in the SQL of a database did not end within 2 s"
                )
            case .deadline:
                MoultError(
                    .deadline, what: "a statement on \(finding.path) was stopped",
                    why: "it exceeded its time limit in a single function of SQLite")
            }
        if isDecided {
            error.outcome = .stuck
            error.now = "The update is not finished. The next command that changes the store finishes or undoes it."
        } else {
            error.now =
                "Nothing was changed. The next command removes the temporary files; then find the generated column, index, trigger or "
                + "check of the database that makes SQLite so slow."
        }
        return error
    }
}
