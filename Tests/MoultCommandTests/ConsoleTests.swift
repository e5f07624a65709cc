import CLinux
import MoultLibc
import Testing

@testable import MoultCommand

@Suite struct ConsoleTests {
    private func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        try #require(MoultLibc.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    private func console(out: Int32, err: Int32 = STDERR_FILENO) -> Console {
        Console(environment: Environment([:]), out: out, err: err)
    }

    @Test func `results are written immediately`() throws {
        let (read, write) = try pipe()
        defer { close(read) }
        try #require(moult_fcntl_int(read, F_SETFL, O_NONBLOCK) == 0)
        let console = console(out: write)
        console.write("one\n")
        console.write("two\n")
        var block = [UInt8](repeating: 0, count: 100)
        #expect(MoultLibc.read(read, &block, block.count) == -1)
        #expect(console.finish() == nil)
        close(write)
        let count = MoultLibc.read(read, &block, block.count)
        #expect(String(decoding: block.prefix(count), as: UTF8.self) == "one\ntwo\n")
    }

    @Test func `writing to a closed pipe is not a failure`() throws {
        _ = signal(SIGPIPE, SIG_IGN)
        let (read, write) = try pipe()
        close(read)
        let console = console(out: write)
        console.write("one\n")
        console.flush()
        console.write("two\n")
        #expect(console.finish() == nil)
        close(write)
    }

    @Test func `writing to a full disk is a failure`() throws {
        let full = moult_openat(AT_FDCWD, "/dev/full", O_WRONLY, 0)
        try #require(full >= 0)
        defer { close(full) }
        let console = console(out: full)
        console.write("one\n")
        #expect(console.finish() == ENOSPC)
    }

    /// A pipe holds 64 KiB, so the console must continue a write to a non-blocking pipe where the write stopped.
    @Test func `all output is written even to a non-blocking descriptor`() throws {
        let (read, write) = try pipe()
        try #require(moult_fcntl_int(write, F_SETFL, O_NONBLOCK) == 0)
        let reader = Reader(read)
        let console = console(out: write)
        let line = String(repeating: "x", count: 99) + "\n"
        for _ in 0..<10_000 { console.write(line) }
        #expect(console.finish() == nil)
        close(write)
        #expect(reader.wait() == 1_000_000)
    }

    /// Counts the bytes read from a descriptor, on a separate thread.
    private final class Reader {
        private let descriptor: Int32
        private var thread = pthread_t()
        private var count = 0

        init(_ descriptor: Int32) {
            self.descriptor = descriptor
            let argument = Unmanaged.passUnretained(self).toOpaque()
            pthread_create(
                &thread, nil,
                { argument in
                    if let argument { Unmanaged<Reader>.fromOpaque(argument).takeUnretainedValue().readAll() }
                    return nil
                }, argument)
        }

        private func readAll() {
            var block = [UInt8](repeating: 0, count: 4096)
            while true {
                let more = MoultLibc.read(descriptor, &block, block.count)
                guard more > 0 else { return }
                count += more
            }
        }

        func wait() -> Int {
            pthread_join(thread, nil)
            close(descriptor)
            return count
        }
    }
}
