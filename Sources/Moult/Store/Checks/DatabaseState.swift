package import MoultBasics
internal import MoultFiles
internal import MoultSQLite
package import StepKit

package struct DatabaseState: Sendable {
    package let database: Database
    package let path: String
    /// The generation's file of a read-only database.
    package internal(set) var file: String?
    /// The SHA-256 of that file when it was installed.
    var sealedDigest: String?
    package internal(set) var depth: Assessment.Depth
    package internal(set) var time: Timestamp?
    /// The size of the file; nil if it is missing or has not been asked for.
    package internal(set) var size: Int?
    /// The finding about the path: nothing is there, it does not lead to the release, or updates refuse to write there.
    package internal(set) var place: Finding?
    package internal(set) var content: Finding?
    package internal(set) var sidecar: Finding?
    /// Why every update refuses to write to the database, although apps can use it.
    package internal(set) var refusal: MoultError?
    /// The parts that could not be checked, each with the reason.
    package internal(set) var notChecked: [String] = []
    /// Whether the file of a read-only database is a copy that was read.
    var isVerifiedCopy = false
    /// Whether the file was installed without a check by SQLite, because its publisher had made that check.
    var isProvenByPublisher = false

    init(_ database: Database, _ path: String, _ depth: Assessment.Depth) {
        (self.database, self.path, self.depth) = (database, path, depth)
    }

    package enum State: String, Sendable {
        /// The file is the one that was verified.
        case sound
        /// Apps write to the database.
        case living
        case missing, changed, damaged
        /// Apps can use the database, but every update refuses to write to it.
        case blocked
        /// A copy of the verified file, or a different file: only reading the file can tell which.
        case unverified
    }

    package var state: State {
        switch findings.first?.kind {
        case nil: database.kind.isSealed ? .sound : .living
        case .locked, .denied: .living
        case .missing: .missing
        case .changed: .changed
        case .blocked: .blocked
        case .unverified: .unverified
        default: .damaged
        }
    }

    /// Worst first.
    package var findings: [Finding] { [place, sidecar, content].compactMap(\.self) }
    /// What keeps apps from using the database; nil if nothing does.
    package var fault: Finding? { findings.first { $0.severity == .critical } }
    /// Whether only a new file repairs the database.
    var needsReset: Bool { fault.map { [.missing, .damaged].contains($0.kind) } ?? false }
    /// Whether the file of a read-only database may be a copy, and was not read.
    var isUnverified: Bool { content?.kind == .unverified }
    /// The publisher's proof, if it replaced a check by SQLite on this machine.
    package var proof: String? { state == .sound && isProvenByPublisher ? database.proved?.words : nil }
    /// Whether nothing was read, because the file is locked or this user may not read it.
    var isNotRead: Bool { depth == .nothing }

    mutating func isNotReadable(_ why: String, _ need: Permission) {
        let advice = need.command.map { "To let this user read \(database.name): \(run: $0)" as Advice } ?? need.advice
        isNotRead(.denied, path, "this user has no read permission", why, advice)
    }

    mutating func isNotRead(_ kind: Finding.Kind, _ path: String, _ what: String, _ why: String, _ advice: Advice?) {
        (depth, notChecked) = (.nothing, [why])
        content = Finding(
            kind, kind == .locked ? .note : .warning, path: path, database: database.name, what, why: why,
            advice: advice)
    }
}

extension Finding {
    static func sidecar(_ path: String, of database: Database, in layout: StoreLayout) throws -> Finding {
        Finding(
            .sidecar, path: path, database: database.name, "it is next to the read-only database \(database.name)",
            why: "SQLite would read it as part of the database, and return wrong data",
            advice: try .movingAway(path, layout))
    }
}

extension Advice {
    /// The command that moves a file out of the way. Each file gets a unique name in the store's directory, so that cleaning a
    /// temporary directory cannot delete it.
    static func movingAway(_ path: String, _ layout: StoreLayout) throws -> Advice {
        "\(run: ["mv", path, try Files.firstFree("\(layout.root)/\(Files.name(of: path)).moved")])"
    }
}
