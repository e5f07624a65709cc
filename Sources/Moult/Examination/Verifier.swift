internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
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

    /// One question about a database, and the answer.
    package struct Check: Sendable, Equatable {
        package let subject: String
        package let method: String
        /// The fault, or why the question has no answer; nil without a fault.
        package var finding: Finding?
        package var notChecked: [String] = []
        /// How the check was made, if not in the usual way.
        package var note: String?

        init(_ subject: String, _ method: String, _ finding: Finding? = nil, note: String? = nil) {
            (self.subject, self.method, self.finding, self.note) = (subject, method, finding, note)
        }

        package var isLocked: Bool { finding?.kind == .locked }
        /// Whether nothing could be checked, because the file is locked or this user may not read it.
        package var isUnread: Bool { isLocked || finding?.kind == .denied }
    }

    /// Checks for unfinished updates, checks every path and seal, and runs quick_check on the writable databases. With `deep`,
    /// also reads every sealed file to check its digest, and runs integrity_check on all databases.
    package func verify(_ names: [String] = [], deep: Bool) throws -> [Check] {
        guard let generation = try store.installed else {
            return [Check("store", "current", Finding(.pointer, .critical, "nothing is installed"))]
        }
        for name in names { _ = try generation.database(name) }
        let unfinished = try Unfinished(in: store.layout)
        var checks = unfinished.findings.map { finding in
            unfinished.workers.isEmpty
                ? Check("update", "finished", finding) : Check("update", "finished", note: finding.what)
        }
        let assessment = try Assessment(of: generation, in: store)
        for database in generation.manifest.databases where names.isEmpty || names.contains(database.name) {
            do {
                // A deep check reads each file for its digest.
                let state = try assessment.state(of: database, deep ? .deep : .check, reading: !deep)
                checks +=
                    try database.kind.isSealed ? sealed(state, assessment, deep: deep) : writable(state, deep: deep)
            } catch let error as MoultError where Files.isDenied(error) {
                var state = DatabaseState(database, generation.path(database.member), .nothing)
                state.isNotReadable("\(error.what): \(error.why ?? "denied")", .read(state.path))
                checks.append(Check(database.name, "path", state.content))
            }
        }
        return checks
    }

    private func sealed(_ state: DatabaseState, _ assessment: Assessment, deep: Bool) throws -> [Check] {
        let name = state.database.name
        let copied =
            state.isVerifiedCopy
            ? "copied; its SHA-256 matches" : state.isUnverified ? "copied; see the digest check" : nil
        var checks = [
            Check(name, "path", state.place),
            Check(name, "seal", state.isUnverified ? nil : state.content, note: copied),
            Check(name, "sidecars", state.sidecar),
        ]
        if deep, let file = state.file, try Files.factsThroughLinks(file)?.kind == .file {
            checks += try read(state, file).map { method, fault in
                Check(name, method, try fault.map { try assessment.changed(state.database, file, $0) })
            }
        }
        return checks
    }

    /// Checks the digest and the integrity of a file. If a step changed the file before it was sealed, the file has the digest
    /// in the seal, and not the one in the manifest.
    private func read(_ state: DatabaseState, _ file: String) throws -> [(method: String, fault: String?)] {
        let digest = try SHA256.digest(ofFileAt: file).hex
        let expected = state.sealedDigest ?? state.database.sha256
        let source = expected == state.database.sha256 ? "the manifest" : "the seal"
        return [
            ("digest", digest == expected ? nil : "SHA-256 is \(digest), and \(source) says \(expected)"),
            ("integrity_check", integrity(state.database, file)),
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

    private func writable(_ state: DatabaseState, deep: Bool) -> [Check] {
        let place = Check(state.database.name, "path", state.place)
        if state.place?.kind == .missing { return [place] }
        var check = Check(state.database.name, deep ? "integrity_check" : "quick_check", state.content)
        check.notChecked = state.notChecked
        return [place, check]
    }
}

extension ReplacedFile {
    /// Checks the file and its kept copies, which may be as damaged as the file was.
    package func verify(deep: Bool) throws -> [Verifier.Check] {
        let depth: Assessment.Depth = deep ? .deep : .check
        let copies = try sets.all().compactMap { set in set.file.map { (set.id, $0) } }
        return try [check(depth)] + copies.map { try check($0, $1, depth) { _ in nil } }
    }

    package func check(_ depth: Assessment.Depth) throws -> Verifier.Check {
        try check(name, path, depth) { kind in
            if kind == .missing { return try missing().now }
            guard kind == .damaged, try sets.undoable().last != nil else { return nil }
            let reset = ["moult", "reset", "--set-user-data-aside", name]
            return "To set it aside, and restore the content from before the last replacement: \(run: reset)"
        }
    }

    private func check(
        _ subject: String, _ path: String, _ depth: Assessment.Depth, _ advice: (Finding.Kind) throws -> Advice?
    ) throws -> Verifier.Check {
        var check = Verifier.Check(subject, depth == .deep ? "integrity_check" : "quick_check")
        // The copy of an empty file is empty.
        if path != self.path, try Files.facts(path)?.size == 0 { return check }
        let fitness = try Fitness.of(path, pages: depth.pages) {
            _ = try $0.int("SELECT count(*) FROM sqlite_schema")
            return nil
        }
        let fault: (kind: Finding.Kind, what: String, now: Advice?)
        switch fitness {
        case .fits(let parts):
            check.notChecked = parts
            return check
        case .missing: fault = (.missing, "it is missing", nil)
        case .unfit(let what, _): fault = (.damaged, what, nil)
        case .unknown(let error): fault = (Finding.Kind(of: error), error.why ?? error.what, error.now)
        }
        check.finding = Finding(
            fault.kind, fault.kind == .locked ? .note : .critical, path: path, database: subject, fault.what,
            advice: try advice(fault.kind) ?? fault.now)
        return check
    }
}
