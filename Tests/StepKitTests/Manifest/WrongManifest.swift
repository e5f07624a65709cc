import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// A manifest with one error, and the expected message, as in `Tests/Golden/manifests.txt`: the form and the edits of a valid
/// manifest, the message, and why a schema cannot express the error.
struct WrongManifest: Sendable, CustomTestStringConvertible {
    let form: Manifest.Form
    let edits: [Edit]
    let says: String
    /// The reason why a schema cannot express the error; nil if it can.
    let beyond: BeyondSchema?

    var testDescription: String { "\(form): " + edits.map(\.description).joined(separator: "; ") }

    func document() throws -> JSON {
        try (form == .draft ? SampleDocuments.draft() : SampleDocuments.sealed()).edited(edits)
    }

    private static let page = "Tests/Golden/manifests.txt"

    static let all: [WrongManifest] = {
        do { return try Project.text(page).split(separator: "\n\n").map { try WrongManifest($0) } } catch {
            Issue.record(error)
            return []
        }
    }()

    private init(_ text: Substring) throws {
        var lines = text.split(separator: "\n")
        form = lines.removeFirst() == "draft" ? .draft : .sealed
        beyond = lines.last?.hasPrefix("? ") == true ? BeyondSchema(named: lines.removeLast().dropFirst(2)) : nil
        says = lines.removeLast().dropFirst(4).description
        edits = try lines.map { line in
            if line.hasSuffix(" removed") { return .remove(String(line.dropLast(" removed".count))) }
            let sign = try #require(line.firstRange(of: " = "))
            let value = try JSON(parsing: String(line[sign.upperBound...]), source: Self.page)
            return .set(String(line[..<sign.lowerBound]), value)
        }
    }

    /// With MOULT_TEXTS=write, writes the present messages into the file.
    static func write(says: (WrongManifest) throws -> String) throws {
        let texts = try all.map { wrong in
            (["\(wrong.form)"] + wrong.edits.map(\.description) + ["    \(try says(wrong))"]
                + (wrong.beyond.map { ["? \($0)"] } ?? [])).joined(separator: "\n")
        }
        try Files.replace(
            "\(Project.root)/\(page)", with: Array((texts.joined(separator: "\n\n") + "\n").utf8), mode: 0o644)
    }
}

extension BeyondSchema {
    fileprivate init?(named name: Substring) {
        guard let found = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
        self = found
    }
}

/// Errors that the parser detects but a schema cannot express, each with words from the message of the parser.
enum BeyondSchema: String, CaseIterable {
    /// JSON Schema treats 1.0 as an integer.
    case wholeNumbersHaveNoPoint = "is a decimal number"
    case daysExist = "is not a time"
    case expiresAfterCreated = "must be later than created"
    case namesDiffer = "is also databases."
    case namesDifferByMoreThanCase = "only in case"
    case aliasesDiffer = "is also the name by which"
    case mainAndTempAreTaken = "because SQLite uses that name"
    case migrationsAscend = "and the migration before it sets"
    case migrationsLeadTo32Bits = "that it sets"
    case someVersionIsPossible = "less than userVersionAtLeast"
    case databasesAreKnown = "is not a database of this release"
    case membersAreKnown = "is not a file of this release"
    case criticalFieldsAreKnown = "the manifest says that it is critical"
}
