internal import MoultPublish
internal import MoultSandbox

extension Call {
    /// Runs the verb, or the part of it that is left, in a process of its own: for what opens databases that may mean harm.
    ///
    /// `body` is called in that process, and says by `confine` which databases those are. `collect` is called in this one
    /// afterwards, with the directory where the other could leave files.
    func secluded(
        _ what: String, collect: (_ scratch: String) throws -> Void = { _ in }, body: () throws -> ExitCode
    ) throws -> ExitCode {
        Interruption.watch()
        let status = try Interruption.telling("stopped") {
            try SandboxedReexec.carryOut(what, isStopping: { Interruption.isRequested }, body: collect)
        }
        return try status.map { ExitCode(rawValue: $0) } ?? body()
    }

    /// From here on this process, if it is one of its own, reads these databases and little else.
    func confine(to subjects: Subject...) throws {
        try SandboxedReexec.confine(to: subjects.flatMap(\.parts).compactMap(\.path))
    }
}
