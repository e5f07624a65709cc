import MoultArchive
package import MoultBasics
import MoultFiles
import MoultRows
import MoultSQLite
import MoultTrust
import StepKit

/// Makes releases for tests with common programs: sqlite3, tar, zip.
package struct ReleaseMaker {
    package let directory: String
    package var product = "org.example.test"

    package init(in directory: String) throws {
        self.directory = directory
        try Files.ensureDirectory(directory)
    }

    /// A database of a release: its kind, and the SQL that creates it.
    package struct Source {
        package var name: String
        package var kind: String
        package var sql: String
        package var inPlace = false
        package var more: [JSON.Member] = []
        /// Members of the bundle, each with its SQL.
        package var migrations: KeyValuePairs<String, String> = [:]

        package static func reference(_ name: String, _ sql: String, inPlace: Bool = false, more: [JSON.Member] = [])
            -> Source
        {
            Source(name: name, kind: "reference", sql: sql, inPlace: inPlace, more: more)
        }
        package static func shared(_ name: String, _ sql: String, more: [JSON.Member]) -> Source {
            Source(name: name, kind: "shared", sql: sql, more: more)
        }
        package static func user(
            _ name: String, _ sql: String, migrations: KeyValuePairs<String, String> = [:], more: [JSON.Member] = []
        ) -> Source {
            Source(name: name, kind: "user", sql: sql, more: more, migrations: migrations)
        }
        /// Returns a cache with the digest of its schema, as in a sealed manifest.
        package static func cache(_ name: String, _ sql: String, more: [JSON.Member] = []) throws -> Source {
            let shape = try SchemaShape(madeBy: sql).canonicalText
            let schema = "sha256:\(try SHA256.digest(of: Array(shape.utf8)).hex)"
            let identity = JSON.Member("identity", ["schema": .string(schema)])
            return Source(name: name, kind: "cache", sql: sql, more: [identity] + more)
        }
    }

    package enum Format: String, CaseIterable, Sendable {
        /// The format of `pack`: apps without the command read it, too.
        case zst = "tar.zst"
        case xz = "tar.xz"
        case gz = "tar.gz"
        case tar
        case zip
    }

    /// Makes the bundle and the sealed manifest of a release; returns the path of the manifest.
    @discardableResult
    package func make(
        _ version: String, sequence: Int, _ sources: [Source], format: Format = .zst, top: [JSON.Member] = []
    ) throws -> String {
        let work = "\(directory)/\(version).work"
        try Files.removeTree(work)
        try Files.makeDirectory(work)
        var databases: [JSON.Member] = []
        var packed: [String] = []
        for source in sources {
            let file = "\(source.name).db"
            let path = source.inPlace ? "\(directory)/\(file)" : "\(work)/\(file)"
            try Files.remove(path)
            try Shell.must(["sqlite3", path], input: source.sql)
            if !source.inPlace { packed.append(file) }
            let size = try Files.facts(path)?.size ?? 0
            var members: [JSON.Member] = [
                .init("kind", .string(source.kind)), .init("member", .string(file)), .init("size", .size(size)),
                .init("sha256", .string(try SHA256.digest(ofFileAt: path).hex)),
            ]
            if source.inPlace { members.append(.init("place", "in-place")) }
            if !source.migrations.isEmpty {
                members.append(.init("migrations", try migrations(source.migrations, &packed, work)))
            }
            databases.append(.init(source.name, .object(members + source.more)))
        }
        var manifest: [JSON.Member] = [
            .init("manifest", 1), .init("product", .string(product)), .init("version", .string(version)),
            .init("sequence", .size(sequence)),
        ]
        if !packed.isEmpty { manifest.append(.init("bundle", try bundle(version, packed, work, format))) }
        manifest.append(.init("databases", .object(databases)))
        for member in top {
            if let index = manifest.firstIndex(where: { $0.name == member.name }) {
                manifest[index] = member
            } else {
                manifest.append(member)
            }
        }
        let path = "\(directory)/test-\(version).json"
        try Files.remove(path)
        try Files.writeNew(Array(JSON.object(manifest).pretty.utf8), to: path)
        return path
    }

    private func migrations(
        _ scripts: KeyValuePairs<String, String>, _ packed: inout [String], _ work: String
    ) throws -> JSON {
        .array(
            try scripts.map { member, sql in
                try Shell.must(["mkdir", "-p", Files.directory(of: "\(work)/\(member)")])
                try Files.writeNew(Array(sql.utf8), to: "\(work)/\(member)")
                packed.append(member)
                return [
                    "member": .string(member), "size": .size(sql.utf8.count),
                    "sha256": .string(try SHA256.digest(of: Array(sql.utf8)).hex),
                ]
            })
    }

    private func bundle(_ version: String, _ files: [String], _ work: String, _ format: Format) throws -> JSON {
        let name = "test-\(version).\(format.rawValue)"
        let path = "\(directory)/\(name)"
        try Files.remove(path)
        switch format {
        case .zst: try pack(files, work, path)
        case .xz, .gz, .tar: try Shell.must(["bsdtar", "-caf", path] + files, in: work)
        case .zip: try Shell.must(["zip", "-q", path] + files, in: work)
        }
        return .object(try facts(name, path))
    }

    private func facts(_ name: String, _ path: String) throws -> [JSON.Member] {
        [
            .init("file", .string(name)), .init("size", .size(try Files.facts(path)?.size ?? 0)),
            .init("sha256", .string(try SHA256.digest(ofFileAt: path).hex)),
        ]
    }

    private func pack(_ files: [String], _ work: String, _ path: String) throws {
        let members = try files.map { ($0, try Files.facts("\(work)/\($0)")?.size ?? 0) }
        let file = try Descriptor(path, .create, mode: 0o644)
        try ArchiveWriter(.tar(.zstd), members: members, modified: 0, level: 3).write {
            try file.write($0)
        } source: { index, write in
            try (Files.read("\(work)/\(files[index])", limit: 1 << 30) ?? []).withUnsafeBytes { try write($0) }
        }
        try file.close()
    }
}
