package import MoultBasics
import MoultFiles
package import MoultStore

extension Settings {
    /// Changes a member of `moult.json`, as an operator would do.
    package static func rewrite(_ layout: StoreLayout, _ name: String, _ value: JSON?) throws {
        let bytes = try Files.read(layout.settings, limit: 1 << 20) ?? []
        let json = try JSON(parsing: bytes, as: .draft, source: layout.settings)
        try Files.replace(layout.settings, with: Array(json.setting(name, to: value).pretty.utf8))
    }
}
