internal import CLinux
internal import Glibc
internal import MoultBasics

/// Two ends of a pipe, closed at the end of their life.
struct Pipe: ~Copyable {
    let output: Int32
    private(set) var input: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard moult_pipe(&ends) == 0 else { throw Errno(moult_errno()).error("cannot make a pipe") }
        (output, input) = (ends[0], ends[1])
    }

    mutating func closeInput() {
        // Nothing was written through this end here, so close has nothing to report.
        if input >= 0 { Glibc.close(input) }
        input = -1
    }

    deinit {
        if input >= 0 { Glibc.close(input) }
        Glibc.close(output)
    }
}
