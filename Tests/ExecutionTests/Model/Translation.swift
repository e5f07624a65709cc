import MoultBasics
import MoultFiles

/// Translates system calls in one directory to operations, and tracks the file of each path.
struct Translation {
    private let directory: String
    private(set) var disk: UnsyncedDisk
    private(set) var operations: [FileOperation] = []
    /// The offset of the next `write`.
    private var offsets: [Open: Int] = [:]
    private var appending: Set<Open> = []

    private struct Open: Hashable {
        let descriptor: Int
        let file: Disk.ID
    }

    init(_ directory: String, _ disk: Disk) { (self.directory, self.disk) = (directory, UnsyncedDisk(disk)) }

    mutating func add(_ call: TracedCall) throws {
        switch call.name {
        case "open": try open(call, flags: 1)
        case "openat", "openat2": try open(call, flags: 2)
        case "write", "pwrite64", "lseek", "ftruncate", "fallocate", "fsync", "fdatasync": try file(call)
        case "rename": try rename(call, call.path(0), call.path(1), "0")
        case "renameat", "renameat2":
            try rename(
                call, call.path(1, at: 0), call.path(3, at: 2), call.arguments.count > 4 ? call.arguments[4] : "0")
        case "link": try link(call.path(0), call.path(1))
        case "linkat": try link(call.path(1, at: 0), call.path(3, at: 2))
        case "symlink": try symlink(call.bytes(0), call.path(1))
        case "symlinkat": try symlink(call.bytes(0), call.path(2, at: 1))
        case "unlink", "rmdir": if let path = try below(call.path(0)) { try perform(.remove(path)) }
        case "unlinkat": if let path = try below(call.path(1, at: 0)) { try perform(.remove(path)) }
        case "mkdir": if let path = try below(call.path(0)) { try perform(.makeDirectory(path)) }
        case "mkdirat": if let path = try below(call.path(1, at: 0)) { try perform(.makeDirectory(path)) }
        default:
            // A call that the model does not know must not refer to the directory.
            guard call.arguments.allSatisfy({ !$0.contains(Self.hexadecimal(directory)) }) else {
                throw Disk.wrong("the model does not know the call \(call.name)")
            }
        }
    }

    private mutating func perform(_ operation: FileOperation) throws {
        try disk.perform(operation)
        operations.append(operation)
    }

    /// Returns the part of a path below the directory; nil for any other path.
    private func below(_ path: String) -> String? {
        if path == directory { return "" }
        return path.hasPrefix("\(directory)/") ? String(path.dropFirst(directory.utf8.count + 1)) : nil
    }

    private static func hexadecimal(_ text: String) -> String {
        text.utf8.map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    // MARK: calls

    private mutating func open(_ call: TracedCall, flags: Int) throws {
        guard let opened = call.opened, let path = below(opened), !isSharedMemory(path) else { return }
        // `openat2` has its flags in a structure: `{flags=O_RDWR|O_CREAT, mode=0600, ...}`.
        let flags = call.arguments[flags].trimmingPrefix("{flags=").split(separator: "|")
        if flags.contains("O_CREAT"), try disk.live.id(path) == nil { try perform(.makeFile(path)) }
        guard let file = try disk.live.id(path) else {
            throw Disk.wrong("\(path) was opened, but does not exist in the model")
        }
        if flags.contains("O_TRUNC"), !disk.live.content(file).isEmpty { try perform(.resize(path, to: 0)) }
        let open = Open(descriptor: call.result, file: file)
        offsets[open] = 0
        if flags.contains("O_APPEND") { appending.insert(open) } else { appending.remove(open) }
    }

    /// Returns whether a file is shared memory, which SQLite writes without system calls, and recreates when needed.
    private func isSharedMemory(_ path: String) -> Bool { path.hasSuffix("-shm") }

    private mutating func file(_ call: TracedCall) throws {
        let place = try call.described(0)
        guard let path = below(place.path), !place.isGone, !isSharedMemory(path) else { return }
        guard let file = try disk.live.id(path) else {
            throw Disk.wrong("\(call.name): \(path) does not exist in the model")
        }
        let open = Open(descriptor: place.number, file: file)
        switch call.name {
        case "write":
            let offset = appending.contains(open) ? disk.live.content(file).count : offsets[open] ?? 0
            try perform(.write(path, at: offset, Array(call.bytes(1).prefix(call.result))))
            offsets[open] = offset + call.result
        case "pwrite64": try perform(.write(path, at: call.number(3), Array(call.bytes(1).prefix(call.result))))
        case "lseek": offsets[open] = call.result
        case "ftruncate": try perform(.resize(path, to: call.number(1)))
        case "fallocate":
            let size = try call.number(2) + call.number(3)
            guard call.arguments[1] == "0" else { throw Disk.wrong("it does not know such a fallocate") }
            if size > disk.live.content(file).count { try perform(.resize(path, to: size)) }
        default: try perform(.sync(path))
        }
    }

    private mutating func rename(_ call: TracedCall, _ old: String, _ new: String, _ flags: Substring) throws {
        guard let from = below(old), let to = below(new), !isSharedMemory(from) else { return }
        if flags.contains("RENAME_EXCHANGE") { return try perform(.exchange(from, to)) }
        try perform(.rename(from, to: to))
    }

    private mutating func link(_ old: String, _ new: String) throws {
        guard let from = below(old), let to = below(new), !isSharedMemory(from) else { return }
        try perform(.name(from, as: to))
    }

    private mutating func symlink(_ target: [UInt8], _ path: String) throws {
        guard let path = below(path) else { return }
        try perform(.makeLink(path, to: String(decoding: target, as: UTF8.self)))
    }
}
