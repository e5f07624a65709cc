internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// The files that a script may read: those in its own directory, unless the publisher allows more.
struct PathRule {
    /// The script's directory as given by the user, for messages; empty for the working directory.
    private let shownRoot: String
    let root: String
    private let allowsOutside: Bool

    init(script: String, allowsOutside: Bool) throws {
        let directory = Files.directory(of: script)
        shownRoot = script.containsSlash ? directory : ""
        root = try Files.resolved(directory)
        self.allowsOutside = allowsOutside
    }

    func shown(_ path: String) -> String {
        if path.isAbsolutePath || shownRoot.isEmpty { return path }
        return shownRoot == "/" ? "/\(path)" : "\(shownRoot)/\(path)"
    }

    func resolve(_ path: String, at place: Place) throws -> String {
        func reject(_ why: String, _ now: Advice?) -> MoultError {
            MoultError(.script, what: "\(place): cannot open \(shown(path))", why: why, now: now)
        }
        if path.hasPrefix("|") {
            throw reject(
                "a script that runs other programs is not repeatable",
                "Write the output of \(path.dropFirst().trimmed) to a file first.")
        }
        if path.isEmpty { throw reject("the name is empty", nil) }
        let full = path.isAbsolutePath ? path : "\(root)/\(path)"
        guard let facts = try Files.factsThroughLinks(full) else {
            throw reject("no such file", "Paths are relative to the directory of the script, \(root).")
        }
        guard facts.kind == .file else { throw reject("it is not a regular file", nil) }
        let real = try Files.resolved(full)
        guard allows(real) else {
            throw MoultError(
                .outside, .refused, what: "\(place): \(shown(path)) is not in the directory of the script",
                why: "its real path is \(real), and the script is in \(root)",
                now: "Move the file there, or build with --allow-outside.")
        }
        return real
    }

    /// Returns whether a file may be read; the path must be absolute and without symlinks.
    func allows(_ real: String) -> Bool { allowsOutside || real.isBelow(root) }

    /// Returns whether SQLite may open a file by this path. Opening a pipe would wait for another process.
    func allowsOpening(_ real: String) -> Bool { allows(real) && !Self.isSpecial(real) }

    /// Returns whether the path leads to something other than a regular file. If the path cannot be examined, SQLite cannot
    /// open it either.
    static func isSpecial(_ path: String) -> Bool {
        guard let facts = try? Files.factsThroughLinks(path) else { return false }
        return facts.kind != .file
    }
}
