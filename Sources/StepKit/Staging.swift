/// Where files are staged: on the file system on which they will live, so that one rename brings them in.
public enum Staging {
    /// Where a file waits that will become the living database at a path; `staging` is the transaction's directory.
    public static func waiting(_ path: String, in staging: String) -> String {
        guard let apart = apart(path, staging) else { return "\(staging)/waiting/\(path)" }
        return "\(apart)/\(path[name(path)...])"
    }

    /// Where the database waits whose rows are put back.
    public static func restoredRows(in staging: String) -> String { "\(staging)/restored.db" }

    /// The directory in which such files wait that will not live in the store; nil for one that will.
    public static func apart(_ path: String, _ staging: String) -> String? {
        guard path.hasPrefix("/") else { return nil }
        return "\(path[..<name(path)]).moult/staging/\(staging[name(staging)...])"
    }

    /// Where the last part of a path begins.
    private static func name(_ path: String) -> String.Index {
        path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    }
}
