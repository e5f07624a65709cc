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
        depth = demanded == .full ? .full : isProven || database.place == .inPlace ? .header : .quick
    }

    /// A staged file does not match the manifest, or fails verification.
    static let code = MoultError.Code.wrongContent

    /// Checks the digest of an in-place file. Bundle members are digested when they are unpacked; an in-place file is read only
    /// if the release requires it, or if the file was changed: a new seal must not hide damage.
    func verifyDigest() throws {
        guard database.place == .inPlace, depth == .full || isChanged else { return }
        let digest = try SHA256.digest(ofFileAt: path).hex
        if digest == database.sha256 { return }
        let why = "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(database.sha256.prefix(8))…"
        guard isChanged else { throw failed(why, now: "Rebuild the database and the manifest together.") }
        throw MoultError(
            Self.code, .refused, what: "\(path) was changed after it was installed", why: why,
            now: "Install the app's files again, then repeat the command.")
    }

    /// The checks to run on the database.
    var validation: Validation {
        var validation = Validation(
            name: database.member, path: path, depth: depth, processor: time.seconds(for: database.size))
        // Unpacked files belong to moult, and no other process may write to them.
        validation.isWritable = database.place != .inPlace
        validation.wantsIdentity = database.identity != .init()
        validation.wantsForeignKeys = depth == .full
        validation.queries = queries.map(\.sql)
        if let old, !budgets.isEmpty { (validation.old, validation.tables) = (old, budgets.map(\.table)) }
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
        try verify(report.answers)
        if let failure = report.failure { throw failure }
        try verify(report.rows)
    }

    private var queries: [Manifest.GoldenQuery] { release.checks.filter { $0.on == database.name } }

    /// Checks the results of the release's golden queries.
    private func verify(_ answers: [ValidationReport.Answer]) throws {
        for (check, answer) in zip(queries, answers) {
            switch answer {
            case .none(let why):
                throw MoultError(
                    Self.code, .refused,
                    what: "the golden query on \(database.name) cannot run: \(shortened(check.sql))",
                    why: why, now: "The publisher must correct the query, and publish a new release.")
            case .text(let answer) where !check.expect.isMet(by: answer):
                throw MoultError(
                    Self.code, .refused, what: "\(database.member) fails a golden query",
                    why: "\(shortened(check.sql)) returns \(shortened(answer)), expected \(check.expect)",
                    now: "The publisher must correct the data or the query, and publish a new release.")
            case .text: continue
            }
        }
        guard answers.count == queries.count else {
            throw MoultError(
                Self.code, .refused, what: "\(database.member) cannot be checked",
                why: "the process that checks the file answered \(answers.count) of \(queries.count) golden queries",
                now: "Try again.")
        }
    }

    private var budgets: [Manifest.Budget] { release.budget.filter { $0.database == database.name } }

    /// Checks how much each table shrinks or grows in a release: the loss of half of a table's rows is probably a mistake. `rows`
    /// has the tables of the budgets in their order, or is empty without an old database.
    private func verify(_ rows: [ValidationReport.Rows]) throws {
        for (budget, rows) in zip(budgets, rows) {
            guard let before = rows.before else { continue }
            guard let after = rows.after else { throw refused(budget, before, nil, "be removed") }
            if let shrink = budget.shrink, after < before, !shrink.allows(before - after, of: before) {
                throw refused(budget, before, after, "shrink by more than \(shrink)")
            }
            if let grow = budget.grow, after > before, !grow.allows(after - before, of: before) {
                throw refused(budget, before, after, "grow by more than \(grow)")
            }
        }
    }

    private func refused(_ budget: Manifest.Budget, _ before: Int, _ after: Int?, _ what: String) -> MoultError {
        MoultError(
            Self.code, .refused, what: "table \(budget.table) of \(database.name) would \(what)",
            why: after.map { "the table has \(before) rows, and \($0) in release \(release.version)" }
                ?? "the table has \(before) rows",
            now: "If that is intended, publish the release with another budget.")
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
                "its schema does not match the manifest (\(found.schema.prefix(15))…, not \(schema.prefix(15))…)")
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
