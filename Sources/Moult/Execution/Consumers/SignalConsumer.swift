internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

extension SignalConsumer: ConsumerChannel {
    var summary: String { "signal" }

    func canRelease(_ call: ConsumerCall) throws -> Bool {
        guard release != nil else { return false }
        if let process = try process(), try OpenFiles.isOpen(call.paths, in: process.pid) { return true }
        try requireUnused(call)
        return false
    }

    /// Throws if a process has a database open although the process of the PID file has not, or does not exist here: in another
    /// PID namespace, as in a container, the number belongs to another process, which must not get a signal.
    private func requireUnused(_ call: ConsumerCall) throws {
        for path in call.paths where try Files.factsThroughLinks(path)?.kind == .file {
            if try WriteLease.take(path) != nil { continue }
            throw ConsumerFault(
                "\(path) is open, but not in the process of \(pidFile), which may run in another PID namespace: no signal is sent"
            )
        }
    }

    /// Asks the process to release the databases. A signal has no reply, so the open files are checked: the process has
    /// released the databases when it has none of their files open.
    func release(_ call: ConsumerCall) throws {
        guard let release, let process = try process(), try send(release, to: process) else { return }
        while try OpenFiles.isOpen(call.paths, in: process.pid) {
            if call.isOver {
                throw ConsumerFault(
                    "\(ProcessFacts(pid: process.pid).description) still has a database open after \(release.rawValue)")
            }
            try call.stop()
            usleep(10_000)
        }
    }

    func reload(_ call: ConsumerCall) throws {
        // A process that has exited in the meantime opens the new databases at its next start.
        if let process = try process() { _ = try send(reload, to: process) }
    }

    private func send(_ signal: Signal, to process: SignalTarget) throws -> Bool {
        do { return try process.send(signal.number) } catch {
            throw ConsumerFault("cannot send \(signal.rawValue) to pid \(process.pid) from \(pidFile): \(error)")
        }
    }

    /// Returns the process that wrote the PID file; nil if it has exited.
    private func process() throws -> SignalTarget? {
        let found = try Files.resolutionForOpening(pidFile)
        guard let (bytes, facts) = try content(of: found.path) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        // `kill` sends a signal for zero or a negative number to several processes, and 1 is the init process.
        guard let pid = Int32(text), pid > 1 else { throw ConsumerFault("\(pidFile) does not contain a process ID") }
        // All checks below are about the process that is found here.
        guard let process = try SignalTarget.find(pid: pid) else { return nil }
        // A process that started after the file was written is a different one with the same PID; two seconds of clock
        // difference are tolerated.
        let running = ProcessFacts(pid: pid)
        guard let started = running.started else {
            try requireGone(process)
            return nil
        }
        guard started.seconds <= facts.modified.seconds + 2, let user = running.user else { return nil }
        // Without these checks, another user could choose which process gets the signal.
        let trusted = [0, geteuid(), user]
        func refused(_ why: String) -> ConsumerFault {
            let owner = "\(running.description) belongs to user \(Files.userName(user))"
            return ConsumerFault("\(pidFile) \(why), and \(owner): no signal is sent")
        }
        if let other = found.linkOwners.subtracting(trusted).min() {
            throw refused("leads through a link of user \(Files.userName(other))")
        }
        guard facts.mode & 0o002 == 0 else { throw refused("is writable by every user") }
        guard trusted.contains(facts.owner) else { throw refused("belongs to user \(Files.userName(facts.owner))") }
        return process
    }

    /// Returns the content and the metadata of one file: another user may exchange files in the directory at any time.
    private func content(of file: String) throws -> ([UInt8], FileFacts)? {
        guard let opened = try Descriptor.ifThere(file, .unlinked) else { return nil }
        guard try Files.target(ofLink: "\(SystemFeatures.proc)/self/fd/\(opened.number)") == file else {
            throw ConsumerFault("\(pidFile) was exchanged while it was read: no signal is sent")
        }
        let bytes = try [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
            count = try opened.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
        return (bytes, try opened.facts())
    }

    /// Throws if the process exists although `/proc` does not show it, as with `hidepid` or systemd's `ProtectProc=`: then its
    /// start time and its open files are unknown.
    private func requireGone(_ process: SignalTarget) throws {
        // A process of another user refuses the signal.
        if (try? process.send(0)) == false { return }
        throw ConsumerFault(
            "cannot see process \(process.pid) from \(pidFile), because /proc hides the processes of other users")
    }
}

extension SignalConsumer.Signal {
    fileprivate var number: Int32 {
        switch self {
        case .hangup: SIGHUP
        case .interrupt: SIGINT
        case .quit: SIGQUIT
        case .terminate: SIGTERM
        case .user1: SIGUSR1
        case .user2: SIGUSR2
        case .window: SIGWINCH
        }
    }
}
