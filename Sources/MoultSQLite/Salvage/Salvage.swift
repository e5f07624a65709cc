import MoultBasics
import MoultFiles
import MoultLibc

/// Copies the readable content of a damaged database into a separate file. Works on copies: the database and its sidecars stay
/// unchanged. Several methods are tried, because it is unknown which of these files is damaged: with the sidecars, without them,
/// and with the header of a valid file of the same kind.
package enum Salvage {
    /// Salvages rows into the new file `target`, which exists afterwards only if rows were found. `scratch` is an empty directory
    /// for copies, and `template` a valid file from which the database was created, if one exists. `read` salvages one copy into a
    /// new file in `scratch`: the copy may be malicious, so a process that has more to lose than the result lets another do that.
    package static func run(
        _ path: String, template: String?, to target: String, scratch: String,
        read: (_ copy: String, _ found: String) throws -> Reading = { try Reader($0, into: $1).read() }
    ) throws -> Report {
        guard try Files.factsThroughLinks(path)?.kind == .file else {
            var report = Report()
            report.note = "no file at \(path)"
            return report
        }
        let known = Self.tables(of: template)
        /// Returns a value for comparing reports. A sidecar of another database yields that database's tables, so rows in
        /// tables of the template count first.
        func value(_ report: Report) -> (Int, Int) {
            (report.tables.reduce(0) { $0 + (known.contains($1.name) ? $1.rows : 0) }, report.rows)
        }
        var best = Report()
        var mayBeRepeated = false
        for (number, prepare) in ways(path, template).enumerated() {
            let copy = "\(scratch)/copy-\(number).db"
            let found = "\(scratch)/found-\(number).db"
            do {
                try prepare(copy)
                let reading = try read(copy, found)
                let (report, isDamaged) = (reading.report, reading.isDamaged)
                try remove(copy)
                guard value(report) > value(best) || best.tables.isEmpty else {
                    try remove(found)
                    continue
                }
                best = report
                try Files.remove(target)
                try Files.rename(found, to: target)
                if !isDamaged, known.isEmpty || report.tables.contains(where: { known.contains($0.name) }) { break }
            } catch {
                for file in [copy, found] { try remove(file) }
                let why = (error as? TargetFailure)?.error.why ?? (error as? MoultError)?.why ?? "\(error)"
                if isExternalFailure(error) {
                    // The other methods are not tried: one that needs less space may also find less.
                    best.note = why
                    mayBeRepeated = true
                    break
                }
                // The fault of a disk may concern only the copy, or only a sidecar.
                if isInputFailure(error) { mayBeRepeated = true }
                if best.note == nil { best.note = why }
            }
        }
        best.mayBeRepeated = mayBeRepeated
        if best.rows == 0 { try Files.remove(target) }
        return best
    }

    /// Returns whether the cause of an error is outside the files, such as a full disk, an exhausted quota or too many open
    /// files.
    package static func isExternalFailure(_ error: any Error) -> Bool {
        if error is TargetFailure || error.sqlite?.resultCode.primary == .full { return true }
        let code = ((error as? MoultError)?.cause as? Errno)?.code
        return code.map { [ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM].contains($0) } ?? false
    }

    /// Returns whether a disk could not be read or written, which says nothing about the rows.
    private static func isInputFailure(_ error: any Error) -> Bool {
        if let code = error.sqlite?.resultCode.primary { return code == .ioError || code == .cannotOpen }
        return ((error as? MoultError)?.cause as? Errno)?.code == EIO
    }

    /// Removes a copy as soon as possible, because each copy is as large as the database.
    private static func remove(_ file: String) throws {
        for path in [file] + Sidecars.beside(file) { try Files.remove(path) }
    }

    /// Returns the names of a valid file's tables; empty if the file is not valid.
    private static func tables(of path: String?) -> Set<String> {
        guard let path else { return [] }
        // If the template is damaged, the next creation of a database from it reports that.
        let shape = try? SchemaShape(of: Connection(path: path, access: .immutable))
        return Set((shape?.tables ?? []).map(\.name))
    }

    private static func ways(_ path: String, _ template: String?) -> [(String) throws -> Void] {
        var ways: [(String) throws -> Void] = [
            { try NonInvasiveReader.copySet(path, to: $0) },
            { try Files.copy(path, to: $0, mode: 0o600) },
        ]
        if let template {
            ways.append {
                try Files.copy(path, to: $0, mode: 0o600)
                try copyHeader(of: template, to: $0)
            }
        }
        return ways
    }

    /// Replaces the header with the template's. If only the first bytes are damaged, this makes the rest of the file readable.
    private static func copyHeader(of template: String, to path: String) throws {
        let sound = try Descriptor(template, .read)
        var header = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
        _ = try header.withUnsafeMutableBytes { try sound.read(into: $0, at: 0) }
        try sound.close()
        let facts = try header.withUnsafeBytes { try DatabaseHeader($0, path: template) }
        let file = try Descriptor(path, .write)
        let pages = UInt32(try file.facts().size / facts.pageSize)
        func put(_ number: UInt32, at offset: Int) {
            for index in 0..<4 { header[offset + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
        }
        put(pages, at: 28)
        // The list of free pages in the header is the template's, so it is cleared.
        put(0, at: 32)
        put(0, at: 36)
        put(facts.changeCounter, at: 92)
        try header.withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
    }
}
