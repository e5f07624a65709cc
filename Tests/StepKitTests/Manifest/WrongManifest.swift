import MoultBasics
import StepKit
import Testing

/// A manifest with one error, and the expected message.
struct WrongManifest: Sendable, CustomTestStringConvertible {
    let form: Manifest.Form
    let edits: [Edit]
    let says: String
    /// The reason why a schema cannot express the error; nil if it can.
    let beyond: BeyondSchema?

    init(_ form: Manifest.Form, _ edits: Edit..., says: String, beyond: BeyondSchema? = nil) {
        (self.form, self.edits, self.says, self.beyond) = (form, edits, says, beyond)
    }

    var testDescription: String { "\(form): " + edits.map(\.description).joined(separator: "; ") }

    func document() throws -> JSON {
        try (form == .draft ? SampleDocuments.draft() : SampleDocuments.sealed()).edited(edits)
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
