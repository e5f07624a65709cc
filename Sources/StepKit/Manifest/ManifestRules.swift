internal import MoultBasics

/// Checks that the parts of a manifest are consistent.
struct ManifestRules {
    let form: Manifest.Form
    let fields: Fields

    func check(_ manifest: Manifest) throws {
        let databases = manifest.databases
        if databases.isEmpty { throw fields.fail("databases", "must have at least one database") }
        if let created = manifest.created, let expires = manifest.expires, expires <= created {
            throw fields.fail("expires", "must be later than created")
        }
        try requireDistinct(databases.flatMap(members), "member")
        try requireDistinct(databases.map { ("databases.\($0.name).member", $0.member) }, "file name")
        try requireDistinct(databases.map { ("databases.\($0.name).path", $0.path) }, "path")
        try checkAliases(manifest.groups)
        for database in databases {
            try requireAscending(database)
            try checkVersionLimits(database)
        }
        if form == .sealed, manifest.bundle == nil, let packed = databases.first(where: { $0.place == .generation }) {
            throw fields.fail(
                "bundle", "is missing, and databases.\(packed.name) does not have \"place\": \"in-place\"",
                now: ManifestReader.sealing)
        }
        try checkReferences(manifest)
    }

    private typealias Named = (place: String, name: String)

    /// Returns all members of a database that are in the bundle, or that the generation links to.
    private func members(_ database: Database) -> [Named] {
        let place = "databases.\(database.name)"
        return [("\(place).member", database.bundlePath)]
            + database.migrations.enumerated().map { ("\(place).migrations[\($0)]", $1.member) }
    }

    /// Throws if two names are equal. File systems may ignore case, so names that differ only in case count as equal.
    private func requireDistinct(_ names: [Named], _ what: String) throws {
        var seen: [String: Named] = [:]
        for (place, name) in names {
            guard let other = seen.updateValue((place, name), forKey: name.lowercased()) else { continue }
            let how = name == other.name ? "is also \(other.place)" : "differs from \(other.place) only in case"
            throw fields.fail(place, "\"\(name)\" \(how)", now: "Give one of them a different \(what).")
        }
    }

    private func checkAliases(_ groups: [Manifest.AttachGroup]) throws {
        // Each group has its own connection, so two groups may use the same alias.
        for group in groups {
            var seen: [String: String] = [:]
            for database in group.others {
                let alias = database.attach.alias
                let place = "databases.\(database.name).attach.as"
                if ["main", "temp"].contains(alias.lowercased()) {
                    throw fields.fail(
                        place, "\"\(alias)\" cannot be attached, because SQLite uses that name",
                        now: "Give it a different name, for example \"attach\": { \"as\": \"shipped\" }.")
                }
                if let other = seen.updateValue(database.name, forKey: alias.lowercased()) {
                    throw fields.fail(
                        place, "\"\(alias)\" is also the name by which databases.\(other) is attached",
                        now: "Give one of them a different name.")
                }
            }
        }
    }

    private func requireAscending(_ database: Database) throws {
        var last = 0
        for (index, migration) in database.migrations.enumerated() {
            if migration.number <= last {
                throw fields.fail(
                    "databases.\(database.name).migrations[\(index)]",
                    "sets user_version \(migration.number), and the migration before it sets \(last)",
                    now: "Number the migrations in ascending order.")
            }
            last = migration.number
        }
    }

    private func checkVersionLimits(_ database: Database) throws {
        guard let least = database.compatible?.userVersionAtLeast, let most = database.compatible?.userVersionAtMost,
            most < least
        else { return }
        throw fields.fail(
            "databases.\(database.name).compatible.userVersionAtMost",
            "is \(most), less than userVersionAtLeast, \(least)")
    }

    private func checkReferences(_ manifest: Manifest) throws {
        let databases = manifest.databases
        let names = Set(databases.map(\.name))
        func known(_ name: String, _ place: String, _ why: String) throws {
            guard names.contains(name) else {
                throw fields.fail(place, why, now: didYouMean(name, among: databases.map(\.name)))
            }
        }
        for (index, check) in manifest.checks.enumerated() {
            try known(check.on, "checks[\(index)].on", "\"\(check.on)\" is not a database of this release")
        }
        let members = manifest.contents
        for (index, patch) in manifest.patches.enumerated() where members[patch.member] == nil {
            throw fields.fail(
                "patches[\(index)].member", "\"\(patch.member)\" is not a file of this release",
                now: didYouMean(patch.member, among: databases.flatMap { [$0.member] + $0.migrations.map(\.member) }))
        }
        for budget in manifest.budget {
            try known(
                budget.database, "budget.\(budget.database).\(budget.table)",
                "\"\(budget.database)\" is not a database of this release")
        }
    }
}
