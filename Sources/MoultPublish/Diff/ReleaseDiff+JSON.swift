package import MoultBasics
internal import MoultSQLite

extension ReleaseDiff {
    package var json: JSON {
        .compact([
            "differs": .bool(differs), "old": old.json, "new": new.json,
            "databases": .array(databases.map(\.json)),
            "notes": notes.isEmpty ? nil : .array(notes.map { .string($0) }),
        ])
    }
}

extension ReleaseDiff.Side {
    fileprivate var json: JSON {
        .compact(["path": .string(path), "kind": .string(kind.rawValue), "version": .optional(version)])
    }
}

extension ReleaseDiff.Entry {
    fileprivate var json: JSON {
        switch self {
        case .compared(let diff): diff.json
        case .added(let name): ["name": .string(name), "change": "added"]
        case .removed(let name): ["name": .string(name), "change": "removed"]
        case .kept(let name): ["name": .string(name), "change": "kept"]
        case .unknown(let name, let why): ["name": .string(name), "change": "unknown", "why": .string(why)]
        }
    }
}

extension DatabaseDiff {
    package var json: JSON {
        .compact([
            "name": .string(name), "change": .string(differs ? "changed" : "none"), "sameFile": .bool(isSameFile),
            "properties": .array(
                properties.map { ["name": .string($0.name), "old": .string($0.old), "new": .string($0.new)] }),
            "schema": .array(schema.map(\.json)),
            "tables": .array(tables.map(\.json)),
            "pages": pages?.json,
        ])
    }
}

extension SchemaChange {
    fileprivate var json: JSON {
        .compact([
            "change": .string(change.rawValue), "kind": .string(kind), "name": name.isEmpty ? nil : .string(name),
            "table": .optional(table), "old": .optional(old), "new": .optional(new), "words": .string(words),
        ])
    }
}

extension TableDiff {
    fileprivate var json: JSON {
        .compact([
            "name": .string(name),
            "change": .string(presence == .both ? differs ? "changed" : "none" : presence.rawValue),
            "method": .string(method.name), "key": .array(columns.prefix(keyColumns).map { .string($0) }),
            "why": .optional(method.why),
            "rowsBefore": .size(rowsBefore), "rowsAfter": .size(rowsAfter),
            "added": .size(added), "removed": .size(removed), "changed": .size(changed),
            "changedColumns": .object(changedColumns.map { .init($0.name, .size($0.rows)) }),
            "columns": .array(columns.map { .string($0) }),
            "samples": samples.isEmpty ? nil : .array(samples.map(\.json)),
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
        .compact([
            "change": .string(kind.rawValue), "old": old.map { .array($0.map(\.json)) },
            "new": new.map { .array($0.map(\.json)) },
        ])
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
            text.utf8.count == bytes ? .string(text) : ["text": .string(text), "bytes": .size(bytes)]
        case .blob(let start, let bytes): ["blob": .string(hexadecimal(start)), "bytes": .size(bytes)]
        }
    }
}

extension PageMap {
    fileprivate var json: JSON {
        [
            "pageSize": .size(pageSize), "old": .size(oldCount), "new": .size(newCount), "changed": .size(changed),
            "added": .size(added), "removed": .size(removed),
        ]
    }
}

/// Returns bytes as hexadecimal digits.
package func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
