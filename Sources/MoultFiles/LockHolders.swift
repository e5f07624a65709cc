internal import Glibc

/// A process as `/proc` shows it.
package struct ProcessFacts: Sendable, Equatable {
    package let pid: Int32
    /// The command line; the kernel's name of the process where there is none.
    package let command: String

    package init(pid: Int32) {
        self.pid = pid
        // A process may end while we look; then there is nothing more to say than its number.
        let line = (try? Files.read("/proc/\(pid)/cmdline", limit: 1 << 16)) ?? []
        let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        if words.isEmpty {
            let name = (try? Files.read("/proc/\(pid)/comm", limit: 1 << 10)) ?? []
            command = String(decoding: name, as: UTF8.self).trimmingSuffix { $0 == "\n" }
        } else {
            command = words.joined(separator: " ")
        }
    }

    /// For people, on one line, whatever the process calls itself.
    package var description: String {
        let line = String(String.UnicodeScalarView(command.unicodeScalars.map { $0.value < 32 ? " " : $0 }).prefix(120))
        return "pid \(pid) (\(line.isEmpty ? "unknown" : line))"
    }
}

extension String {
    func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> String {
        var text = Substring(self)
        while let last = text.last, isTrimmed(last) { text.removeLast() }
        return String(text)
    }
}

/// Who holds a `flock`, from the kernel's table `/proc/locks`.
package enum LockHolders {
    package static func of(_ path: String) throws -> [ProcessFacts] {
        guard let facts = try Files.factsThroughLinks(path) else { return [] }
        let table = String(decoding: try Files.read("/proc/locks", limit: 1 << 24) ?? [], as: UTF8.self)
        return holders(of: facts, in: table).map { ProcessFacts(pid: $0) }
    }

    /// A line: `1: FLOCK  ADVISORY  WRITE 1234 fe:00:2621459 0 EOF`; a waiting process has `->` before the kind.
    static func holders(of facts: FileFacts, in table: String) -> [Int32] {
        let (major, minor) = ((facts.device >> 8) & 0xfff, (facts.device & 0xff) | ((facts.device >> 12) & 0xfff00))
        func hex(_ number: UInt64) -> String {
            let text = String(number, radix: 16)
            return text.count < 2 ? "0" + text : text
        }
        let wanted = "\(hex(major)):\(hex(minor)):\(facts.inode)"
        var pids: [Int32] = []
        for line in table.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "FLOCK", words[5] == wanted, let pid = Int32(words[4]) else { continue }
            if !pids.contains(pid) { pids.append(pid) }
        }
        return pids
    }
}
