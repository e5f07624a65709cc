internal import CLinux
internal import Glibc
internal import MoultBasics

extension Files {
    /// Lends a new directory outside of every store, which only this user may look into and which is gone afterwards.
    package static func withScratchDirectory<R>(_ body: (String) throws -> R) throws -> R {
        let path = try makeScratchDirectory(in: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")
        let result = Result { try body(path) }
        do { try removeTree(path) } catch {
            // An error of the body matters more than a directory that stays behind.
            _ = try result.get()
            throw error
        }
        return try result.get()
    }

    /// Makes a new directory which only this user may look into; the caller removes it.
    package static func makeScratchDirectory(in parent: String) throws -> String {
        var template = Array("\(parent)/moult-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else {
            throw Errno(moult_errno()).error("cannot make a scratch directory in \(parent)")
        }
        return String(cString: made)
    }
}
