package import MoultBasics

extension Salvage {
    package struct Table: Equatable, Sendable {
        package let name: String
        package var rows: Int
        package var isWhole: Bool
        /// Why rows are missing from the new file, or differ there.
        package var why: String?
    }

    /// An index, trigger or view that could not be created in the new file.
    package struct Missing: Equatable, Sendable {
        package let kind: String
        package let name: String
        package let why: String
    }

    package struct Report: Equatable, Sendable {
        package var tables: [Table] = []
        package var missing: [Missing] = []
        package var note: String?
        /// Whether the cause is outside the files, such as a full disk, so that another attempt may succeed.
        package var mayBeRepeated = false

        /// The number of rows, without the tables that moult adds.
        package var rows: Int {
            tables.filter { !ownTables.contains($0.name) }.reduce(0) { $0 + $1.rows }
        }
        package var isWhole: Bool { note == nil && missing.isEmpty && tables.allSatisfy(\.isWhole) }

        package var json: JSON {
            .record([
                "rows": rows, "whole": isWhole, "note": note, "repeat": mayBeRepeated ? true : nil,
                "tables": tables.map {
                    JSON.record(["name": $0.name, "rows": $0.rows, "whole": $0.isWhole, "why": $0.why])
                },
                "missing": missing.map { JSON.record(["kind": $0.kind, "name": $0.name, "why": $0.why]) }.unlessEmpty,
            ])
        }

        package init() {}

        package init(failure error: any Error) {
            note = (error as? MoultError)?.why ?? "\(error)"
            mayBeRepeated = Salvage.isExternalFailure(error)
        }

        package init(json: JSON) {
            note = json["note"]?.string
            mayBeRepeated = json["repeat"]?.bool ?? false
            tables = (json["tables"]?.array ?? []).compactMap { table in
                guard let name = table["name"]?.string, let rows = table["rows"]?.integer else { return nil }
                return Table(
                    name: name, rows: Int(rows), isWhole: table["whole"]?.bool ?? false, why: table["why"]?.string)
            }
            missing = (json["missing"]?.array ?? []).compactMap { item in
                guard let kind = item["kind"]?.string, let name = item["name"]?.string, let why = item["why"]?.string
                else { return nil }
                return Missing(kind: kind, name: name, why: why)
            }
        }
    }
}
