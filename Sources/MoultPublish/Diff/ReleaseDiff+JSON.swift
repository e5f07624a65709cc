package import MoultBasics
internal import MoultRows
internal import MoultSQLite

extension ReleaseDiff {
    package var json: JSON {
        .record([
            "differs": differs, "old": old.json, "new": new.json, "databases": databases.map(\.json),
            "notes": notes.unlessEmpty,
        ])
    }
}

extension ReleaseDiff.Side {
    fileprivate var json: JSON { .record(["path": path, "kind": kind.rawValue, "version": version]) }
}

extension ReleaseDiff.Entry {
    fileprivate var json: JSON {
        switch self {
        case .compared(let diff): diff.json
        case .added(let name): .record(["name": name, "change": "added"])
        case .removed(let name): .record(["name": name, "change": "removed"])
        case .kept(let name): .record(["name": name, "change": "kept"])
        case .unknown(let name, let why): .record(["name": name, "change": "unknown", "why": why])
        }
    }
}

extension DatabaseDiff {
    package var json: JSON {
        .record([
            "name": name, "change": differs ? "changed" : "none", "sameFile": isSameFile,
            "properties": properties.map { JSON.record(["name": $0.name, "old": $0.old, "new": $0.new]) },
            "schema": schema.map(\.json), "tables": tables.map(\.json), "pages": pages?.json,
        ])
    }
}

extension SchemaChange {
    fileprivate var json: JSON {
        .record([
            "change": change.rawValue, "kind": kind, "name": name.unlessEmpty, "table": table, "old": old, "new": new,
            "words": words,
        ])
    }
}

extension TableDiff {
    fileprivate var json: JSON {
        .record([
            "name": name, "change": presence == .both ? differs ? "changed" : "none" : presence.rawValue,
            "method": method.name, "key": Array(columns.prefix(keyColumns)), "why": method.why,
            "rowsBefore": rowsBefore,
            "rowsAfter": rowsAfter, "added": added, "removed": removed, "changed": changed,
            "changedColumns": JSON.object(changedColumns.map { .init($0.name, .size($0.rows)) }), "columns": columns,
            "samples": samples.map(\.json).unlessEmpty,
        ])
    }
}

extension TableDiff.Method {
    fileprivate var name: String {
        switch self {
        case .primaryKey: "primary key"
        case .rowid: "rowid"
        case .content: "content"
        case .index: "index"
        case .counted: "counted"
        case .unread: "unread"
        }
    }
    fileprivate var why: String? { if case .unread(let why) = self { why } else { nil } }
}

extension RowSample {
    fileprivate var json: JSON {
        .record(["change": kind.rawValue, "old": old.map { $0.map(\.json) }, "new": new.map { $0.map(\.json) }])
    }
}

extension SampleValue {
    /// Numbers and complete texts are written as they are. A blob or a truncated text is written as an object with its size in
    /// bytes.
    fileprivate var json: JSON {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number): .number(number)
        case .text(let text, let bytes):
            text.utf8.count == bytes ? .string(text) : .record(["text": text, "bytes": bytes])
        case .blob(let start, let bytes): .record(["blob": hexadecimal(start), "bytes": bytes])
        }
    }
}

extension PageMap {
    fileprivate var json: JSON {
        .record([
            "pageSize": pageSize, "old": oldCount, "new": newCount, "changed": changed, "added": added,
            "removed": removed,
        ])
    }
}

/// Returns bytes as hexadecimal digits.
package func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
