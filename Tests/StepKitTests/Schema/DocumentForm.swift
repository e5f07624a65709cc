import Moult
import MoultBasics
import StepKit

/// A kind of document whose schema and parser must agree.
enum DocumentForm: String, CaseIterable, Sendable {
    case draft = "manifest-draft"
    case sealed = "manifest-sealed"
    case settings
    case feed

    func schema() throws -> Schema { try .named(rawValue) }

    /// Returns the sample document, which has every field.
    func sample() throws -> JSON {
        switch self {
        case .draft: try SampleDocuments.draft()
        case .sealed: try SampleDocuments.sealed()
        case .settings: try SampleDocuments.settings()
        case .feed: try SampleDocuments.feed()
        }
    }

    /// Returns the error of the parser for a document; nil if the document is accepted.
    func refusal(_ document: JSON) -> String? {
        switch self {
        case .draft: return StepKitTests.refusal(document, as: .draft)
        case .sealed: return StepKitTests.refusal(document, as: .sealed)
        case .settings:
            do {
                _ = try Settings(parsing: Array(document.pretty.utf8), source: "moult.json")
                return nil
            } catch { return "\(error)" }
        case .feed:
            do {
                _ = try Feed(parsing: Array(document.line.utf8), source: "feed.json")
                return nil
            } catch { return "\(error)" }
        }
    }

    /// Returns variants of the sample: each value is removed or replaced, and each object gets an extra member.
    func mutants() throws -> [Mutant] {
        let sample = try sample()
        let values: [JSON] = [
            .null, true, .number(2), .integer(0), .integer(1 << 48 + 1), .integer(.max), "", "main", [""], ["x": 1],
        ]
        let databases = sample["databases"]?.members?.map(\.name) ?? []
        // All databases have the same fields, so each field is changed in only one database; only kinds are changed in
        // all databases.
        var seen: Set<[String]> = []
        return sample.paths.flatMap { path -> [Mutant] in
            let shape = path.split(separator: "/").map { part -> String in
                Int(part) != nil || databases.contains(String(part)) ? "*" : String(part)
            }
            guard seen.insert(shape).inserted || path.hasSuffix("/kind") else { return [] }
            let more = sample.at(path)?.members == nil ? [] : [Edit.set("\(path)/zzzzqqqq", 1)]
            return (more + [.remove(path)] + values.map { .set(path, $0) }).map { edit in
                Mutant(edit: edit, document: sample.edited([edit]))
            }
        }
    }
}

struct Mutant {
    let edit: Edit
    let document: JSON
}
