package import MoultBasics
internal import MoultLibc

extension Errno {
    /// Returns an error with the failed operation and path, the cause, and the remedy. To find the remedy, the function checks
    /// which of the needed permissions is missing.
    package func error(_ what: String, _ needs: Permission...) -> MoultError {
        if self == .loop, let link = needs.lazy.compactMap({ StorePath.plantedLink(in: $0.path) }).first {
            return MoultError(
                .system, what: what,
                why: "\(link) is a symbolic link, and moult does not follow links in its own directory",
                now: "Remove the link: \(run: ["rm", link])", cause: self)
        }
        // The system's message does not name UTF-8.
        let why = self == Errno(EILSEQ) ? "a name, or the target of a link, is not valid UTF-8" : description
        return MoultError(.system, what: what, why: why, now: remedy(needs), cause: self)
    }

    /// The advice if a file cannot grow even though the disk has free space.
    package static let fileSizeAdvice: Advice =
        "A file cannot grow beyond the limit of this shell, or of the file system. To raise the limit of the shell: \(run: ["ulimit", "-f", "unlimited"])"

    private func remedy(_ needs: [Permission]) -> Advice? {
        switch self {
        case .denied:
            Permission.umaskAdvice ?? needs.compactMap(\.advice).first
                ?? "Check the owner and mode of the file and of the directories above it."
        case .noSpace, Errno(EDQUOT): "Free some space on that file system."
        case .tooLarge: Self.fileSizeAdvice
        case Errno(EXDEV):
            "A directory cannot be moved out of a lower layer of an overlay file system. Copy the store to a volume, and use the copy."
        case .readOnly: "The file system is mounted read-only; mount it for writing."
        default: nil
        }
    }
}

/// Runs system calls. A failure becomes an error whose message starts with `what`.
func wrapped<Result>(
    _ what: @autoclosure () -> String, _ need: Permission? = nil, _ body: () throws(Errno) -> Result
) throws -> Result {
    do { return try body() } catch {
        if let need { throw error.error(what(), need) }
        throw error.error(what())
    }
}
