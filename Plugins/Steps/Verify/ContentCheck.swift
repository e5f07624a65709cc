internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
internal import MoultTrust
internal import StepKit

/// Verifies a staged file against the manifest. The file is untrusted until all checks have passed.
struct ContentCheck {
    let database: Database
    let path: String
    let release: Manifest
    /// The installed file of the same database, for comparison; nil if there was none.
    let old: String?
    /// The limit on the time that the file may keep SQLite busy.
    let time: CheckTime
    /// The check that SQLite runs.
    let depth: Validation.Depth
    /// Whether an in-place file was sealed before and no longer matches its seal.
    let isChanged: Bool

    /// Creates the check of a file. `isPublished` means that no step has changed the file since it had the digest in the
    /// manifest.
    init(_ database: Database, at path: String, old: String?, isPublished: Bool, _ context: PlanContext) throws {
        (self.database, self.path, self.old) = (database, path, old)
        isChanged = try context.isChangedInPlace(database)
        (release, time) = (context.release, context.policy.checkTime)
        let demanded = context.demandedCheck(of: database)
        let isProven = isPublished && context.carriedProof(of: database) != nil
        depth =
            demanded == .full ? .full : isProven || database.place == .inPlace ? .header : .quick
    }

    /// A staged file does not match the manifest, or fails verification.
    static let code = MoultError.Code.wrongContent

    /// Checks the digest of an in-place file. Bundle members are digested when they are unpacked; an in-place file is read only
    /// if the release requires it, or if the file was changed: a new seal must not hide damage.
    func verifyDigest() throws {
        guard database.place == .inPlace, depth == .full || isChanged else { return }
        let digest = try SHA256.digest(ofFileAt: path).hex
        if digest != database.sha256 {
            if isChanged {
                throw MoultError(
                    Self.code, .refused, what: "\(path) was changed after it was installed",
                    why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(database.sha256.prefix(8))…",
                    now: "Install the app's files again, then repeat the command.")
            }
            throw failed(
                "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(database.sha256.prefix(8))…",
                now: "Rebuild the database and the manifest together.")
        }
    }

    /// The checks to run on the database.
    var validation: Validation {
        var validation = Validation(
            name: database.member, path: path, depth: depth, processor: time.seconds(for: database.size))
        // Unpacked files belong to moult, and no other process may write to them.
        validation.isWritable = database.place != .inPlace
        validation.wantsIdentity = database.identity != .init()
        validation.wantsForeignKeys = depth == .full
        validation.queries = GoldenQueries(database: database, release: release).queries
        let tables = ChangeBudget(database: database, release: release).tables
        if let old, !tables.isEmpty { (validation.old, validation.tables) = (old, tables) }
        return validation
    }

    /// Evaluates the results of the checks.
    func verify(_ report: ValidationReport) throws {
        func found<Fact>(_ fact: Fact?) throws -> Fact {
            if let fact { return fact }
            throw report.failure
                ?? failed(
                    "the process that checks the file sent an incomplete result", what: "cannot be checked",
                    now: "Try again.")
        }
        guard report.isOpen else {
            if let failure = report.failure,
                failure.isAboutAccess || [.system, .cannotOpenDatabase].contains(failure.code)
            {
                throw failed(
                    failure.why ?? failure.what, what: "cannot be opened",
                    now: failure.now ?? "Check the owner and the modes of the store's directories, and the umask.")
            }
            throw MoultError(
                Self.code, what: "\(database.member) is not a valid database",
                why: report.failure.map { $0.why ?? $0.description },
                now: "Publish the release again from an undamaged file.", cause: report.failure)
        }
        if report.isWAL {
            throw failed(
                "the file is in WAL mode, and SQLite would need sidecars to read it", what: "fails verification",
                now: "Publish the release again, with the database in rollback mode: PRAGMA journal_mode=DELETE")
        }
        if validation.wantsIdentity { try verify(found(report.identity)) }
        let findings = try found(report.findings)
        if let first = findings.first {
            throw failed(
                findings.count == 1 ? first : "\(first), and \(counted(findings.count - 1, "more finding"))",
                what: "fails verification")
        }
        try GoldenQueries(database: database, release: release).verify(report.answers)
        if let failure = report.failure { throw failure }
        try ChangeBudget(database: database, release: release).verify(report.rows)
    }

    private func verify(_ found: ValidationReport.Identity) throws {
        let wanted = database.identity
        if let encoding = wanted.encoding, let other = try Connection.encoding(ofFileAt: path)?.description,
            encoding != other
        {
            throw failed("its text encoding is \(other), and the manifest says \(encoding)")
        }
        if let id = wanted.applicationID, id != found.applicationID {
            throw failed("its application_id is \(found.applicationID), and the manifest says \(id)")
        }
        if let version = wanted.userVersion, version != found.userVersion {
            throw failed("its user_version is \(found.userVersion), and the manifest says \(version)")
        }
        if let schema = wanted.schema, found.schema != schema {
            throw failed(
                "its schema does not match the manifest (\(found.schema.prefix(15))…, not \(schema.prefix(15))…)"
            )
        }
    }

    private func failed(
        _ why: String, what: String = "does not match the manifest",
        now: Advice = "Publish the release again with the correct file."
    ) -> MoultError {
        MoultError(Self.code, what: "\(database.member) \(what)", why: why, now: now)
    }
}

extension PlanContext {
    /// Returns whether this update seals an in-place file again although an existing seal no longer confirms it.
    func isChangedInPlace(_ database: Database) throws -> Bool {
        guard database.place == .inPlace, purpose == .update,
            planned.contains(where: { if case .installGeneration = $0.change { true } else { false } })
        else { return false }
        func isSealed(in generation: String) throws -> Bool {
            try Files.target(ofLink: store.path(ofMember: database.member, in: generation))
                == "\(resources)/\(database.member)"
        }
        // A generation is installed again only if its seal does not hold.
        if try isSealed(in: generation) { return true }
        guard let installedGeneration, installed?.database(database.name)?.sha256 == database.sha256,
            try isSealed(in: installedGeneration)
        else { return false }
        // A file that its seal does not confirm is read, whatever the reason.
        do { try store.proveSeal(of: installedGeneration) } catch { return true }
        return false
    }
}
