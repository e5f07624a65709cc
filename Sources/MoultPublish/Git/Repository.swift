internal import MoultBasics
internal import MoultFiles

/// Information from git about the checked-out revision.
package struct Revision: Equatable, Sendable {
    /// The nearest tag and the distance from it, `2.1.0-3-g1a2b3c4`; without a tag, the short hash. A `v` before the
    /// number is dropped; `-dirty` marks uncommitted changes.
    package let describe: String
    package let hash: String
    /// The number of commits up to this one; nil if the clone is too shallow to know.
    package let count: Int?
    package let isDirty: Bool

    /// The git command. The configuration of a repository may specify programs: file system monitors, hooks, and programs that
    /// fetch missing objects. None of them may run. Filters run only if the user's own configuration has them.
    private static let command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    /// The environment of git. Variables for programs and paths of git are removed, except for the user's own configuration.
    /// Reading the repository must not write its index, and messages must not be translated.
    private static var environment: [String: String] {
        get throws {
            var environment = ProcessEnvironment.all.filter { $0.key.hasPrefix("GIT_CONFIG") }
            for name in ["PATH", "HOME", "XDG_CONFIG_HOME", "SUDO_UID"] {
                environment[name] = try ProcessEnvironment.value(name)
            }
            return environment.merging([
                "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C",
            ]) { $1 }
        }
    }
    /// The sandbox of git, which only needs to read. Programs that git might still start have no more rights.
    private static let `guard` = Guard(.program(plans: true))

    package init(of directory: String) throws {
        var environment = try Self.environment
        func result(_ arguments: [String], in place: String) throws -> Subprocess.Result {
            do {
                return try Self.guard.run(
                    Self.command + arguments, in: place, wholeEnvironment: environment, limit: 64 << 20)
            } catch {
                throw MoultError(
                    .repository, what: "cannot run git in \(directory)", why: "\(error)",
                    now: "Install git, or specify the value with --define.", cause: error)
            }
        }
        func failure(_ why: String) -> MoultError {
            MoultError(
                .repository, what: "cannot read the Git revision of \(directory)", why: why,
                now: "Build in a git repository with a commit, or specify the value with --define.")
        }
        func git(_ arguments: String..., in place: String? = nil) throws -> String {
            let result = try result(arguments, in: place ?? directory)
            guard result.succeeded else { throw failure(result.complaint) }
            return result.text
        }
        // Git ends with 1 if no filter is configured.
        let filters = try result(["config", "--null", "--show-scope", "--get-regexp", "^filter[.]"], in: directory)
        guard filters.succeeded || filters.output.isEmpty else { throw failure(filters.complaint) }
        guard let settings = OutsideText.valid(filters.output) else {
            throw failure("the name of a filter in its configuration is not valid UTF-8")
        }
        environment.merge(Self.withoutFilters(settings, environment)) { $1 }
        let top = try git("rev-parse", "--show-toplevel")
        isDirty =
            try !git("diff-index", "--cached", "--name-only", "--no-renames", "HEAD").isEmpty
            || git("diff-files", "-z", "--raw", "--no-abbrev", "--ignore-submodules", in: top).split(separator: "\0")
                .pairs.contains { facts, path in
                    // :100644 100644 <hash in the index> <zeros> M
                    let words = facts.split(separator: " ")
                    guard words.count == 5, words[4] == "M", words[0].dropFirst() == words[1] else { return true }
                    return try git("hash-object", "--no-filters", "--", String(path), in: top) != words[2]
                }
        let mark = isDirty ? "-dirty" : ""
        hash = try git("rev-parse", "--verify", "HEAD") + mark
        let described = try git("describe", "--tags", "--always")
        let isTagOfVersion = described.hasPrefix("v") && described.dropFirst().first?.isNumber == true
        describe = (isTagOfVersion ? String(described.dropFirst()) : described) + mark
        let isShallow = try git("rev-parse", "--is-shallow-repository") == "true"
        count = isShallow ? nil : Int(try git("rev-list", "--count", "HEAD"))
    }

    /// Returns variables that replace the filters in the configuration of the repository, which git runs to compare files. The
    /// filters of the user, such as those of Git LFS, stay.
    static func withoutFilters(_ settings: String, _ environment: [String: String]) -> [String: String] {
        var (drivers, trusted) = (Set<Substring>(), [Substring: Substring]())
        for (scope, setting) in settings.split(separator: "\0", omittingEmptySubsequences: false).pairs {
            let words = setting.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
            guard let key = words.first, let dot = key.lastIndex(of: ".") else { continue }
            if scope == "local" || scope == "worktree" {
                drivers.insert(key[..<dot])
            } else {
                trusted[key] = words.count > 1 ? words[1] : "true"
            }
        }
        let known = environment["GIT_CONFIG_COUNT"].flatMap { Int($0) } ?? 0
        var variables: [String: String] = [:]
        for driver in drivers.sorted() {
            for (name, none) in [("clean", ""), ("process", ""), ("required", "false")] {
                let number = known + variables.count / 2
                variables["GIT_CONFIG_KEY_\(number)"] = "\(driver).\(name)"
                variables["GIT_CONFIG_VALUE_\(number)"] = String(trusted["\(driver).\(name)"] ?? none[...])
            }
        }
        if !variables.isEmpty { variables["GIT_CONFIG_COUNT"] = "\(known + variables.count / 2)" }
        return variables
    }
}

extension Array {
    /// Pairs of elements: the first and the second, the third and the fourth, and so on.
    fileprivate var pairs: [(Element, Element)] {
        stride(from: 0, to: count - 1, by: 2).map { (self[$0], self[$0 + 1]) }
    }
}
