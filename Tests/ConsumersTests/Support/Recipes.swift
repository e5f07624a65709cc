import MoultFiles

/// The programs in the documentation, as a user would copy them.
enum Recipes {
    /// Returns the blocks of one language in a page of `docs/`, in order.
    static func all(in page: String, _ language: String) throws -> [String] {
        let root = #filePath.split(separator: "/").dropLast(4).reduce("") { "\($0)/\($1)" }
        let text = String(decoding: try Files.read("\(root)/docs/\(page)", limit: 1 << 20) ?? [], as: UTF8.self)
        var recipes: [String] = []
        var current: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line == "```\(language)" {
                current = []
            } else if line == "```", let lines = current {
                recipes.append(lines.joined(separator: "\n") + "\n")
                current = nil
            } else {
                current?.append(line)
            }
        }
        return recipes
    }
}
