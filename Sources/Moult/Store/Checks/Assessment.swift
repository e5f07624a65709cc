internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
package import StepKit

/// Checks whether the databases of a generation match its release. All commands use these rules.
package struct Assessment {
    package enum Depth: String, Sendable {
        /// Nothing: another process has the file locked, or this user may not read it.
        case nothing
        /// The file's metadata, header, schema and marker; only its metadata if the file has not changed since the last check.
        case glance
        /// Also each page, with SQLite's quick_check.
        case check
        /// Also whether tables and indexes agree, with integrity_check.
        case deep

        var pages: Fitness.Pages { self == .deep ? .full : self == .check ? .quick : .none }
    }

    private let store: StoreSnapshot
    private let generation: Generation
    private let seal: Seal?
    /// Whether the generation is the one in service, so that apps use its databases.
    private let isInstalled: Bool

    package init(of generation: Generation, in store: StoreSnapshot) throws {
        (self.store, self.generation) = (store, generation)
        seal = try store.sealIfSound(of: generation)
        // Who reads the link to the installed release reports a fault of it.
        isInstalled = (try? store.installedName) == generation.name
    }

    /// How to install the release again, which repairs all files but those with rows of the app.
    private var installing: Advice { get throws { try .installing(store.settings) } }

    /// Examines a database without changing anything. With `reading`, a read-only file that may be a copy is read.
    package func state(of database: Database, _ depth: Depth, reading: Bool? = nil) throws -> DatabaseState {
        try database.kind.isSealed
            ? sealed(database, depth, reading: reading ?? (depth != .glance)) : writable(database, depth)
    }

    // MARK: read-only databases

    private func sealed(_ database: Database, _ depth: Depth, reading: Bool) throws -> DatabaseState {
        let (place, own) = (try store.place(of: database), generation.path(database.member))
        let entry = seal?.entry(database.member)
        let standing = try standing(of: database, entry)
        var state = DatabaseState(database, place, depth)
        (state.file, state.sealedDigest) = (own, entry?.sha256)
        state.isProvenByPublisher = entry?.isProvenByPublisher ?? false
        switch standing {
        case .confirmed: break
        case .damaged(let why): state.content = try changed(database, own, "it \(why)")
        case .unconfirmed where !reading:
            state.content = try Finding(
                .unverified, .warning, path: place, database: database.name, "it is a copy that was not verified",
                why: "its inode or its times differ from those of the verified file", advice: installing)
        case .unconfirmed:
            state.isVerifiedCopy = try entry?.verifiedFacts(of: own) != nil
            if !state.isVerifiedCopy {
                state.content = try changed(database, own, "it does not have the SHA-256 of the release")
            }
        }
        if isInstalled {
            state.size = try Files.factsThroughLinks(place)?.size
            if try Files.target(ofLink: place) != StoreLayout.link(to: database.member) {
                state.place = try unusable(
                    database, state.size == nil ? .missing : .changed, place,
                    "it is not a symlink through .moult/current", installing)
            } else if state.size == nil {
                state.content = try changed(database, own, state.content?.what ?? "it is missing", .missing)
            }
        }
        if let sidecar = try Sidecars.besideReadOnly(own, link: isInstalled ? place : nil).first {
            state.sidecar = try .sidecar(sidecar, of: database, in: store.layout)
        }
        return state
    }

    /// Returns the finding about a file of the release; the generation's own path of an in-place database is a link to that file.
    func changed(_ database: Database, _ own: String, _ what: String, _ kind: Finding.Kind = .changed) throws -> Finding
    { try unusable(database, kind, Files.target(ofLink: own) ?? own, what, installing) }

    private func unusable(
        _ database: Database, _ kind: Finding.Kind, _ path: String, _ what: String, _ advice: Advice?
    ) -> Finding {
        Finding(
            kind, path: path, database: database.name, what,
            why: kind == .unmigrated
                ? "the app expects migrated content" : "the app cannot use \(database.name) in this state",
            advice: advice)
    }

    private func standing(of database: Database, _ entry: Seal.Entry?) throws -> Seal.Standing {
        if let entry {
            return try entry.standing(
                of: generation.path(database.member), store.facts(of: database.member, in: generation.name))
        }
        return .damaged(
            seal == nil
                ? "cannot be compared: the record of the generation's files is missing or damaged"
                : "is not in the record of the generation's files")
    }

    // MARK: writable databases

    private func writable(_ database: Database, _ depth: Depth) throws -> DatabaseState {
        let place = try store.place(of: database)
        let own = generation.path(database.member)
        var state = DatabaseState(database, place, depth)
        if let entry = seal?.entry(database.member), case .damaged(let why) = try standing(of: database, entry) {
            state.content = try unusable(database, .generation, own, "it \(why)", installing)
            return state
        }
        // Callers that request more than a glance want the file to be read now.
        if depth == .glance, let (known, size) = try store.checks.known(database, at: place, generation.name) {
            (state.depth, state.time, state.size) = (known.depth, known.time, size)
            return state
        }
        if let intruder = try Sidecars.intruder(at: place) {
            let why = intruder.command == nil ? "\(intruder.why). \(intruder.advice)" : intruder.why
            state.isNotRead(
                .denied, place, "it cannot be read", why,
                intruder.command.map { "To make \(database.name) readable: \(run: $0)" })
            return state
        }
        if database.kind.holdsAppData, let target = try Files.target(ofLink: place),
            try Files.factsThroughLinks(place) == nil
        {
            state.place = unusable(
                database, .missing, place, "it is a link to \(target), which is missing; its disk may not be mounted",
                .resetting(database, isMissing: true, restore: "Mount that disk, or restore the file"))
            return state
        }
        var kind = Finding.Kind.damaged
        var unreadable: (any Error)?
        let fitness = try Fitness.of(place, deadline: 600, pages: depth.pages) {
            (kind, unreadable) = (.damaged, nil)
            let connection = $0
            if let fault = try fault(
                connection, database, &kind,
                template: {
                    do { return try template(of: database) } catch {
                        unreadable = error
                        throw error
                    }
                })
            {
                return fault
            }
            guard let pending = try pending(connection, database) else { return nil }
            kind = .unmigrated
            return pending
        }
        if let unreadable {
            let error = unreadable as? MoultError ?? MoultError(.generation, what: "\(unreadable)")
            if Files.isDenied(error) {
                state.isNotReadable("cannot read \(own): \(Errno.denied)", .read(own))
            } else {
                state.content = try unusable(
                    database, .generation, own, "it cannot be read: \(error.why ?? error.what)", installing)
            }
            return state
        }
        switch fitness {
        case .fits(let notChecked):
            state.notChecked = notChecked
            if let refusal = try WritableFile.refusal(at: place) {
                state.refusal = refusal
                state.place = Finding(
                    .blocked, .warning, path: place, database: database.name, "updates are refused: \(refusal.problem)",
                    advice: refusal.now)
            }
        case .missing:
            state.place = unusable(database, .missing, place, "it is missing", .resetting(database, isMissing: true))
        case .unfit(let why, let isDamaged):
            kind = isDamaged ? .damaged : kind
            let advice: Advice =
                switch kind {
                case .damaged: .resetting(database)
                case .schema: "Let the app change its schema, or install a release that migrates it."
                default: try installing
                }
            state.content = unusable(database, kind, place, why, advice)
        case .unknown(let error):
            // The state is unknown here: the process that has the database locked, or the file's owner, could open it.
            let why = "\(error.what): \(error.why ?? "it is locked")"
            switch Finding.Kind(of: error) {
            case .denied: state.isNotReadable(why, .write(place))
            case .locked: state.isNotRead(.locked, place, "another process has locked it", why, nil)
            case let kind:
                state.content = unusable(
                    database, kind, place, error.why ?? error.what,
                    kind == .unopened ? error.now : .resetting(database))
            }
        }
        return state
    }

    private func template(of database: Database) throws -> SchemaShape {
        let own = generation.path(database.member)
        try Permission.read(own).requireReadable(ifThere: true)
        return try .ofContent(Connection(path: own, access: .immutable))
    }

    /// Returns what the database lacks of its release. `template` is called only if the digest of its schema differs from that in
    /// the manifest.
    private func fault(
        _ connection: Connection, _ database: Database, _ kind: inout Finding.Kind, template: () throws -> SchemaShape
    ) throws -> String? {
        let shape = try SchemaShape.ofContent(connection)
        let digest = "sha256:\(try SHA256.digest(of: Array(shape.canonicalText.utf8)).hex)"
        let isSame = digest == database.identity.schema
        switch database.kind {
        case .reference: return nil
        case .cache:
            if !isSame, let difference = try shape.diff(against: template()).first { return difference }
            return database.compatible?.fault(
                applicationID: Int(try connection.int("PRAGMA application_id")),
                userVersion: Int(try connection.int("PRAGMA user_version")))
        case .user:
            kind = try pending(connection, database) == nil ? .schema : .unmigrated
            return isSame || database.schemaOwner == .app ? nil : try shape.lacks(of: template()).first
        case .shared:
            if let fault = try markerFault(connection, database) {
                kind = .outdated
                return fault
            }
            return isSame ? nil : try shape.lacks(of: template()).first
        }
    }

    /// Returns a sentence about the migrations that the release would run on a database; nil if it would run none.
    private func pending(_ connection: Connection, _ database: Database) throws -> String? {
        guard database.kind.isMigrated, !database.migrations.isEmpty else { return nil }
        let version = try connection.int("PRAGMA user_version")
        // A new database has the version of the template.
        if let template = database.identity.userVersion, version >= template { return nil }
        let count = database.migrations.count { $0.number > version }
        guard count > 0 else { return nil }
        return "its user_version is \(version), and \(counted(count, "migration")) of release "
            + "\(generation.manifest.version) \(count == 1 ? "has" : "have") not run on it"
    }

    private func markerFault(_ connection: Connection, _ database: Database) throws -> String? {
        guard try connection.int(ReleaseMarker.isThere) == 1 else {
            return "it has no table \(ReleaseMarker.table), so its content is not from a release"
        }
        guard try connection.scalar(ReleaseMarker.digest) != .text(database.sha256) else { return nil }
        guard case .text(let release)? = try connection.scalar("SELECT release FROM \(ReleaseMarker.table)") else {
            return "its table \(ReleaseMarker.table) is empty, so its content is not from a release"
        }
        return "its content is from release \(release)"
    }

    // MARK: recording

    /// Returns whether a writable database has changed since its last check.
    package func isOutdated() throws -> Bool {
        try generation.manifest.databases.contains {
            try !$0.kind.isSealed && store.checks.known($0, at: store.place(of: $0), generation.name) == nil
        }
    }

    /// Checks again the databases that have changed, and records the results; only for commands that write. An update has just
    /// read the databases in `checked` completely.
    package func remember(checked: Set<String> = []) throws {
        let checks = try store.checks
        var record = checks
        for database in generation.manifest.databases where !database.kind.isSealed {
            let place = try store.place(of: database)
            let facts = try CheckRecord.facts(of: place)
            let known = try checks.known(database, at: place, generation.name)
            if known != nil, !checked.contains(database.name) { continue }
            let found = try state(of: database, .glance)
            // The file must not have changed since it was checked.
            guard found.findings.isEmpty, found.notChecked.isEmpty, let facts, try CheckRecord.facts(of: place) == facts
            else {
                record.forget(database, at: place)
                continue
            }
            // Pages that were checked under another release have not changed.
            let read = checks.entries.first { $0.path == place && $0.facts == facts && $0.depth != .glance }
            let isRead = checked.contains(database.name)
            record.note(
                database, at: place, generation.name, facts, isRead ? .check : read?.depth ?? found.depth,
                since: isRead ? .now : read?.time ?? .now)
        }
        try record.write()
    }
}
