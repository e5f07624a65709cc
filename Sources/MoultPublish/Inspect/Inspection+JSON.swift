package import MoultBasics
internal import MoultRows
internal import MoultSQLite
internal import StepKit

extension Inspection {
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
        guard let found else {
            return .record(["name": name, "kind": declared?.kind.rawValue, "here": false])
        }
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
