package import MoultBasics
internal import MoultSQLite
internal import StepKit

extension Inspection {
    package var json: JSON {
        .compact([
            "kind": .string(kind.rawValue), "path": .string(path),
            "product": .optional(manifest?.product), "version": .optional(manifest?.version.description),
            "sequence": manifest.map { .size($0.sequence) },
            "manifestSHA256": .optional(manifestDigest),
            "manifest": manifest?.sealedJSON(),
            "databases": .array(databases.map { $0.json(hasFile: hasFile(of: $0)) }),
            "notes": notes.isEmpty ? nil : .array(notes.map { .string($0) }),
        ])
    }
}

extension Inspection.Entry {
    fileprivate func json(hasFile: Bool) -> JSON {
        guard let found else {
            return .compact(["name": .string(name), "kind": .optional(declared?.kind.rawValue), "here": false])
        }
        return .compact([
            "name": .string(name), "kind": .optional(declared?.kind.rawValue), "here": true,
            "path": hasFile ? .string(found.path) : nil, "size": .size(found.size), "sha256": .string(found.sha256),
            "applicationID": .integer(Int64(found.identity.applicationID)),
            "userVersion": .integer(Int64(found.identity.userVersion)), "schema": .string(found.schemaDigest),
            "encoding": .string(found.identity.encoding), "pageSize": .size(found.identity.pageSize),
            "pages": .size(found.identity.pageCount), "freePages": .size(found.freePages), "wal": .bool(found.isWAL),
            "sidecars": .array(found.sidecars.map { ["name": .string($0.name), "size": .size($0.size)] }),
            "tables": .array(found.tables.map(\.json)),
            "schemaText": .array(
                found.identity.shape.canonicalText.split(separator: "\n").map { .string(String($0)) }),
            "findings": .array(found.findings.map { .string($0) }),
            "notChecked": found.notChecked.isEmpty ? nil : .array(found.notChecked.map { .string($0) }),
        ])
    }
}

extension DatabaseInspection.Table {
    fileprivate var json: JSON {
        .compact([
            "name": .string(name), "virtual": .bool(isVirtual), "columns": .array(columns.map { .string($0) }),
            "rows": rows.map { .size($0) }, "why": .optional(obstacle),
        ])
    }
}
