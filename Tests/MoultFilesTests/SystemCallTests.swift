import CLinux
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Calls that Swift makes through the C target, tested with the real kernel.
@Suite struct SystemCallTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func `renameat2 exchanges two names, and can refuse to replace one`() throws {
        let (one, other) = (scratch.path("one"), scratch.path("other"))
        try Files.writeNew([1], to: one)
        try Files.writeNew([2], to: other)
        #expect(moult_renameat2(AT_FDCWD, one, AT_FDCWD, other, MOULT_RENAME_NOREPLACE) == -1)
        #expect(moult_errno() == EEXIST)
        #expect(moult_renameat2(AT_FDCWD, one, AT_FDCWD, other, MOULT_RENAME_EXCHANGE) == 0)
        #expect(try Files.read(one, limit: 9) == [2])
        #expect(try Files.read(other, limit: 9) == [1])
    }

    @Test func `the root of a mount is distinguished from a directory`() throws {
        #expect(moult_is_mount_root("/proc") == 1)
        #expect(moult_is_mount_root(scratch.path) == 0)
        #expect(moult_is_mount_root(scratch.path("none")) == -1)
        #expect(moult_errno() == ENOENT)
    }

    @Test func `the creation time of a file can be read`() throws {
        let path = scratch.path("file")
        let before = time(nil)
        try Files.writeNew([1], to: path)
        var (seconds, nanoseconds) = (Int64(0), UInt32(0))
        let result = moult_birth(path, &seconds, &nanoseconds)
        if result == 0 { #expect((Int64(before) - 1...Int64(time(nil)) + 1).contains(seconds)) }
        #expect(result >= 0)
    }

    @Test func `writing to a closed pipe is an error and not a signal`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(moult_pipe(&ends) == 0)
        close(ends[0])
        #expect(moult_write_quietly(ends[1], [1], 1) == -1)
        #expect(moult_errno() == EPIPE)
        close(ends[1])
        // A pending signal would end the test process.
        var pending = sigset_t()
        #expect(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 0)
    }

    @Test func `a sealed file in memory cannot be changed`() {
        let file = moult_memfd_sealable()
        defer { close(file) }
        #expect(write(file, [1, 2], 2) == 2)
        #expect(moult_seal_memfd(file) == 0)
        #expect(pwrite(file, [9], 1, 0) == -1)
        #expect(moult_errno() == EPERM)
        #expect(ftruncate(file, 0) == -1)
    }

    @Test func `pipes and memory files are closed in child processes`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(moult_pipe(&ends) == 0)
        let memory = moult_memfd()
        for number in ends + [memory] {
            #expect(moult_fcntl_int(number, F_GETFD, 0) & FD_CLOEXEC != 0)
            close(number)
        }
    }

    @Test func `attributes are set, listed and removed`() throws {
        // /tmp may be a tmpfs, which does not support user attributes.
        let scratch = try Scratch(in: "/var/tmp")
        let path = scratch.path("file")
        try Files.writeNew([1], to: path)
        guard moult_setxattr(path, "user.moult", [UInt8]([1, 2, 3]), 3) == 0 else {
            return #expect(moult_errno() == ENOTSUP)
        }
        var value = [UInt8](repeating: 0, count: 8)
        #expect(moult_getxattr(path, "user.moult", &value, 8) == 3)
        #expect(Array(value.prefix(3)) == [1, 2, 3])
        #expect(moult_listxattr(path, nil, 0) > 0)
        #expect(moult_removexattr(path, "user.moult") == 0)
        #expect(moult_getxattr(path, "user.moult", &value, 8) == -1)
    }

    @Test func `the error for a program that cannot start names the failed part`() {
        var (group, isReadOnly, failure) = (Int32(0), Int32(0), moult_child_failure())
        var child = moult_child()
        (child.input, child.output, child.errors, child.lifeline, child.executable) = (0, 1, 2, -1, -1)
        let words: [UnsafeMutablePointer<CChar>?] = [strdup("none"), nil]
        defer { free(words[0]) }
        let started = words.withUnsafeBufferPointer { words in
            "/none".withCString { program in
                (child.program, child.arguments, child.environment) = (program, words.baseAddress, words.baseAddress)
                return moult_start(&child, &group, &isReadOnly, &failure)
            }
        }
        #expect(started == -1)
        #expect(failure.part == Int32(MOULT_PART_PROGRAM))
        #expect(failure.code == ENOENT)
    }

    #if DEBUG
        @Test func `an error of the disk does not count as a missing permission`() throws {
            let scratch = try Scratch()
            let file = scratch.path("file")
            #expect(try !Files.isReadable(file))
            try Files.writeNew([1], to: file)
            #expect(try Files.isReadable(file) && Files.isWritable(file))
            let faults = Faults(failAt: 1, code: EIO, keepsFailing: true)
            Faults.$current.withValue(faults) {
                for ask in [Files.isReadable, Files.isWritable] {
                    let error = #expect(throws: MoultError.self) { try ask(file) }
                    #expect(error?.cause as? Errno == Errno(EIO))
                }
            }
        }
    #endif
}
