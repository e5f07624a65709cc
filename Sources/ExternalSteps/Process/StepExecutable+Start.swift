internal import Glibc
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox

extension StepExecutable {
    /// Starts it with the rights of a step, in a directory of its own. It ends with this process.
    func start(as name: String, _ rights: StepRights, scratch: String) throws -> Subprocess {
        // Some interpreters, as Perl, read from that very descriptor, where the last one has left it.
        guard !isScript || lseek(number, 0, SEEK_SET) == 0 else {
            throw MoultError(.stepTrust, what: "cannot run the step \(name)", why: "\(path) cannot be read again")
        }
        var command = Subprocess.Command([isScript ? path : name], in: scratch)
        command.executable = (number, isScript)
        command.wholeEnvironment = [
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": scratch, "TMPDIR": scratch,
            "MOULT_STEP": name, "MOULT_PROTOCOL": "1",
        ]
        command.confinement = try rights.enforced(scratch: scratch).confinement()
        (command.isGroup, command.endsWithParent, command.mountsReadOnly) = (true, true, rights.plans)
        do { return try Subprocess(command, input: .pipe) } catch let error as MoultError {
            throw MoultError(
                .stepTrust, what: "cannot run the step \(name): \(path)", why: error.why,
                now: (error.cause as? Errno) == .noEntry
                    ? "Install the interpreter that its first line names." : nil, cause: error)
        }
    }
}
