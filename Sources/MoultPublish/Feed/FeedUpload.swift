internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Copies a feed to another place, file by file, with the publisher's own command.
///
/// A record in the feed's directory lists the files that this command has copied, so the next run continues a failed upload.
/// The record identifies the command by a digest, because the command may contain a secret.
package struct FeedUpload {
    let directory: FeedDirectory
    let command: String
    static let recordName = ".moult-uploaded"

    package init(_ directory: String, command: String) {
        (self.directory, self.command) = (FeedDirectory(path: directory), command)
    }

    /// Returns the files of a feed, in the order in which to copy them.
    package static func files(in directory: String) throws -> [FeedFile] {
        try FeedDirectory(path: directory).files(isFirst: true)
    }

    /// Copies the files that are new or changed, and returns their names. The caller holds the directory's lock.
    func run() throws -> [String] {
        var record = try Record.read(directory.file(Self.recordName), of: command)
        let files = try directory.files(isFirst: !record.done.keys.contains(Feed.fileName))
        let new = files.filter { record.done[$0.name] != $0.sha256 }
        for file in new {
            do { try copy(file) } catch {
                throw failure(error, file, isPublic: record.done[Feed.fileName] == files.digest(of: Feed.fileName))
            }
            try record.add(file)
        }
        try record.keep(only: files)
        return new.map(\.name)
    }

    private func copy(_ file: FeedFile) throws {
        // The shell runs the program that the command begins with.
        try PathCustody.check(program: command.split(whereSeparator: \.isWhitespace).map { String($0) })
        let ended = try Subprocess.run(
            ["sh", "-c", command],
            environment: [
                "MOULT_FILE": Files.absolute(directory.file(file.name)), "MOULT_NAME": file.name,
                "MOULT_SHA256": file.sha256, "MOULT_CACHE_CONTROL": file.cacheControl,
                "MOULT_CONTENT_TYPE": file.contentType,
            ], limit: 1 << 26, isSupervised: true)
        guard ended.succeeded else {
            throw MoultError(
                .publishing, what: "cannot upload \(file.name)", why: "the command failed: \(ended.complaint)")
        }
    }

    private func failure(_ error: any Error, _ file: FeedFile, isPublic: Bool) -> any Error {
        guard var error = error as? MoultError else { return error }
        error.what = "cannot upload \(file.name)"
        // The outcome is about the upload destination; the directory itself is complete.
        error.outcome = isPublic ? .stuck : .failed
        error.now =
            isPublic
            ? "Stores already see the new feed. Run the command again to upload the rest."
            : "Stores still see the old feed. Run the command again to upload the missing files."
        return error
    }
}

extension [FeedFile] {
    fileprivate func digest(of name: String) -> String? { first { $0.name == name }?.sha256 }
}

/// The files that a command has copied, each with its digest.
private struct Record {
    let path: String
    private let head: String
    private(set) var done: [String: String]

    /// Reads the record. A record of a different command says nothing about this command's destination.
    static func read(_ path: String, of command: String) throws -> Record {
        let head = "uploaded by a command with the SHA-256 \(try SHA256.digest(of: Array(command.utf8)).hex)"
        let text = String(decoding: try Files.read(path, limit: 1 << 28) ?? [], as: UTF8.self)
        // A line that a power failure has cut off is ignored.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard lines.first == Substring(head) else {
            try Files.replace(path, with: Array("\(head)\n".utf8), mode: 0o600)
            return Record(path: path, head: head, done: [:])
        }
        let pairs = lines.dropFirst().compactMap { line -> (String, String)? in
            let words = line.split(separator: " ", maxSplits: 1)
            return words.count == 2 ? (String(words[1]), String(words[0])) : nil
        }
        // Completes the last line, so that the next entry starts on a new line.
        if !text.hasSuffix("\n") {
            try Files.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8), mode: 0o600)
        }
        return Record(path: path, head: head, done: Dictionary(pairs) { $1 })
    }

    mutating func add(_ file: FeedFile) throws {
        let record = try Descriptor(path, .append)
        try record.write(Array("\(file.sha256) \(file.name)\n".utf8))
        try record.close()
        done[file.name] = file.sha256
    }

    /// Removes from the record the files that are no longer part of the feed.
    mutating func keep(only files: [FeedFile]) throws {
        done = Dictionary(files.map { ($0.name, $0.sha256) }) { $1 }
        let lines = [head] + files.map { "\($0.sha256) \($0.name)" }
        try Files.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8), mode: 0o600)
    }
}
