package import MoultBasics
import MoultFiles

/// Takes out of a database that will not load what can still be read, into a file of its own.
///
/// Works on copies: the broken set stays as it is. Several ways are tried, because nobody knows which part of the set is
/// the broken one: with its sidecars, without them, and with the header of a sound file of the same kind.
package enum Salvage {
    package struct Table: Equatable, Sendable {
        package let name: String
        package var rows: Int
        /// Whether all of it could be read.
        package var isWhole: Bool
    }

    package struct Report: Equatable, Sendable {
        package var tables: [Table] = []
        /// Why nothing, or not all, could be read.
        package var note: String?

        package var rows: Int { tables.reduce(0) { $0 + $1.rows } }
        package var isWhole: Bool { note == nil && tables.allSatisfy(\.isWhole) }

        package var json: JSON {
            .compact([
                "rows": .size(rows), "note": .optional(note),
                "tables": .array(
                    tables.map { ["name": .string($0.name), "rows": .size($0.rows), "whole": .bool($0.isWhole)] }),
            ])
        }

        package init() {}

        package init(json: JSON) {
            note = json["note"]?.string
            tables = (json["tables"]?.array ?? []).compactMap { table in
                guard let name = table["name"]?.string, let rows = table["rows"]?.integer else { return nil }
                return Table(name: name, rows: Int(rows), isWhole: table["whole"]?.bool ?? false)
            }
        }
    }

    /// Salvages into the new file `target`, which is only there afterwards if there was anything; `scratch` is an empty
    /// directory for copies, and `template` a sound file as the database was made from.
    package static func run(_ path: String, template: String, to target: String, scratch: String) throws -> Report {
        guard try Files.factsThroughLinks(path)?.kind == .file else {
            var report = Report()
            report.note = "there is no file at \(path)"
            return report
        }
        let known = Self.tables(of: template)
        /// A sidecar of another database brings that one's tables: those of the template count first.
        func value(_ report: Report) -> (Int, Int) {
            (report.tables.reduce(0) { $0 + (known.contains($1.name) ? $1.rows : 0) }, report.rows)
        }
        var best = Report()
        for (number, prepare) in ways(path, template).enumerated() {
            let copy = "\(scratch)/copy-\(number).db"
            let found = "\(scratch)/found-\(number).db"
            let report: Report
            do {
                try prepare(copy)
                report = try Reader(copy, into: found).read()
            } catch {
                if best.note == nil { best.note = (error as? MoultError)?.why ?? "\(error)" }
                continue
            }
            guard value(report) > value(best) || best.tables.isEmpty else { continue }
            best = report
            try Files.remove(target)
            try Files.rename(found, to: target)
            if report.isWhole, known.isEmpty || report.tables.contains(where: { known.contains($0.name) }) { break }
        }
        if best.rows == 0 { try Files.remove(target) }
        return best
    }

    /// The names of a sound file's tables; none if it is not sound either.
    private static func tables(of path: String) -> Set<String> {
        // What is wrong with it is told when the database is made from it again.
        let shape = try? SchemaShape(of: Connection(path: path, access: .immutable))
        return Set((shape?.tables ?? []).map(\.name))
    }

    private static func ways(_ path: String, _ template: String) -> [(String) throws -> Void] {
        [
            { try Look.copySet(path, to: $0) },
            { try Files.copy(path, to: $0, mode: 0o600) },
            {
                try Files.copy(path, to: $0, mode: 0o600)
                try giveHeader(of: template, to: $0)
            },
        ]
    }

    /// Where only the first bytes are torn, those of another file of the same kind make the rest readable.
    private static func giveHeader(of template: String, to path: String) throws {
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
        // The free pages of the other file are none of this one's.
        put(0, at: 32)
        put(0, at: 36)
        put(facts.changeCounter, at: 92)
        try header.withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
    }
}
