internal import MoultBasics

extension ManifestReader {
    mutating func database(_ name: String, _ fields: Fields) throws -> Database {
        if let fault = PlainName.databaseFault(name) {
            throw failure(fields.place, "is not the name of a database: it \(fault)", nil)
        }
        guard let kind = try fields.word("kind", Database.Kind.self) else {
            let kinds = Database.Kind.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw fields.fail("kind", "is missing", now: "Use one of \(kinds).")
        }
        let path = try sealed(fields, "member", orDraft: "\(name).db", memberPath)
        let parts = path.pathParts()
        let member = String(parts.last ?? "")
        let database = Database(
            name: name, kind: kind, member: member,
            directory: parts.count > 1 ? parts.dropLast().joined(separator: "/") : nil,
            size: try sealed(fields, "size", orDraft: 0, size),
            sha256: try sealed(fields, "sha256", orDraft: "", sha256),
            path: try fields.json("path") == nil ? member : plainName(fields, "path"),
            place: try fields.word("place", Database.Place.self) ?? .generation,
            verify: try fields.word("verify", Database.Depth.self),
            proved: try proof(fields),
            attach: try attach(fields, name),
            identity: try identity(fields),
            preserve: try preserve(fields, kind),
            unpreserved: try fields.word("unpreserved", Database.Unpreserved.self) ?? .refuse,
            migrations: try migrations(fields),
            schemaOwner: try fields.word("schema", Database.SchemaOwner.self) ?? .release,
            compatible: try compatible(fields),
            source: form == .draft ? try draftSource(fields) : nil)
        // Manifests sealed by earlier versions have these.
        if form == .sealed { for name in ["replace", "marker"] { _ = fields.json(name) } }
        try refuseForeign(to: kind, fields)
        try done(fields)
        return database
    }

    /// Reads the path of a member in the bundle. Only archives packed by other programs have directories.
    private func memberPath(_ fields: Fields, _ name: String) throws -> String {
        if form == .draft || fields.json("place")?.string == Database.Place.inPlace.rawValue {
            return try plainName(fields, name)
        }
        let path = try fields.string(name)
        if let fault = PlainName.fault(path: path) { throw fields.fail(name, "\"\(path)\" \(fault)") }
        // The last part is also the name of the file in the generation.
        if let fault = path.pathParts().last.flatMap({ PlainName.fault(String($0)) }) {
            throw fields.fail(name, "\"\(path)\" has a part that \(fault)")
        }
        return path
    }

    /// Throws if the database has a field that belongs to a different kind.
    private func refuseForeign(to kind: Database.Kind, _ fields: Fields) throws {
        let owners: KeyValuePairs<String, Set<Database.Kind>> = [
            "place": [.reference], "preserve": [.shared], "unpreserved": [.shared],
            "migrations": [.user], "schema": [.user], "compatible": [.cache],
        ]
        for (name, kinds) in owners where fields.json(name) != nil && !kinds.contains(kind) {
            let owner = kinds.map(\.rawValue).joined(separator: ", ")
            throw fields.fail(name, "is only for databases of kind \(owner), and this one is \"\(kind.rawValue)\"")
        }
    }

    private mutating func attach(_ fields: Fields, _ name: String) throws -> Database.Attach {
        guard let part = try fields.optionalObject("attach") else { return .init(alias: name) }
        let alias = try part.optionalString("as") ?? name
        if let fault = PlainName.databaseFault(alias) { throw part.fail("as", "\"\(alias)\" \(fault)") }
        let group = try part.optionalString("group")
        if let group, let fault = PlainName.databaseFault(group) { throw part.fail("group", "\"\(group)\" \(fault)") }
        let isQualified = try part.optionalBool("qualified") ?? false
        try done(part)
        return Database.Attach(alias: alias, group: group, isQualified: isQualified)
    }

    private static let encodings = ["UTF-8", "UTF-16le", "UTF-16be"]

    private mutating func identity(_ fields: Fields) throws -> Database.Identity {
        guard let part = try fields.optionalObject("identity") else { return .init() }
        let schema = try part.optionalString("schema")
        if let schema, !schema.hasPrefix("sha256:") || !isDigest(String(schema.dropFirst(7))) {
            throw part.fail("schema", "must be \"sha256:\" and 64 hexadecimal digits in lower case")
        }
        let encoding = try part.optionalString("encoding")
        if let encoding, !Self.encodings.contains(encoding) {
            throw part.fail("encoding", "must be \(Self.encodings.joined(separator: ", "))")
        }
        let identity = Database.Identity(
            applicationID: try int32(part, "applicationID"), userVersion: try int32(part, "userVersion"),
            schema: schema, encoding: encoding)
        try done(part)
        return identity
    }

    /// Reads a number that SQLite stores in 32 bits.
    private func int32(_ fields: Fields, _ name: String) throws -> Int? {
        guard let number = try fields.optionalInteger(name) else { return nil }
        guard Int32(exactly: number) != nil else { throw fields.fail(name, "must fit in 32 bits, but is \(number)") }
        return number
    }

    private mutating func proof(_ fields: Fields) throws -> Database.Proof? {
        guard let part = try fields.optionalObject("proved") else { return nil }
        guard let check = try part.word("check", Database.Depth.self) else { throw part.fail("check", "is missing") }
        let sqlite = try part.string("sqlite")
        // The text appears in messages, so its length is limited.
        guard (1...20).contains(sqlite.utf8.count),
            sqlite.utf8.allSatisfy({ Version.isDigit($0) || $0 == UInt8(ascii: ".") })
        else { throw part.fail("sqlite", "must be a version of SQLite, such as 3.40.1") }
        let proof = Database.Proof(check: check, sqlite: sqlite, moult: try version(part, "moult"))
        try done(part)
        return proof
    }

    /// Reads which rows are carried over. A draft says so explicitly, because all other rows leave the database with the next
    /// release; sealed manifests from before this rule have no such field.
    private mutating func preserve(_ fields: Fields, _ kind: Database.Kind) throws -> [Database.Preserve] {
        if form == .draft, kind.isReplaced, fields.json("preserve") == nil {
            throw fields.fail(
                "preserve", "is missing: rows that it does not select leave the database with the next release",
                now: "List the tables whose rows the app writes, such as \"preserve\": [{ \"table\": \"note\" }], "
                    + "or if the app writes none: \"preserve\": []")
        }
        return try fields.objects("preserve").map { part in
            let preserve = Database.Preserve(
                table: try part.string("table"), where: try part.optionalString("where"),
                onConflict: try part.word("onConflict", Database.Preserve.Conflict.self) ?? .keepUser,
                onReject: try part.word("onReject", Database.Preserve.Reject.self) ?? .block,
                columns: try part.optionalTexts("columns") ?? [:])
            try done(part)
            return preserve
        }
    }

    /// Reads the migrations. A draft names the files; a sealed manifest also has their sizes and digests.
    private mutating func migrations(_ fields: Fields) throws -> [Database.Migration] {
        guard let list = fields.json("migrations") else { return [] }
        guard let items = list.array else { throw fields.fail("migrations", "must be a list, but is \(list.kind)") }
        return try items.enumerated().map { index, json in
            let place = "migrations[\(index)]"
            if let member = json.string {
                guard form == .draft else {
                    throw fields.fail(place, "must be an object with member, size and sha256", now: Self.sealing)
                }
                return Database.Migration(
                    member: member, size: 0, sha256: "", number: try migrationNumber(member, fields, place))
            }
            let part = try Fields(json, at: fields.path(place), failure: failure)
            let member = try part.string("member")
            let migration = Database.Migration(
                member: member, size: try sealed(part, "size", orDraft: 0, size),
                sha256: try sealed(part, "sha256", orDraft: "", sha256),
                number: try migrationNumber(member, fields, "\(place).member"))
            try done(part)
            return migration
        }
    }

    private func migrationNumber(_ member: String, _ fields: Fields, _ place: String) throws -> Int {
        if let fault = PlainName.fault(path: member) { throw fields.fail(place, "\"\(member)\" \(fault)") }
        let file = member.pathParts().last ?? ""
        guard let number = Int(file.prefix { $0.isASCII && $0.isNumber }), number > 0, Int32(exactly: number) != nil
        else {
            throw fields.fail(
                place, "\"\(member)\" must have a file name that begins with the user_version that it sets",
                now: "For example: migrations/user/0002-notes.sql.")
        }
        return number
    }

    private mutating func compatible(_ fields: Fields) throws -> Database.Compatible? {
        guard let part = try fields.optionalObject("compatible") else { return nil }
        let compatible = Database.Compatible(
            applicationID: try int32(part, "applicationID"), userVersionAtLeast: try int32(part, "userVersionAtLeast"),
            userVersionAtMost: try int32(part, "userVersionAtMost"))
        try done(part)
        return compatible
    }

    private mutating func draftSource(_ fields: Fields) throws -> Database.Source? {
        let file = try fields.optionalString("source")
        guard let part = try fields.optionalObject("build") else { return file.map { .file($0) } }
        if file != nil { throw fields.fail("build", "and \"source\" cannot be used together") }
        let source = Database.Source.script(
            try part.string("script"), define: try part.optionalTexts("define") ?? [:],
            analyze: try part.optionalBool("analyze") ?? false, from: try part.optionalString("from"))
        try done(part)
        return source
    }
}
