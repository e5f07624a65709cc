internal import MoultBasics
internal import MoultStore
internal import StepKit

/// What format 1 has and this version does not do: refused by name, never ignored.
enum UnsupportedFeatures {
    static func refuse(_ manifest: Manifest) throws {
        for database in manifest.databases {
            let place = "databases.\(database.name)"
            if !database.marker { throw error("\(place).marker: shared databases without a marker") }
        }
    }

    private static func error(_ what: String) -> MoultError {
        MoultError(
            .notBuilt, .refused, what: "\(what) are not built into this moult", why: "this is version \(moultVersion)",
            now: "Install a newer moult, or publish the release without them.")
    }
}
