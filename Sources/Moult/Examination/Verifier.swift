package import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultTrust
internal import StepKit

/// Checks a store against its records; changes nothing.
package struct Verifier {
    private let store: StoreSnapshot
    private let checkTime: CheckTime

    /// Creates a verifier with the given time limit, or else the one in the settings.
    package init(_ store: StoreSnapshot, checkTimeout: Int? = nil) throws {
        self.store = store
        checkTime = CheckTime(fixed: try checkTimeout ?? store.settings.checkTimeout)
    }

    package struct Check: Sendable, Equatable {
        package let subject: String
        package let method: String
        /// The fault; nil if none was found.
        package let finding: String?
        /// The parts that could not be checked, with the reason.
        package var notChecked: [String] = []
        /// Whether nothing could be checked, because the file is locked or this user may not read it.
        package var isUnread = false
        /// Whether another process has the file locked, so that it can be checked later.
        package var isLocked = false
        /// The repair command, without the store argument.
        package var remedy: [String]?
        /// How the check was made, if not in the usual way.
        package var note: String?

        package var json: JSON {
            .compact([
                "subject": .string(subject), "method": .string(method),
                "sound": isUnread ? nil : .bool(finding == nil),
                "finding": .optional(finding),
                "note": .optional(note),
                "remedy": remedy.map { .string(shellLine($0)) },
                "notChecked": notChecked.isEmpty ? nil : .array(notChecked.map { .string($0) }),
            ])
        }
    }

    /// Checks for unfinished updates, checks every path and seal, and runs quick_check on the writable databases. With `deep`,
    /// also reads every sealed file to check its digest, and runs integrity_check on all databases.
    package func verify(_ names: [String] = [], deep: Bool) throws -> [Check] {
        guard let generation = try store.installed else {
            return [Check(subject: "store", method: "current", finding: "nothing is installed")]
        }
        for name in names { _ = try generation.database(name) }
        var checks: [Check] = []
        for transaction in try Transaction.unfinished(store.layout) {
            let workers = try LockHolders.of(store.layout.lock)
            checks.append(
                workers.isEmpty
                    ? Check(
                        subject: transaction.id, method: "finished", finding: "an update is unfinished",
                        remedy: ["moult", "recover"])
                    : Check(
                        subject: transaction.id, method: "finished", finding: nil,
                        note: "an update is running: \(workers.map(\.description).joined(separator: ", "))"))
        }
        let assessment = try Assessment(of: generation, in: store)
        for database in generation.manifest.databases where names.isEmpty || names.contains(database.name) {
            do {
                checks +=
                    try database.kind.isSealed
                    ? sealed(database, generation, assessment, deep: deep) : writable(database, assessment, deep: deep)
            } catch let error as MoultError where Files.isDenied(error) {
                checks.append(unread(database, "path", error, .read(generation.path(database.member))))
            }
        }
        return checks
    }

    /// Returns the check of a file that this user may not read: the file counts as neither sound nor damaged.
    private func unread(_ database: Database, _ method: String, _ error: MoultError, _ need: Permission) -> Check {
        Check(
            subject: database.name, method: method, finding: nil,
            notChecked: ["\(error.what): \(error.why ?? "denied")"], isUnread: true, remedy: need.command)
    }

    private func sealed(
        _ database: Database, _ generation: Generation, _ assessment: Assessment, deep: Bool
    ) throws -> [Check] {
        let sealed = try assessment.sealedFile(of: database)
        let file = generation.path(database.member)
        let facts = try Files.factsThroughLinks(file)
        var checks = [
            Check(subject: database.name, method: "path", finding: sealed.linkFault),
            try seal(database, sealed, file, deep: deep),
        ]
        if deep, facts?.kind == .file { checks += try read(database, file, sealed: sealed.entry?.sha256) }
        for index in checks.indices where checks[index].finding != nil { checks[index].remedy = ["moult", "apply"] }
        var sidecars = Check(subject: database.name, method: "sidecars", finding: sealed.sidecarFault)
        sidecars.remedy = try sealed.sidecarRemedy
        checks.insert(sidecars, at: 2)
        return checks
    }

    /// Checks a file against its seal. If the metadata does not confirm the file, as in a copied store, its digest is compared;
    /// with `deep`, `read` compares the digest instead.
    private func seal(
        _ database: Database, _ sealed: Assessment.SealedFile, _ file: String, deep: Bool
    ) throws -> Check {
        var check = Check(subject: database.name, method: "seal", finding: nil)
        switch sealed.standing {
        case .confirmed: break
        case .damaged(let why):
            return Check(subject: check.subject, method: check.method, finding: "\(file) \(why)")
        case .unconfirmed:
            if !deep, try sealed.entry?.verifiedFacts(of: file) == nil {
                return Check(
                    subject: check.subject, method: check.method,
                    finding: "\(file) does not have the SHA-256 of the release")
            }
            check.note = deep ? "copied; see the digest check" : "copied; its SHA-256 matches"
        }
        return check
    }

    /// Checks the digest and the integrity of a file. If a step changed the file before it was sealed, the file has the digest
    /// in the seal, and not the one in the manifest.
    private func read(_ database: Database, _ file: String, sealed: String?) throws -> [Check] {
        let digest = try SHA256.digest(ofFileAt: file).hex
        let expected = sealed ?? database.sha256
        let source = expected == database.sha256 ? "the manifest" : "the seal"
        return [
            Check(
                subject: database.name, method: "digest",
                finding: digest == expected ? nil : "SHA-256 is \(digest), and \(source) says \(expected)"),
            Check(subject: database.name, method: "integrity_check", finding: integrity(database, file)),
        ]
    }

    /// Returns the fault that SQLite finds, if any. A file that cannot be opened counts as a fault as well.
    private func integrity(_ database: Database, _ file: String) -> String? {
        do {
            var validation = Validation(
                name: database.member, path: file, depth: .full,
                processor: checkTime.seconds(for: try Files.facts(file)?.size ?? 0))
            validation.maxFindings = 1
            let report = try Files.withScratchDirectory { scratch in
                try Validator.available().examine([validation], scratch: "\(scratch)/exam").first
            }
            if let failure = report?.failure { return "\(failure)" }
            return report?.isWAL == true ? "it is in WAL mode" : report?.findings?.first
        } catch { return "\(error)" }
    }

    private func writable(_ database: Database, _ assessment: Assessment, deep: Bool) throws -> [Check] {
        let path = try store.place(of: database)
        let found = try assessment.finding(of: database, deep ? .deep : .check)
        var place = Check(
            subject: database.name, method: "path",
            finding: found.isMissing ? found.fault : found.refusal.map { "updates are refused: \($0.problem)" })
        place.remedy = found.isMissing ? found.remedy?.command(for: database) : nil
        if found.isMissing { return [place] }
        var check = Check(
            subject: database.name, method: deep ? "integrity_check" : "quick_check",
            finding: found.fault.map { "\(path): \($0)" }, notChecked: found.notChecked)
        check.isUnread = found.depth == .nothing
        check.isLocked = check.isUnread && found.remedy == nil
        check.remedy = found.remedy?.command(for: database)
        return [place, check]
    }
}
