internal import MoultBasics

extension MoultError {
    /// The same error with the store in the commands that it advises: where they will be run, there may be none or another.
    ///
    /// Errors come from rooms that do not know the command line, so a command is found by how advice is written: behind a
    /// colon, up to a comma, a full stop or the end.
    func naming(store words: [String], in verbs: Set<String>) -> MoultError {
        guard !words.isEmpty, let now else { return self }
        var named = self
        let parts = now.split(separator: ": moult ", omittingEmptySubsequences: false)
        named.now =
            ([String(parts[0])]
            + parts.dropFirst().map { part in
                guard verbs.contains(String(part.prefix { $0 != " " && $0 != "." && $0 != "," })) else {
                    return String(part)
                }
                let end = [", ", ". "].compactMap { part.firstRange(of: $0)?.lowerBound }.min()
                return "\(part[..<(end ?? part.endIndex)]) \(shellLine(words))\(end.map { String(part[$0...]) } ?? "")"
            })
            .joined(separator: ": moult ")
        return named
    }
}
