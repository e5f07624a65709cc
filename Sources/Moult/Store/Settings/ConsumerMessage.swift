internal import MoultBasics
internal import StepKit

package struct ConsumerMessage: Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// Close the databases: they are about to be replaced.
        case release
        /// Open them again.
        case reload
    }

    package enum Outcome: String, Sendable {
        case installed
        /// The update failed, and everything is as before.
        case undone
    }

    package struct Database: Sendable, Equatable {
        package var name: String
        package var kind: String
        /// The stable path, which is the same for all releases.
        package var path: String
        /// The tables whose rows or columns differ; nil if they were not compared, so that any may differ.
        package var tables: [String]?
    }

    package var kind: Kind
    package var store: String
    package var product: String
    package var current: Generation.Reference?
    /// For a release call, the next release; for a reload, the previous one.
    package var other: Generation.Reference?
    package var outcome: Outcome?
    package var databases: [Database]

    package var json: JSON {
        .compact([
            "format": 1, "call": .string(kind.rawValue), "store": .string(store), "product": .string(product),
            "generation": .optional(current?.generation), "version": .optional(current?.version.description),
            kind == .release ? "next" : "previous": .optional(other?.generation),
            "outcome": .optional(outcome?.rawValue),
            "databases": .array(
                databases.map { database in
                    JSON.record([
                        "name": database.name, "kind": database.kind, "path": database.path, "tables": database.tables,
                    ])
                }),
        ])
    }

    /// The short form of the message, for programs that do not read JSON.
    package var environment: [String: String] {
        var environment = [
            "MOULT_CALL": kind.rawValue, "MOULT_STORE": store,
            "MOULT_CHANGED": databases.map(\.name).joined(separator: " "),
        ]
        environment["MOULT_GENERATION"] = current?.generation ?? ""
        environment["MOULT_VERSION"] = current?.version.description ?? ""
        environment["MOULT_OUTCOME"] = outcome?.rawValue
        return environment
    }
}
