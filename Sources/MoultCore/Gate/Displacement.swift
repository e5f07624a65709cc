internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// The one gate through which the content of a writable database is replaced, migrated or removed.
///
/// It asks for a proof that the old content is expendable, computed while the database is held. Content without such a
/// proof is put into quarantine before the update decides. What an update leaves in its directory afterwards is removed
/// through the gate as well, because after an exchange the old file lies there.
final class Displacement {
    /// Why old content may go.
    enum Proof: String, Sendable {
        /// Rows and schema equal what a release shipped.
        case shipped
        /// Every difference from what was shipped is in the new content, or in the reject table.
        case accounted
        /// The file that was there before moult: the same update keeps all of it as a generation.
        case adopted
        /// The complete content is in quarantine.
        case kept
    }

    /// The set's directory in quarantine.
    let directory: String
    private let place: String
    private var record: QuarantineRecord
    private(set) var proof: Proof?
    /// What happened to the rows, by table.
    private(set) var fates: [RowFate] = []

    init(place: String, directory: String, record: QuarantineRecord) {
        (self.place, self.directory, self.record) = (place, directory, record)
    }

    // MARK: proving

    /// Takes the verdict over the old content; `hasContentLeft` if any of it is neither shipped nor in the new content.
    func prove(_ fates: [RowFate], isShipped: Bool, hasContentLeft: Bool) {
        self.fates = fates.filter { !$0.isEmpty }
        proof = hasContentLeft ? .kept : isShipped ? .shipped : .accounted
        record.rows = Dictionary(fates.filter { $0.kept > 0 }.map { ($0.table, $0.kept) }) { $0 + $1 }
    }

    /// The old file becomes a generation of its own by the same update.
    func proveAdopted(_ fates: [RowFate]) { (self.fates, proof) = (fates.filter { !$0.isEmpty }, .adopted) }

    /// An undo after a crash replaces content that an app may have written to.
    func proveUndone() {
        (proof, record.reason, record.why) = (.kept, .undone, "an undo after a crash replaced it")
    }

    var isKept: Bool { proof == .kept }

    // MARK: keeping

    /// Gives the complete file, which has no sidecars, a second name in quarantine.
    func keepFile() throws {
        try begin(FileFacts.of(place))
        if try !Files.hardLinkIfPossible(place, at: file) { throw cannotKeep() }
        try sync()
    }

    /// Copies the database as the connection sees it into quarantine.
    func keepCopy(of connection: Connection) throws {
        try begin(Files.factsThroughLinks(place))
        let copy = try Connection(path: file, access: .readWriteCreate)
        try connection.backup(to: copy)
        try copy.close()
        try Files.seal(file, mode: 0o600)
        try sync()
    }

    /// Moves a copy that was made while the database was held into quarantine.
    func keep(copy: String) throws {
        try begin(Files.factsThroughLinks(place))
        try Files.seal(copy, mode: 0o600)
        try Files.rename(copy, to: file)
        try sync()
    }

    private var file: String { "\(directory)/\(Files.name(of: place))" }

    private func begin(_ facts: FileFacts?) throws {
        let above = Files.directory(of: directory)
        try Files.ensureDirectory(Files.directory(of: above))
        try Files.ensureDirectory(above)
        // One from before a crash, for the same update: the content is taken again as it is now.
        try Removable(pending: directory, at: { _ in place })?.remove()
        if try Files.facts(directory) != nil {
            // Its content is not the present one, as in a copied store where the app has written since: it stays, too.
            var (other, number) = ("\(directory).2", 2)
            while try Files.facts(other) != nil {
                number += 1
                other = "\(directory).\(number)"
            }
            try Files.rename(directory, to: other)
        }
        try Files.makeDirectory(directory, mode: 0o700)
        record.owner = facts.map { QuarantineRecord.Owner($0) }
        record.isPending = true
        try record.write(to: directory)
    }

    private func sync() throws {
        var changed = directory
        for _ in 0..<3 {
            try Files.syncDirectory(changed)
            changed = Files.directory(of: changed)
        }
    }

    private func cannotKeep() -> MoultError {
        MoultError(
            .quarantine, .refused, what: "the old content of \(place) cannot be kept",
            why: "the file system or the owner of the file does not allow a second name for it",
            now: "Let the release replace it live: \"replace\": \"live\".")
    }

    // MARK: the end of the update

    /// The new content is in place: what is kept stays for good.
    func commit() throws { try Self.settle(directory, isInstalled: true) { _ in place } }

    /// The update ended without replacing anything.
    func abandon() throws { try Self.settle(directory, isInstalled: false) { _ in place } }

    /// Ends all that a transaction put into quarantine; also after a crash.
    static func settle(_ transaction: Transaction, _ plan: Plan, isInstalled: Bool) throws {
        let roots = Set([transaction.layout.quarantine] + plan.made.map { transaction.layout.quarantine(of: $0) })
        // The paths of a store that was copied begin with the path of its original.
        let (root, original) = (transaction.layout.root, plan.store)
        func place(_ record: QuarantineRecord) -> String {
            record.path.hasPrefix("\(original)/") ? root + record.path.dropFirst(original.count) : record.path
        }
        for root in roots.sorted() {
            for name in try Files.list(root) where name.hasPrefix("\(transaction.id)-") {
                try settle("\(root)/\(name)", isInstalled: isInstalled, at: place)
            }
        }
    }

    private static func settle(
        _ directory: String, isInstalled: Bool, at place: (QuarantineRecord) -> String
    ) throws {
        guard var record = try QuarantineRecord(in: directory) else {
            // A crash came before the record was written, and so before any content.
            try Removable(pending: directory, at: place)?.remove()
            return
        }
        guard record.isPending else { return }
        if !isInstalled, let removable = try Removable(pending: directory, at: place) { return try removable.remove() }
        record.isPending = false
        try record.write(to: directory)
    }
}

extension FileFacts {
    fileprivate static func of(_ path: String) throws -> FileFacts? { try Files.facts(path) }
}

extension MoultError.Code {
    /// Content of a writable database cannot be put into quarantine.
    static let quarantine = Self(632)
}
