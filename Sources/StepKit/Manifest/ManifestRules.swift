internal import MoultBasics

/// What must hold between the parts of a manifest.
struct ManifestRules {
    let form: Manifest.Form
    let fields: Fields

    func check(_ manifest: Manifest) throws {
        if manifest.databases.isEmpty { throw fields.fail("databases", "must name at least one database") }
        if let created = manifest.created, let expires = manifest.expires, expires <= created {
            throw fields.fail("expires", "must be later than created")
        }
        try distinct(manifest.databases, "member") { $0.place == .generation ? $0.member : nil }
        try distinct(manifest.databases, "path") { $0.path }
        try aliases(manifest.databases)
        for database in manifest.databases { try migrations(database) }
        if form == .sealed {
            let packed = manifest.databases.filter { $0.place == .generation }
            if manifest.bundle == nil, let first = packed.first {
                throw fields.fail("bundle", "is missing, and databases.\(first.name) is not in place")
            }
        }
        try references(manifest)
    }

    /// File systems may ignore the case of letters, so names that differ only by it are the same.
    private func distinct(_ databases: [Database], _ field: String, _ value: (Database) -> String?) throws {
        var seen: [String: String] = [:]
        for database in databases {
            guard let text = value(database) else { continue }
            if let other = seen.updateValue(database.name, forKey: text.lowercased()) {
                throw fields.fail(
                    "databases.\(database.name).\(field)", "\"\(text)\" is also the \(field) of databases.\(other)")
            }
        }
    }

    private func aliases(_ databases: [Database]) throws {
        var seen: [String: String] = [:]
        // The first user database is the connection's main database and is not attached.
        let main = databases.first { $0.kind == .user }
        for database in databases where database != main {
            let alias = database.attach.alias
            let place = "databases.\(database.name).attach.as"
            if let fault = PlainName.databaseFault(alias) { throw fields.fail(place, "\"\(alias)\" \(fault)") }
            if ["main", "temp"].contains(alias.lowercased()) {
                throw fields.fail(
                    place, "\"\(alias)\" cannot be attached, because SQLite has that name already",
                    now: "Give it another name, as in \"attach\": { \"as\": \"shipped\" }.")
            }
            if let other = seen.updateValue(database.name, forKey: alias.lowercased()) {
                throw fields.fail(place, "\"\(alias)\" is also the name of databases.\(other)")
            }
        }
    }

    private func migrations(_ database: Database) throws {
        var last = 0
        for (index, migration) in database.migrations.enumerated() {
            if migration.number <= last {
                throw fields.fail(
                    "databases.\(database.name).migrations[\(index)]",
                    "has the number \(migration.number), which does not come after \(last)")
            }
            last = migration.number
        }
    }

    private func references(_ manifest: Manifest) throws {
        let names = manifest.databases.map(\.name)
        func known(_ name: String, _ place: String) throws {
            guard names.contains(name) else {
                throw fields.fail(
                    place, "\"\(name)\" is no database of this release", now: didYouMean(name, among: names))
            }
        }
        for (index, check) in manifest.checks.enumerated() { try known(check.on, "checks[\(index)].on") }
        for budget in manifest.budget { try known(budget.database, "budget.\(budget.database).\(budget.table)") }
    }
}
