internal import MoultBasics
internal import MoultFiles

/// Repairs a history that has unreadable lines, or whose path is occupied by something other than a file. Commands continue
/// without the history, and `moult recover` repairs it.
extension History {
    /// Returns whether the history is a file or missing. A link is refused when it is opened.
    static func isFile(_ layout: StoreLayout) throws -> Bool {
        try Files.facts(layout.history).map { $0.kind == .file || $0.kind == .link } ?? true
    }

    static func notAFile(_ path: String) -> MoultError { damaged(path, "it is not a regular file") }

    static func damaged(_ path: String, _ why: String) -> MoultError {
        MoultError(.store, what: "cannot read \(path)", why: why, now: "Repair the history with: \(moult: "recover")")
    }

    /// Returns a description of the damage to the history; nil if every line can be read.
    package static func fault(_ layout: StoreLayout) throws -> String? {
        do {
            let torn = try tornLines(layout)
            let lines = torn == 0 ? nil : "\(counted(torn, "line")) cannot be read"
            let parts = try parts(layout).filter { !$0.isReadable }.map { "\(try $0.place) cannot be read" }
            let faults = [lines].compactMap(\.self) + parts
            return faults.isEmpty ? nil : faults.joined(separator: "; ")
        } catch let error as MoultError where error.code == .store {
            return error.why
        }
    }

    /// Returns the number of unreadable lines in the part of the history that is not closed. A closed part has none.
    static func tornLines(_ layout: StoreLayout) throws -> Int {
        let reader = try HistoryReader(layout, withOlder: false)
        while try reader.next() != nil {}
        return reader.torn
    }

    /// Moves away anything at the path of the history that is not a file. Needs the store's lock. Returns the new path;
    /// nil if nothing had to be moved.
    package static func moveAway(_ layout: StoreLayout) throws -> String? {
        if try isFile(layout) { return nil }
        let moved = try movedPath(layout)
        try Files.rename(layout.history, to: moved)
        return moved
    }

    /// Writes a new history with the lines that can be read, and keeps the damaged file. Needs the store's lock.
    /// Returns the path of the damaged file; nil if every line can be read.
    static func dropDamagedLines(_ layout: StoreLayout) throws -> String? {
        if try tornLines(layout) == 0 { return nil }
        let moved = try movedPath(layout)
        let new = "\(layout.history).new"
        try Files.remove(new)
        let file = try Descriptor(new, .create, mode: 0o644)
        try file.setMode(0o644)
        try copyLines(of: layout.history, to: file)
        try file.sync()
        try file.close()
        // The readable lines must be available at every moment.
        if try !Files.hardLinkIfPossible(layout.history, at: moved) { try Files.rename(layout.history, to: moved) }
        try Files.rename(new, to: layout.history)
        try Files.syncDirectory(layout.hidden)
        return moved
    }

    private static func movedPath(_ layout: StoreLayout) throws -> String {
        try Files.firstFree("\(layout.root)/\(Files.name(of: layout.history)).damaged")
    }

    /// Copies the readable lines. Reads block by block, because a damaged file may have any size.
    private static func copyLines(of path: String, to new: borrowing Descriptor) throws {
        let file = try Descriptor(path, .record)
        var block = [UInt8](repeating: 0, count: 1 << 16)
        var line: [UInt8] = []
        while case let count = try block.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
            var rest = block[..<count]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                line += rest[..<end]
                rest = rest[(end + 1)...]
                if isEntry(line) { try new.write(line + [UInt8(ascii: "\n")]) }
                line.removeAll(keepingCapacity: true)
            }
            // No entry is this long, so the rest of the line is dropped.
            if line.count <= HistoryReader.longestLine { line += rest }
        }
    }

    private static func isEntry(_ line: [UInt8]) -> Bool {
        guard line.count <= HistoryReader.longestLine else { return false }
        // The reason why the line cannot be read does not matter.
        return (try? JSON(parsing: line, source: "")).map { Entry(json: $0) != nil } ?? false
    }
}
