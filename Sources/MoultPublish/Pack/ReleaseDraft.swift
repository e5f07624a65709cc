package import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
package import StepKit

/// The draft of a release that consists of database files, for publishers who have not written one. Values that are not given
/// are taken from the previous release, or chosen so that no data can be lost.
package struct ReleaseDraft {
    package var product: String?
    package var version: Version?
    package var kinds: [String: Database.Kind] = [:]
    private let output: String
    private let files: [String]

    package init(of files: [String], for output: String) { (self.files, self.output) = (files, output) }

    /// Returns whether a file is a database, and not a draft.
    package static func isDatabase(_ path: String) throws -> Bool {
        try Files.factsThroughLinks(path)?.kind == .file && DatabaseHeader.begins(Files.beginning(of: path, count: 16))
    }

    /// Returns the databases in a directory, in the order of their names; the path itself if it is not a directory with databases.
    package static func databases(at path: String) throws -> [String] {
        guard try Files.factsThroughLinks(path)?.kind == .directory else { return [path] }
        let files = try Files.list(path).filter { !$0.hasPrefix(".") }.sorted().map {
            "\(path.withoutFinalSlashes)/\($0)"
        }
        let databases = try files.filter(isDatabase)
        return databases.isEmpty ? [path] : databases
    }

    /// Returns why a file can be neither a database nor a draft; nil if it may be one.
    package static func misfit(_ path: String) throws -> String? {
        guard let facts = try Files.factsThroughLinks(path) else { return "no such file" }
        switch facts.kind {
        case .directory: return "the directory has no SQLite database"
        case .file where facts.size == 0: return "it is empty"
        case .file where try isDatabase(path): return nil
        default: break
        }
        // A draft is an object, perhaps after comments or a byte order mark.
        let start = try Files.beginning(of: path, count: 256).drop {
            [0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0)
        }
        guard let first = start.first, first != UInt8(ascii: "{"), first != UInt8(ascii: "/") else { return nil }
        return "it is neither a SQLite database nor a draft, which is JSON"
    }

    package func json(in directory: String) throws -> JSON {
        let before = try EarlierRelease.newest(in: output, of: product)
        guard let product = product ?? before?.manifest.product else {
            throw refusal(
                "the release has no product", "\(output) has no earlier release",
                "Specify the directory with the earlier releases, such as a feed: --output DIR. For a first release, set the product in reverse DNS: --product org.example.app"
            )
        }
        var databases: [JSON.Member] = []
        for file in files {
            let name = try Self.name(of: file)
            if databases.contains(where: { $0.name == name }) {
                throw refusal("two files would both be the database \"\(name)\"", file, "Rename one, or write a draft.")
            }
            databases.append(.init(name, try database(name, file, in: directory, before)))
        }
        try requireComplete(databases.map(\.name), before)
        if let name = kinds.keys.sorted().first(where: { name in !databases.contains { $0.name == name } }) {
            throw refusal(
                "no database \"\(name)\" for --kind",
                "the databases are \(databases.map(\.name).joined(separator: ", "))",
                didYouMean(name, among: databases.map(\.name)))
        }
        var members = try before?.json.members ?? []
        // These fields describe the previous release itself.
        members.removeAll { ["bundle", "patches", "sqlite", "created", "expires"].contains($0.name) }
        let version = version ?? Self.version(after: before?.manifest)
        let sequence = try EarlierRelease.sequence(of: version, after: before, product: product, in: output).number
        let draft = JSON.object(members).setting("manifest", to: 1).setting("product", to: .string(product)).setting(
            "version", to: .string(version.description)
        ).setting("sequence", to: .size(sequence)).setting("databases", to: .object(databases))
        return Manifest.literalDraft(draft)
    }

    private static func version(after before: Manifest?) -> Version {
        before.map { Version($0.version.major, $0.version.minor + 1, 0) } ?? Version(1, 0, 0)
    }

    /// Returns the file name without extension, if it is a valid database name.
    private static func name(of file: String) throws -> String {
        let name = Files.name(of: file)
        let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
        if let fault = PlainName.databaseFault(stem) ?? PlainName.fault(name) {
            throw MoultError(
                .packing, .refused, what: "\(file) cannot be packed without a draft",
                why: "the name \"\(stem)\" \(fault)",
                now: "Rename the file, or write a draft that names the database: \(moult: "help", "draft")")
        }
        return stem
    }

    private func database(
        _ name: String, _ file: String, in directory: String, _ before: EarlierRelease?
    ) throws -> JSON {
        let source = try Files.absolute(file)
        let near = source.relative(to: directory) ?? source
        guard let old = try before?.json["databases"]?[name], let kind = before?.manifest.database(name)?.kind else {
            let kind = kinds[name] ?? .reference
            let path = Files.name(of: file)
            return .compact([
                "kind": .string(kind.rawValue), "source": .string(near),
                "path": path == "\(name).db" ? nil : .string(path),
                // Where databases open alone, because they are too many for one connection, a new one does, too.
                "attach": before?.manifest.databases.contains { $0.attach.group == $0.name } == true
                    ? ["group": .string(name)] : nil,
            ])
        }
        if let wanted = kinds[name], wanted != kind {
            throw refusal(
                "\(name) cannot be packed as \(wanted.rawValue)",
                "its kind is \(kind.rawValue) in \(before?.path ?? "")",
                "To change its kind, write a draft. To see what stores do with each kind: \(moult: "help", "kinds")")
        }
        if before?.manifest.database(name)?.migrations.isEmpty == false {
            throw refusal(
                "\(name) cannot be packed without a draft", "it has migrations",
                "Write a draft: \(moult: "help", "draft")")
        }
        var members = old.members ?? []
        // `moult pack` determines these values. The default name of the member is also left out.
        members.removeAll { ["size", "sha256", "identity", "proved"].contains($0.name) }
        if old["member"] == .string("\(name).db") { members.removeAll { $0.name == "member" } }
        return .object(members).setting("source", to: .string(near))
    }

    /// Throws if a shared database of a draft from `json(in:)` has no "preserve": rows that no rule selects leave the file with the
    /// next release, so the publisher has to decide. `advice` returns the next step for the line to add to the draft.
    package func requirePreserve(in draft: JSON, advice: (_ database: String, _ line: String) -> Advice) throws {
        for file in files {
            let name = try Self.name(of: file)
            guard let database = draft["databases"]?[name], database["preserve"] == nil,
                database["kind"]?.string == Database.Kind.shared.rawValue
            else { continue }
            let tables = try Self.tables(of: file)
            let entries = tables.map { "{ \"table\": \(JSON.string($0).line) }" }
            throw refusal(
                "\(name) is shared, and the release does not say which of its rows belong to the app",
                tables.isEmpty
                    ? "it has no table whose rows an update could carry over"
                    : "rows of \(tables.joined(separator: ", ")) that no \"preserve\" selects leave the file with the next release",
                advice(name, "\"preserve\": [\(entries.joined(separator: ", "))],"))
        }
    }

    private static func tables(of file: String) throws -> [String] {
        var tables: [String] = []
        try LockFreeReader.into(file) { connection, _ in
            tables = try SelectionCheck(connection).selectableTables().sorted()
        }
        return tables
    }

    /// Throws if a database is left out, because it would no longer be installed.
    private func requireComplete(_ names: [String], _ before: EarlierRelease?) throws {
        guard let before, let missing = before.manifest.databases.map(\.name).first(where: { !names.contains($0) })
        else { return }
        throw refusal(
            "the database \"\(missing)\" is missing", "the previous release has it: \(before.path)",
            "Add its file. To drop the database, write a draft: \(moult: "help", "draft")")
    }

    private func refusal(_ what: String, _ why: String, _ now: Advice?) -> MoultError {
        MoultError(.packing, .refused, what: what, why: why, now: now)
    }

    /// Returns the text of a draft for the publisher to edit, with a comment for each field that most drafts have.
    package static func commented(_ draft: JSON, named name: String) -> String {
        var lines = [
            "// The draft of a release. Pack it with: \(shellLine(["moult", "pack", name]))",
            "// For all fields of a draft: moult help draft",
        ]
        var member = ""
        var said: Set<String> = []
        for line in draft.pretty.split(separator: "\n", omittingEmptySubsequences: false) {
            let indent = line.prefix { $0 == " " }
            let words = line.dropFirst(indent.count).split(separator: "\"")
            var comment: String?
            switch (indent.count, words.first.map { String($0) }) {
            case (2, let field?):
                member = field
                comment = ofRelease[field]
            case (6, let field?) where member == "databases":
                comment =
                    ofDatabase[field]
                    ?? (field == "kind" ? words.dropFirst(2).first.flatMap { ofKind[String($0)] } : nil)
            default: break
            }
            if let comment, said.insert(comment).inserted { lines.append("\(indent)// \(comment)") }
            lines.append(String(line))
        }
        return lines.joined(separator: "\n")
    }

    private static let ofRelease = [
        "product": "A store installs releases of one product only.",
        "version":
            "Increase the version for each release, and the sequence, too, if the draft has one: without it, `moult pack` uses the next.",
        "databases": "Each database: its kind, and the file to pack.",
        "checks": "A release is refused if one of these queries returns a different result.",
        "budget": "A release is refused if a table loses or gains more rows than allowed here.",
        "requires": "The versions of the app, moult and the installed release that this release requires.",
        "steps": "Additional steps of each update.",
    ]

    private static let ofDatabase = [
        "source": "The database file, relative to this draft. `moult pack` copies it and does not change it.",
        "path": "The path of the database in the store.", "member": "The name of the file in the bundle.",
        "preserve": "The app's rows that survive a release.", "verify": "How thoroughly each store checks the file.",
    ]

    private static let ofKind = [
        "reference": "reference: only releases change it. For the other kinds: moult help kinds",
        "shared":
            "shared: the app writes to it, too. \"preserve\" names the rows that survive a release; [] means none.",
        "user": "user: belongs to the user. It is installed once; releases change only its schema, by \"migrations\".",
        "cache": "cache: the app can recreate it. It is replaced when its schema changes.",
    ]
}
