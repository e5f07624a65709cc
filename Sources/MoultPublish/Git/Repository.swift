internal import MoultBasics
internal import MoultFiles

/// What git says about the checked-out revision.
package struct Revision: Equatable, Sendable {
    /// The nearest tag and the way from it, `2.1.0-3-g1a2b3c4`; without any tag the short hash. A `v` before the number
    /// is dropped; `-dirty` marks changes that are not committed.
    package let describe: String
    /// The commit's whole hash, marked like `describe`.
    package let hash: String
    /// The number of commits up to this one; nil if the clone is too shallow to know.
    package let count: Int?
    /// Some file that git knows differs from what is committed.
    package let isDirty: Bool

    /// Asks git about the repository that the directory belongs to.
    package init(of directory: String) throws {
        func git(_ arguments: String...) throws -> String {
            let result: Subprocess.Result
            do {
                // A look at the repository must not write its index, and messages are quoted as they are.
                result = try Subprocess.run(
                    ["git"] + arguments, in: directory,
                    environment: ["GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"], limit: 64 << 20)
            } catch {
                throw MoultError(
                    .repository, what: "cannot ask git about \(directory)", why: "\(error)",
                    now: "Install git, or give the value with --define.", cause: error)
            }
            guard result.succeeded else {
                throw MoultError(
                    .repository, what: "cannot take the version from the repository of \(directory)",
                    why: result.complaint, now: "Build in a git repository with a commit, or use a --define.")
            }
            return result.text
        }
        isDirty = !(try git("status", "--porcelain", "--untracked-files=no")).isEmpty
        let mark = isDirty ? "-dirty" : ""
        hash = try git("rev-parse", "--verify", "HEAD") + mark
        let described = try git("describe", "--tags", "--always")
        let isTagOfVersion = described.hasPrefix("v") && described.dropFirst().first?.isNumber == true
        describe = (isTagOfVersion ? String(described.dropFirst()) : described) + mark
        let isShallow = try git("rev-parse", "--is-shallow-repository") == "true"
        count = isShallow ? nil : Int(try git("rev-list", "--count", "HEAD"))
    }
}
