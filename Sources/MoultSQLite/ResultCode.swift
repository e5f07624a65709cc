/// The result of a SQLite call: a primary code in the low byte, with detail above it. A primary code matches its extended codes
/// in a pattern: `case .busy` also matches `.busySnapshot`.
package struct ResultCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }
    package init(_ code: Int32) { rawValue = code }

    package var primary: ResultCode { ResultCode(rawValue & 0xff) }

    /// Returns true if the codes are equal, or the pattern is the primary code of the value.
    package static func ~= (pattern: ResultCode, value: ResultCode) -> Bool {
        pattern == value || pattern == value.primary
    }
}

extension ResultCode {
    package static let ok = Self(0)
    package static let error = Self(1)
    package static let busy = Self(5)
    package static let locked = Self(6)
    package static let noMemory = Self(7)
    package static let readOnly = Self(8)
    package static let interrupt = Self(9)
    package static let ioError = Self(10)
    package static let ioErrorWrite = Self(10 | 3 << 8)
    package static let corrupt = Self(11)
    package static let full = Self(13)
    package static let cannotOpen = Self(14)
    package static let lockingProtocol = Self(15)
    package static let tooBig = Self(18)
    package static let constraint = Self(19)
    package static let mismatch = Self(20)
    package static let unauthorized = Self(23)
    package static let range = Self(25)
    package static let notADatabase = Self(26)
    package static let row = Self(100)
    package static let done = Self(101)

    /// A write in WAL mode started from an outdated snapshot.
    package static let busySnapshot = Self(5 | 2 << 8)
    /// The WAL must be recovered, and this connection may not write the shared memory.
    package static let readOnlyRecovery = Self(8 | 1 << 8)
    /// The shared memory cannot be locked, because this connection may not write it.
    package static let readOnlyCannotLock = Self(8 | 2 << 8)
    /// A hot journal must be rolled back, and this connection may not write.
    package static let readOnlyRollback = Self(8 | 3 << 8)
    /// The file was renamed or unlinked while this connection had it open.
    package static let readOnlyMoved = Self(8 | 4 << 8)
    /// The shared memory is not initialized, and this connection may not write it.
    package static let readOnlyCannotInitialize = Self(8 | 5 << 8)
    /// No journal can be created in the directory.
    package static let readOnlyDirectory = Self(8 | 6 << 8)
}

extension ResultCode: CustomStringConvertible {
    /// SQLite's name for the code, such as `SQLITE_BUSY`, followed by the number if it has detail.
    package var description: String {
        let name = Self.names[primary.rawValue] ?? "SQLITE_\(primary.rawValue)"
        return self == primary ? name : "\(name), extended code \(rawValue)"
    }

    private static let names: [Int32: String] = [
        0: "SQLITE_OK", 1: "SQLITE_ERROR", 2: "SQLITE_INTERNAL", 3: "SQLITE_PERM", 4: "SQLITE_ABORT",
        5: "SQLITE_BUSY", 6: "SQLITE_LOCKED", 7: "SQLITE_NOMEM", 8: "SQLITE_READONLY", 9: "SQLITE_INTERRUPT",
        10: "SQLITE_IOERR", 11: "SQLITE_CORRUPT", 12: "SQLITE_NOTFOUND", 13: "SQLITE_FULL", 14: "SQLITE_CANTOPEN",
        15: "SQLITE_PROTOCOL", 16: "SQLITE_EMPTY", 17: "SQLITE_SCHEMA", 18: "SQLITE_TOOBIG",
        19: "SQLITE_CONSTRAINT", 20: "SQLITE_MISMATCH", 21: "SQLITE_MISUSE", 22: "SQLITE_NOLFS", 23: "SQLITE_AUTH",
        24: "SQLITE_FORMAT", 25: "SQLITE_RANGE", 26: "SQLITE_NOTADB", 27: "SQLITE_NOTICE", 28: "SQLITE_WARNING",
        100: "SQLITE_ROW", 101: "SQLITE_DONE",
    ]
}
