package import MoultBasics

/// Why an archive is refused, without the name of the archive.
struct ArchiveRefusal: Error {
    /// The complete list of advice, so that a process that an archive has taken over cannot send any other advice.
    enum Advice: String {
        case again = "Download the archive again, or pack it again."
        case renameOne = "Rename one of them."
        case renamePlainly = "Rename the file before packing: letters, digits, \".\", \"_\" and \"-\" are allowed."
        case otherLevel = "Choose another level."
        case otherKind = "Choose tar.gz, tar.xz or zip."
        case sameRelease = "Use the manifest and the archive of the same release."
        case shorten = "Shorten the name."
        case withoutPassword = "Pack it again without a password."
        case deflate = "Pack it again with zip's usual compression."
        case rename = "Rename the file."
        case plainFiles = "Pack it again with plain files only."
        case copyAgain = "Copy or download it again."
        case copyWhole = "Copy or download it again: a part is missing."
        case nameOfKind = "Rename it with the extension of its type, or pack it again."
        case withoutPadding = "Pack it again with \"bsdtar -f FILE\", or let zstd compress the output of tar."
        case smallerWindow = "Pack it again with zstd up to level 19 and without --long or --ultra."
        case withoutDictionary = "Pack it again without a dictionary."
        case smallerDictionary = "Pack it again with xz -8 or lower."
        case smallerDictionaryIn7z = "Pack it again with a dictionary of at most 32 MiB: 7z a -md=32m"
        case samePatch = "Use the manifest and the patch of the same release."
        case patchAgain = "Download the patch again."
    }

    let code: MoultError.Code
    let why: String
    let now: Advice?

    init(_ code: MoultError.Code, _ why: String, now: Advice? = .again) {
        (self.code, self.why, self.now) = (code, why, now)
    }

    static let cut = ArchiveRefusal(.archiveCut, "it is truncated", now: .copyWhole)

    /// Returns the refusal for the failure of a library for a reason other than the archive.
    static func library(_ why: String) -> ArchiveRefusal { ArchiveRefusal(.archiveLibrary, why, now: nil) }

    /// Returns the refusal for content that would need more memory than `decoderMemoryLimit`.
    static func memory(_ what: String, now: Advice) -> ArchiveRefusal {
        ArchiveRefusal(.archiveMemory, "\(what) needs more than the 64 MiB of memory that unpacking may use", now: now)
    }

    /// Returns the refusal for other bytes after the end of the compressed stream.
    static func trailingData(of format: ArchiveKind.Compression) -> ArchiveRefusal {
        ArchiveRefusal(.archiveGarbage, "unexpected data after the end of its \(format.name) stream")
    }

    static func size(of member: String, is found: String, declared: Int) -> ArchiveRefusal {
        let why = "its member \"\(member)\" has \(found) bytes instead of \(declared)"
        return ArchiveRefusal(.archiveSize, why, now: .sameRelease)
    }
}

/// The memory limit of every decoder for its window and tables; content that needs more is refused.
let decoderMemoryLimit = 64 << 20

/// The content does not begin, or end, like the format that the file name declares.
struct NotThisFormat: Error {}

/// Runs a function that reads an archive, and turns a refusal into an error that names the file.
func reading<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
    try naming("cannot unpack \(path)", body)
}

/// Runs a function that writes an archive, and turns a refusal into a packing error.
func packing<Result>(_ body: () throws -> Result) throws -> Result { try naming("cannot pack the archive", body) }

private func naming<Result>(_ what: @autoclosure () -> String, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let refusal as ArchiveRefusal {
        throw MoultError(refusal.code, what: what(), why: refusal.why, now: refusal.now.map { .init($0.rawValue) })
    }
}

extension MoultError {
    /// Creates the error for a refusal from a process that reads an archive. Because the archive may have taken over that
    /// process, the process can choose only among the known codes and advice; only the text of the reason is its own.
    package init(refusalOf path: String, code: Int, why: String, now: String?) {
        let code =
            (Code.archiveKind.rawValue...Code.archiveFrames.rawValue).contains(code) ? Code(code) : .archiveProcess
        self.init(
            code, what: "cannot unpack \(path)", why: String(why.prefix(500)),
            now: now.flatMap { ArchiveRefusal.Advice(rawValue: $0) }.map { .init($0.rawValue) })
    }
}
