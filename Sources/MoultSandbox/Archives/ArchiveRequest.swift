internal import MoultArchive
internal import MoultBasics
internal import MoultFiles

/// The request to a process that reads an archive, sent as its first line. The process also gets open files: the shared memory,
/// the archive and, for a patch, its base file.
struct ArchiveRequest: Sendable {
    /// The first argument that makes a program read archives. Its number changes with the message format.
    static let verb = "unpack-1"

    enum Task: Sendable {
        /// All members, with declared sizes, of an archive whose format follows from its name.
        case members([String: Int], archive: String)
        /// The names and sizes of the members of a bundle that `moult pack` made as .tar.zst.
        case list
        /// The pieces of a file produced by a patch, one at a time.
        case patch(resultSize: Int)
    }

    let task: Task
    /// The size of the shared memory that transfers content, in bytes.
    let memory: Int
    /// The size of a patch's base file in bytes; 0 without one.
    var baseSize = 0

    /// The content of an archive is transferred in parts of this size; the parts of the memory are used in turn.
    static let partSize = 256 << 10
    static let parts = 8

    /// The memory that a process may allocate for an archive of another program, because libarchive allocates what the archive asks
    /// for. With the program itself and the shared memory, it needs at most 64 MB.
    private static let allocated = 45 << 20

    /// Limits far above what honest archives need. A patch maps its base file up to twice, with the end rounded up.
    var limits: Guard.Limits {
        var isForeign = false
        if case .members = task { isForeign = true }
        let content =
            switch task {
            // A hostile manifest may declare any sizes.
            case .members(let sizes, _): sizes.values.reduce(0) { min($0, 1 << 60) + min($1, 1 << 60) }
            case .list: 1 << 40
            case .patch(let size): size + baseSize
            }
        return Guard.Limits(
            memory: Validator.memory.map { $0 / 2 + 3 * baseSize + memory },
            data: isForeign ? Validator.memory.map { _ in Self.allocated } : nil, processor: 60 + content / 500_000,
            // The process writes only to memory and pipes, which this limit does not affect.
            fileSize: 0)
    }
}

extension ArchiveRequest {
    var json: JSON {
        let task: JSON =
            switch task {
            case .members(let sizes, let archive):
                .record([
                    "archive": archive,
                    "members": JSON.object(sizes.sorted { $0.key < $1.key }.map { .init($0.key, .size($0.value)) }),
                ])
            case .list: .record([:])
            case .patch(let size): .record(["result": size])
            }
        return task.setting("memory", to: .size(memory)).setting("base", to: .size(baseSize))
    }

    init(_ fields: Fields) throws {
        memory = try fields.count("memory")
        baseSize = try fields.count("base")
        if let archive = try fields.optionalString("archive") {
            let members = fields.json("members")?.members ?? []
            task = .members(
                Dictionary(members.map { ($0.name, Int($0.value.integer ?? 0)) }) { first, _ in first },
                archive: archive)
        } else if let size = try fields.optionalCount("result") {
            task = .patch(resultSize: size)
        } else {
            task = .list
        }
    }
}
