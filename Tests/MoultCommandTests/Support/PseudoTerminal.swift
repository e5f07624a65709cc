import CLinux
import MoultLibc
import Testing

/// The side of a pseudo-terminal that a terminal emulator uses.
final class PseudoTerminal {
    private let screen: Int32
    /// The side to which a program writes.
    let descriptor: Int32

    // The values of TIOCSPTLCK and TIOCGPTN, because Swift cannot import these macros.
    private static let unlock: UInt = 0x4004_5431
    private static let askNumber: UInt = 0x8004_5430

    init(columns: Int) throws {
        screen = moult_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY, 0)
        try #require(screen >= 0)
        var number: Int32 = 0
        try #require(ioctl(screen, Self.unlock, &number) == 0)
        try #require(ioctl(screen, Self.askNumber, &number) == 0)
        descriptor = moult_openat(AT_FDCWD, "/dev/pts/\(number)", O_RDWR | O_NOCTTY, 0)
        try #require(descriptor >= 0)
        // Reading does not block, because this process also runs the program under test.
        try #require(moult_fcntl_int(screen, F_SETFL, O_NONBLOCK) == 0)
        try resize(columns: columns)
    }

    func resize(columns: Int) throws {
        var size = winsize(ws_row: 24, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        try #require(ioctl(descriptor, UInt(TIOCSWINSZ), &size) == 0)
    }

    deinit {
        close(descriptor)
        close(screen)
    }

    /// Returns everything written since the last call.
    func read() -> String {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = MoultLibc.read(screen, &block, block.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += block[..<count]
        }
    }
}
