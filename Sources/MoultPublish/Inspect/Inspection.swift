package import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
package import StepKit

/// The content of a database, a release, a bundle or a store.
package struct Inspection: Sendable {
    package let kind: Subject.Kind
    package let path: String
    package let manifest: Manifest?
    /// The digest of the manifest's bytes, whose first eight digits are part of a generation's name; nil if the manifest file
    /// is missing.
    package let manifestDigest: String?
    package let databases: [Entry]
    package let notes: [String]

    package struct Entry: Sendable {
        package let name: String
        package let declared: Database?
        /// The facts about the file; nil if it is not available.
        package let found: DatabaseInspection?
        /// The problem with a file that is not available.
        package let fault: String?
    }

    /// Inspects every database of the subject, or only the given ones; `counting` gets database and table.
    package init(
        _ subject: Subject, only names: [String] = [],
        counting: (_ database: String, _ table: String) throws -> Void = { _, _ in }
    ) throws {
        for name in names where subject.part(name) == nil { throw subject.unknown(name) }
        let wanted = names.compactMap { subject.part($0)?.name }
        kind = subject.kind
        path = subject.path
        manifest = subject.manifest
        notes = subject.notes
        manifestDigest = try subject.manifestBytes.map { try SHA256.digest(of: $0).hex }
        databases = try subject.parts.filter { names.isEmpty || wanted.contains($0.name) }.map { part in
            let isWritableCopy = subject.kind == .store && part.declared?.kind.isSealed == false
            var found = try DatabaseInspection(part, isWritableCopy: isWritableCopy) { try counting(part.name, $0) }
            found?.findings += part.fault.map { [$0] } ?? []
            return Entry(name: part.name, declared: part.declared, found: found, fault: found == nil ? part.fault : nil)
        }
    }

    /// Returns whether the file of a database still exists after the inspection: a file from a bundle is unpacked only for the
    /// inspection.
    package func hasFile(of entry: Entry) -> Bool {
        switch kind {
        case .bundle: false
        case .release: entry.declared?.place == .inPlace
        case .database, .store: true
        }
    }

    package var isSound: Bool { databases.allSatisfy { $0.found?.findings.isEmpty ?? ($0.fault == nil) } }

    package var json: JSON {
        .record([
            "kind": kind.rawValue, "path": path, "product": manifest?.product, "version": manifest?.version.description,
            "sequence": manifest.map(\.sequence), "manifestSHA256": manifestDigest, "manifest": manifest?.sealedJSON(),
            "databases": databases.map { $0.json(hasFile: hasFile(of: $0)) }, "notes": notes.unlessEmpty,
        ])
    }
}

extension Inspection.Entry {
    fileprivate func json(hasFile: Bool) -> JSON {
        guard let found else { return .record(["name": name, "kind": declared?.kind.rawValue, "here": false]) }
        return .record([
            "name": name, "kind": declared?.kind.rawValue, "here": true, "path": hasFile ? found.path : nil,
            "size": found.size, "sha256": found.sha256, "applicationID": found.identity.applicationID,
            "userVersion": found.identity.userVersion, "schema": found.schemaDigest,
            "encoding": found.identity.encoding, "pageSize": found.identity.pageSize, "pages": found.identity.pageCount,
            "freePages": found.freePages, "wal": found.isWAL,
            "sidecars": found.sidecars.map { JSON.record(["name": $0.name, "size": $0.size]) },
            "tables": found.tables.map(\.json),
            "schemaText": found.identity.shape.canonicalText.split(separator: "\n").map { String($0) },
            "findings": found.findings, "notChecked": found.notChecked.unlessEmpty,
        ])
    }
}

extension DatabaseInspection.Table {
    fileprivate var json: JSON {
        .record(["name": name, "virtual": isVirtual, "columns": columns, "rows": rows, "why": obstacle])
    }
}
