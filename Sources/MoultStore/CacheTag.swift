internal import MoultFiles

/// The file by which backup tools know a directory whose content can be made again (bford.info/cachedir).
package enum CacheTag {
    private static let text =
        "Signature: 8a477f597d28d172789f06886806bc55\n# Made by moult: what is in here can be made again.\n"
    private static let name = "CACHEDIR.TAG"

    package static func put(in directory: String) throws {
        let path = "\(directory)/\(name)"
        if try Files.facts(path) == nil { try Files.writeNew(Array(text.utf8), to: path) }
    }

    /// Takes away the tag of an earlier version: backups must have what lies there.
    package static func remove(from directory: String) throws { try Files.remove("\(directory)/\(name)") }

    package static func isTag(_ file: String) -> Bool { file == name }
}
