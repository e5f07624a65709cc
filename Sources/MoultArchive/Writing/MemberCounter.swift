internal import MoultBasics

/// Counts what a source gives for a member: exactly its size, or packing ends.
struct MemberCounter {
    let name: String
    let size: Int
    private var count = 0

    init(name: String, size: Int) {
        self.name = name
        self.size = size
    }

    mutating func add(_ more: Int) throws {
        count += more
        guard count <= size else { throw error("more than \(size) bytes") }
    }

    func finish() throws { guard count == size else { throw error("\(count) bytes instead of \(size)") } }

    private func error(_ found: String) -> MoultError {
        MoultError(
            .archivePacking, what: "cannot pack \(name)", why: "it gave \(found)",
            now: "Let nothing write to it while it is packed.")
    }
}
