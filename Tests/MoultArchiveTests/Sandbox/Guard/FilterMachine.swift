import Testing

/// Evaluates a seccomp filter as the kernel does, to test calls that must not be made.
struct FilterMachine {
    let program: [UInt64]

    enum Answer: Equatable {
        case allow
        case error(Int)
        case kill
    }

    private static let architecture: UInt32 = {
        #if arch(x86_64)
            0xc000_003e
        #else
            0xc000_00b7
        #endif
    }()

    /// Returns the kernel's answer to a call with these six arguments; nil if the program is invalid.
    func answer(_ number: Int, _ arguments: [UInt64], architecture: UInt32 = architecture) -> Answer? {
        func word(at offset: Int) -> UInt32? {
            switch offset {
            case 0: return UInt32(truncatingIfNeeded: number)
            case 4: return architecture
            case 8, 12: return 0
            case 16..<64:
                let argument = arguments[(offset - 16) / 8]
                return UInt32(truncatingIfNeeded: offset % 8 == 0 ? argument : argument >> 32)
            default: return nil
            }
        }
        return program.withUnsafeBufferPointer { run($0, word) }
    }

    private func run(_ program: UnsafeBufferPointer<UInt64>, _ word: (Int) -> UInt32?) -> Answer? {
        var accumulator: UInt32 = 0
        var next = 0
        while next < program.count {
            let instruction = program[next]
            let value = UInt32(instruction >> 32)
            let (whenTrue, whenFalse) = (Int(instruction >> 16 & 0xff), Int(instruction >> 24 & 0xff))
            next += 1
            switch instruction & 0xffff {
            case 0x20:
                guard let loaded = word(Int(value)) else { return nil }
                accumulator = loaded
            case 0x54: accumulator &= value
            case 0x05: next += Int(value)
            case 0x15: next += accumulator == value ? whenTrue : whenFalse
            case 0x25: next += accumulator > value ? whenTrue : whenFalse
            case 0x35: next += accumulator >= value ? whenTrue : whenFalse
            case 0x45: next += accumulator & value != 0 ? whenTrue : whenFalse
            case 0x06:
                switch value & 0xffff_0000 {
                case 0x7fff_0000: return .allow
                case 0x0005_0000: return .error(Int(value & 0xffff))
                case 0x8000_0000: return .kill
                default: return nil
                }
            default: return nil
            }
        }
        return nil
    }
}
