/// The names that a manifest may give to files: short, ASCII, and without any power over paths.
public enum PlainName {
    /// The fault of a file's name; nil if it is plain.
    public static func fault(_ name: String) -> String? { fault(name, longest: 128) }

    private static func fault(_ name: String, longest: Int) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > longest { return "is longer than \(longest) characters" }
        guard name.utf8.allSatisfy(isPlain) else {
            return "has a character other than A-Z, a-z, 0-9, '.', '_' and '-'"
        }
        if name.hasPrefix(".") || name.hasPrefix("-") { return "begins with '\(name.prefix(1))'" }
        // SQLite would take such a file for a part of another database.
        let lower = name.lowercased()
        for suffix in ["-wal", "-shm", "-journal"] where lower.hasSuffix(suffix) {
            return "ends with \(suffix), which belongs to SQLite"
        }
        return reserved.contains(lower) ? "is a name that moult uses itself" : nil
    }

    /// The store's settings, and the files next to the sealed databases in a generation.
    private static let reserved = ["moult.json", "manifest.json", "seal.json"]

    /// The fault of a member's path: plain names of up to 255 characters, at most eight, joined by '/'.
    public static func fault(path: String) -> String? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count > 8 { return "has more than eight parts" }
        for part in parts {
            if let fault = fault(String(part), longest: 255) {
                return parts.count == 1 ? fault : "has a part that \(fault)"
            }
        }
        return nil
    }

    /// The name of a database: a letter, then letters, digits and '_', '-'.
    public static func databaseFault(_ name: String) -> String? {
        guard let first = name.utf8.first, (first | 0x20) >= 0x61, (first | 0x20) <= 0x7A else {
            return "must begin with a letter"
        }
        guard name.utf8.allSatisfy({ isPlain($0) && $0 != 0x2E }) else {
            return "may only have letters, digits, '_' and '-'"
        }
        return name.utf8.count > 64 ? "is longer than 64 characters" : nil
    }

    /// The fault of a product's name, which is in reverse DNS, `org.example.app`: at least two labels of letters, digits, '_'
    /// and '-'.
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
