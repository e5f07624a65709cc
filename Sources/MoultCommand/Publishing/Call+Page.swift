internal import MoultBasics
internal import MoultFiles

extension Call {
    /// Writes a page, over an older page at most: a slip of the pen must not cost a database.
    func save(_ html: [UInt8], asPage file: String) throws {
        if let facts = try Files.factsThroughLinks(file) {
            guard try facts.kind == .file && (facts.size == 0 || beginsLikeAPage(file)) else {
                throw MoultError(
                    .system, what: "cannot save the page to \(file)", why: "something else than a page is there",
                    now: "Name another file.")
            }
        }
        try OutputFile.write(html, to: file)
    }

    private func beginsLikeAPage(_ path: String) throws -> Bool {
        let file = try Descriptor(path, .read)
        var bytes = [UInt8](repeating: 0, count: 15)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        return bytes[..<count].elementsEqual("<!DOCTYPE html>".utf8)
    }
}
