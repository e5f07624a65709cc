internal import CLinux
internal import MoultBasics
internal import MoultLibc

extension Subprocess {
    package enum Event {
        case output([UInt8])
        case errors([UInt8])
        /// The program has ended, and all of its earlier output was delivered.
        case ended
    }

    /// Waits for the next event; returns nil at the deadline, or if this process receives a signal.
    ///
    /// The last event is the end of the program itself, even if its background processes keep the output open.
    package func next(until deadline: ContinuousClock.Instant?) throws -> Event? {
        var isOver = false
        while true {
            // `poll` ignores negative descriptors.
            var polls = [output, errors, end].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            polls.append(pollfd(fd: pending.isEmpty ? -1 : input, events: Int16(POLLOUT), revents: 0))
            let count = poll(&polls, nfds_t(polls.count), isOver ? 0 : timeout(until: deadline))
            if count < 0 {
                guard moult_errno() == EINTR else { throw Errno(moult_errno()).error("cannot wait for \(name)") }
                return nil
            }
            if polls[3].revents != 0 { write() }
            if polls[0].revents != 0 {
                let bytes = try read(output)
                if !bytes.isEmpty { return .output(bytes) }
                close(&output)
            } else if polls[1].revents != 0 {
                let bytes = try read(errors)
                if !bytes.isEmpty { return .errors(bytes) }
                close(&errors)
            } else if isOver {
                return .ended
            } else if try polls[2].revents != 0 || (end < 0 && hasEnded()) {
                // All output that the program wrote before it ended is in the pipes by now.
                isOver = true
            } else if let deadline, ContinuousClock.now >= deadline {
                return nil
            }
        }
    }

    private func timeout(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard end < 0 else { return Threads.milliseconds(until: deadline) }
        return min(Threads.milliseconds(until: deadline ?? .now + .seconds(1)), Int32(MOULT_END_INTERVAL))
    }

    private func hasEnded() throws -> Bool {
        let answer = moult_has_ended(pid)
        if answer < 0 { throw Errno(moult_errno()).error("cannot wait for \(name)") }
        return answer == 1
    }

    private func read(_ number: Int32) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            count = try wrapped("cannot read the output of \(name)") { () throws(Errno) in
                try Syscall.read(number, bytes)
            }
        }
    }

    private func write() {
        let count = pending.withUnsafeBytes { moult_write_quietly(input, $0.baseAddress, $0.count) }
        if count > 0 {
            pending.removeFirst(count)
        } else if moult_errno() != EAGAIN, moult_errno() != EINTR {
            // The program no longer reads its input; its output or exit status shows why.
            closeInput()
        }
    }

    private func close(_ number: inout Int32) {
        MoultLibc.close(number)
        number = -1
    }
}
