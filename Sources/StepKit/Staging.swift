internal import MoultBasics

/// The paths of staged files: on the file system of their destination, so that a single rename installs them.
public enum Staging {
    /// Returns the path of the staged file for the writable database at `path`; `staging` is the transaction's directory.
    public static func waiting(_ path: String, in staging: String) -> String {
        guard let apart = apart(path, staging) else { return "\(staging)/waiting/\(path)" }
        return "\(apart)/\(path[name(path)...])"
    }

    /// Returns the path of the private copy of the old content of the writable database at `path`.
    public static func held(_ path: String, in staging: String) -> String {
        guard let apart = apart(path, staging) else { return "\(staging)/held/\(path)" }
        return "\(apart)/held/\(path[name(path)...])"
    }

    /// Returns the path of an unpacked member of the bundle.
    public static func unpacked(_ member: String, in staging: String) -> String { "\(unpacked(in: staging))/\(member)" }

    /// Returns the directory of the unpacked members of the bundle.
    public static func unpacked(in staging: String) -> String { "\(staging)/unpacked" }

    /// Returns the directory of the files that are kept in quarantine with a damaged database: the rows that could be read, and
    /// a report.
    public static func salvaged(in staging: String) -> String { "\(staging)/salvaged" }

    /// The name of the database with the rows that were read from a damaged one.
    public static let salvagedRows = "salvaged.db"

    /// The name of the report on these rows.
    public static let salvageReport = "salvaged.json"

    /// Returns the path of the copy of a set that is restored, or whose rows are.
    public static func restored(in staging: String) -> String { "\(staging)/restored.db" }

    /// Returns the directory for staged files whose destination is outside the store; nil if the destination is in the store.
    public static func apart(_ path: String, _ staging: String) -> String? {
        guard path.isAbsolutePath else { return nil }
        return "\(path[..<name(path)]).moult/staging/\(staging[name(staging)...])"
    }

    /// Returns the index at which the last part of a path begins.
    private static func name(_ path: String) -> String.Index {
        path.lastSlash.map { path.utf8.index(after: $0) } ?? path.startIndex
    }
}
