package import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
package import StepKit

/// Checks whether the databases of a generation match its release. All commands use these rules.
package struct Assessment {
    /// How much of a file is read.
    package enum Depth: String, Sendable {
        /// Nothing: another process has the file locked, or this user may not read it.
        case nothing
        /// The file's metadata, header, schema and marker; only its metadata if the file has not changed since the last check.
        case glance
        /// Also each page, with SQLite's quick_check.
        case check
        /// Also whether tables and indexes agree, with integrity_check.
        case deep
    }

    /// The remedy for a faulty database.
    package enum Remedy: Sendable {
        /// Installing the release again, which has all that is needed.
        case apply
        /// A reset, which needs no release and no network. Only the operator may request the reset of a database with user data,
        /// because it sets the existing file aside.
        case reset
        /// A migration, by the app or by a release.
        case migrate
        /// A command that makes the file readable; nil if only another user can do that.
        case permit([String]?)

        /// Returns the command, without the option for the store; nil if no command helps.
        package func command(for database: Database) -> [String]? {
            switch self {
            case .apply: ["moult", "apply"]
            case .reset: Self.resetCommand(for: database)
            case .migrate: nil
            case .permit(let command): command
            }
        }

        /// Returns the command that replaces the file of a writable database with a new one.
        package static func resetCommand(for database: Database) -> [String] {
            ["moult", "reset", database.name] + (database.kind.isDisposable ? [] : ["--set-user-data-aside"])
        }

        /// Adds the option for the store to a command of moult, except to `moult replace`, which names the file instead.
        package static func complete(_ command: [String], store words: [String]) -> [String] {
            command.starts(with: ["moult"]) && !command.starts(with: ["moult", "replace"]) ? command + words : command
        }
    }

    /// The findings about one database.
    package struct Finding: Sendable {
        /// The fault; nil if none was found.
        package var fault: String?
        /// The remedy; nil without a fault.
        package var remedy: Remedy?
        /// Whether the only fault is that migrations of the release have not run, for example on a restored backup. Apps can
        /// open such a database.
        package var awaitsMigration = false
        /// Whether nothing is at the path.
        package var isMissing = false
        /// Why every update refuses to write to the database, although apps can use it.
        package var refusal: MoultError?
        /// The parts that could not be checked, each with the reason.
        package var notChecked: [String] = []
        /// How much of the current file was checked.
        package var depth: Depth
        /// When the file was checked.
        package var time: Timestamp?
        /// The size of the file; nil if it has not been asked for.
        package var size: Int?
    }

    private let store: StoreSnapshot
    private let generation: Generation
    private let seal: Seal?

    package init(of generation: Generation, in store: StoreSnapshot) throws {
        (self.store, self.generation) = (store, generation)
        seal = try store.sealIfSound(of: generation)
    }

    // MARK: the generation's own files

    /// The state of a database's file in its generation, determined without reading it.
    package struct SealedFile {
        /// Whether the file is the installed one.
        package let standing: Seal.Standing
        /// The problem with the symlink through which apps open the file.
        package let linkFault: String?
        /// A sidecar next to the file or the link, with which SQLite would read other data than that of the release.
        let sidecar: String?
        let entry: Seal.Entry?
        /// Reads the file and returns whether it has the content that was sealed.
        package func isVerified(_ path: String) throws -> Bool { try entry?.verifiedFacts(of: path) != nil }
        /// The fault that the sidecar causes, as a sentence; nil without one.
        package var sidecarFault: String? {
            sidecar.map(Sidecars.fault)
        }
        /// The command that moves the sidecar away; nil without one.
        package var sidecarRemedy: [String]? {
            get throws { try sidecar.map { ["mv", $0, try Files.firstFree("\($0).old")] } }
        }
        /// Whether the file was installed without a check by SQLite, because its publisher had made that check.
        package var isProvenByPublisher: Bool { entry?.isProvenByPublisher ?? false }
    }

    /// Compares the generation's file of a database, and the link to it, with the records.
    package func sealedFile(of database: Database) throws -> SealedFile {
        let entry = seal?.entry(database.member)
        let standing: Seal.Standing =
            if let entry {
                try standing(of: database, entry)
            } else if seal == nil {
                .damaged("cannot be compared: the record of the generation's files is missing or damaged")
            } else {
                .damaged("is not in the record of the generation's files")
            }
        return SealedFile(
            standing: standing, linkFault: try linkFault(of: database), sidecar: try sidecar(of: database), entry: entry
        )
    }

    private func standing(of database: Database, _ entry: Seal.Entry) throws -> Seal.Standing {
        try entry.standing(
            of: generation.path(database.member), store.facts(of: database.member, in: generation.name))
    }

    private func sidecar(of database: Database) throws -> String? {
        guard database.kind.isSealed else { return nil }
        return try Sidecars.besideReadOnly(generation.path(database.member), link: store.place(of: database)).first
    }

    private func linkFault(of database: Database) throws -> String? {
        let path = try store.place(of: database)
        guard database.kind.isSealed, try Files.target(ofLink: path) != StoreLayout.link(to: database.member)
        else { return nil }
        return "\(path) is not a symlink through .moult/current"
    }

    // MARK: writable databases

    /// Checks a database that apps write to, without changing anything.
    package func finding(of database: Database, _ depth: Depth) throws -> Finding {
        let place = try store.place(of: database)
        let own = generation.path(database.member)
        if let entry = seal?.entry(database.member), case .damaged(let why) = try standing(of: database, entry) {
            return Finding(fault: "the release's own file \(own) \(why)", remedy: .apply, depth: depth)
        }
        // Callers that request more than a glance want the file to be read now.
        if depth == .glance, let (known, size) = try store.checks.known(database, at: place, generation.name) {
            return Finding(depth: known.depth, time: known.time, size: size)
        }
        if let intruder = try Sidecars.intruder(at: place) {
            let why = intruder.command == nil ? "\(intruder.why). \(intruder.advice)" : intruder.why
            return Finding(remedy: .permit(intruder.command), notChecked: [why], depth: .nothing)
        }
        if database.kind.holdsAppData, let target = try Files.target(ofLink: place),
            try Files.factsThroughLinks(place) == nil
        {
            return Finding(
                fault: "\(place) is a link to \(target), which is missing; its disk may not be mounted",
                remedy: .reset, isMissing: true, depth: depth)
        }
        let pages: Fitness.Pages = depth == .glance ? .none : depth == .check ? .quick : .full
        var (remedy, awaitsMigration): (Remedy?, Bool) = (nil, false)
        var unreadable: Finding?
        let fitness = try Fitness.of(place, deadline: 600, pages: pages) {
            (remedy, awaitsMigration, unreadable) = (nil, false, nil)
            let connection = $0
            if let fault = try fault(
                connection, database, &remedy,
                template: {
                    do { return try template(of: database) } catch {
                        unreadable = findingUnreadable(own, error, depth)
                        throw error
                    }
                })
            {
                return fault
            }
            remedy = nil
            guard let pending = try pending(connection, database) else { return nil }
            (remedy, awaitsMigration) = (.apply, true)
            return pending
        }
        if let unreadable { return unreadable }
        switch fitness {
        case .fits(let notChecked):
            return Finding(
                refusal: try WritableFile.refusal(at: place), notChecked: notChecked, depth: depth)
        case .missing:
            return Finding(
                fault: "no file at \(place)", remedy: .reset, isMissing: true, depth: depth)
        case .unfit(let why, let isDamaged):
            return Finding(
                fault: why, remedy: isDamaged ? .reset : remedy ?? .reset,
                awaitsMigration: awaitsMigration && !isDamaged, depth: depth)
        case .unknown(let error):
            // The state is unknown here: the process that has the database locked, or the file's owner, could open it.
            let why = "\(error.what): \(error.why ?? "it is locked")"
            if Files.isDenied(error) { return unread(why, .write(place)) }
            if error.outcome == .busy { return Finding(notChecked: [why], depth: .nothing) }
            // Only SQLite's own errors concern the content, which a reset would set aside.
            return Finding(
                fault: error.why ?? error.what, remedy: error.sqlite == nil ? nil : .reset, depth: depth)
        }
    }

    private func unread(_ why: String, _ need: Permission) -> Finding {
        Finding(remedy: .permit(need.command), notChecked: [why], depth: .nothing)
    }

    /// Returns the finding about a file of the release that cannot be read.
    private func findingUnreadable(_ own: String, _ error: any Error, _ depth: Depth) -> Finding {
        let error = error as? MoultError ?? MoultError(.generation, what: "\(error)")
        if Files.isDenied(error) { return unread("cannot read \(own): \(Errno.denied)", .read(own)) }
        return Finding(
            fault: "the release's own file \(own) cannot be read: \(error.why ?? error.what)", remedy: .apply,
            depth: depth)
    }

    /// Returns the schema of a database in its release.
    private func template(of database: Database) throws -> SchemaShape {
        let own = generation.path(database.member)
        try Permission.read(own).requireReadable(ifThere: true)
        return try .ofContent(Connection(path: own, access: .immutable))
    }

    /// Returns what the database lacks of its release. `template` is called only if the digest of its schema differs from that in
    /// the manifest.
    private func fault(
        _ connection: Connection, _ database: Database, _ remedy: inout Remedy?, template: () throws -> SchemaShape
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
            remedy = try pending(connection, database) == nil ? .migrate : .apply
            return isSame || database.schemaOwner == .app ? nil : try shape.lacks(of: template()).first
        case .shared:
            remedy = .apply
            if let fault = try markerFault(connection, database) { return fault }
            remedy = .reset
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
        guard database.marker else { return nil }
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
            let found = try finding(of: database, .glance)
            // The file must not have changed since it was checked.
            guard found.fault == nil, found.refusal == nil, found.notChecked.isEmpty, let facts,
                try CheckRecord.facts(of: place) == facts
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
