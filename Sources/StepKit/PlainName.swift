internal import MoultBasics

/// The names that a manifest may give to files: short, ASCII, and without path separators.
public enum PlainName {
    /// Returns why a file name is not allowed; nil if it is.
    public static func fault(_ name: String) -> String? { fault(name, longest: 128) }

    private static func fault(_ name: String, longest: Int) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > longest { return "is longer than \(longest) characters" }
        guard name.utf8.allSatisfy(isPlain) else { return "has a character other than A-Z, a-z, 0-9, '.', '_' and '-'" }
        if name.hasPrefix(".") || name.hasPrefix("-") { return "begins with '\(name.prefix(1))'" }
        // SQLite would treat such a file as a sidecar of another database.
        let lower = name.lowercased()
        for suffix in SidecarSuffixes.all where lower.hasSuffix(suffix) {
            return "ends with \(suffix), which SQLite uses itself"
        }
        return reserved.contains(lower) ? "is a name that moult uses itself" : nil
    }

    /// File names that moult uses itself: the settings of the store, and the records next to the read-only databases of a
    /// generation.
    private static let reserved = ["moult.json", "manifest.json", "seal.json"]

    /// Returns why a member's path is not allowed; nil if it is. A path has up to eight plain names of up to 255 characters
    /// each, joined by '/'.
    public static func fault(path: String) -> String? {
        let parts = path.pathParts(keepingEmpty: true)
        if parts.count > 8 { return "has more than eight parts" }
        for part in parts {
            if let fault = fault(String(part), longest: 255) {
                return parts.count == 1 ? fault : "has a part that \(fault)"
            }
        }
        return nil
    }

    /// Returns why a database name is not allowed; nil if it is. A name starts with a letter, continues with letters, digits,
    /// '_' and '-', and has at most 64 characters.
    public static func databaseFault(_ name: String) -> String? {
        guard let first = name.utf8.first, (first | 0x20) >= 0x61, (first | 0x20) <= 0x7A else {
            return "must begin with a letter"
        }
        guard name.utf8.allSatisfy({ isPlain($0) && $0 != 0x2E }) else {
            return "may contain only letters, digits, '_' and '-'"
        }
        return name.utf8.count > 64 ? "is longer than 64 characters" : nil
    }

    /// Returns why a product name is not allowed; nil if it is. A name has at least two labels in reverse-DNS form
    /// (`org.example.app`), each of letters, digits, '_' and '-'.
    public static func productFault(_ name: String) -> String? {
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 2, labels.allSatisfy({ !$0.isEmpty && $0.first != "-" && $0.utf8.allSatisfy(isPlain) })
        else { return "must be a reverse-DNS name such as org.example.app" }
        return name.utf8.count > 255 ? "is longer than 255 characters" : nil
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        Version.isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || byte == 0x2E || byte == 0x5F || byte == 0x2D
    }
}
