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
    let way: UploadWay
    static let recordName = ".moult-uploaded"

    package init(_ directory: String, by way: UploadWay) {
        (self.directory, self.way) = (FeedDirectory(path: directory), way)
    }

    package static func files(in directory: String) throws -> [FeedFile] {
        try FeedDirectory(path: directory).files(isFirst: true)
    }

    /// Copies the files that are new or changed, and returns their names. The caller holds the directory's lock.
    ///
    /// The public feed is read again directly before and after it is replaced, because another publisher may have replaced it
    /// since.
    func run(after predecessor: Predecessor, to place: PublicPlace?) throws -> [String] {
        var record = try Record.read(directory.file(Self.recordName), of: way.name)
        let files = try directory.files(
            isFirst: !record.done.keys.contains(Feed.fileName), elsewhere: predecessor.elsewhere)
        let new = files.filter { record.done[$0.name] != $0.sha256 }
        for file in new {
            do {
                if file.name == Feed.fileName { try requireSame(predecessor.found, at: place) }
                try copy(file, over: predecessor.found)
            } catch {
                throw failure(error, file, isPublic: record.done[Feed.fileName] == files.digest(of: Feed.fileName))
            }
            try record.add(file)
        }
        try record.keep(only: files)
        if let place, let digest = files.digest(of: Feed.fileName) { try requirePublic(digest, at: place) }
        return new.map(\.name)
    }

    /// Returns whether this command has begun to copy the feed with a digest, and has not replaced the public feed by it. Writes nothing.
    func hasBegun(_ digest: String) throws -> Bool {
        guard let done = try Record.done(directory.file(Self.recordName), of: way.name) else { return false }
        return !done.isEmpty && done[Feed.fileName] != digest
    }

    private func requireSame(_ found: SignedFeed?, at place: PublicPlace?) throws {
        guard let place, let found else { return }
        guard let now = try place.read(Feed.fileName, limit: Feed.largest),
            try SHA256.digest(of: now.bytes).hex == found.digest
        else { throw Self.raced }
    }

    private func requirePublic(_ digest: String, at place: PublicPlace) throws {
        guard let now = try place.read(Feed.fileName, limit: Feed.largest),
            try SHA256.digest(of: now.bytes).hex == digest
        else {
            throw MoultError(
                .publishing, .busy, what: "the uploaded \(Feed.fileName) is not the public one",
                why: "another publisher has replaced it, or the place shows an older copy",
                now: "Run the command again: it takes in what was lost.")
        }
    }

    static let raced = MoultError(
        .publishing, .busy, what: "the public feed has changed",
        why: "another publisher replaced it during this command",
        now: "Run the command again: it takes in the changes.")

    private func copy(_ file: FeedFile, over found: SignedFeed?) throws {
        var environment = [
            "MOULT_FILE": try Files.absolute(directory.file(file.name)), "MOULT_NAME": file.name,
            "MOULT_SHA256": file.sha256, "MOULT_CACHE_CONTROL": file.cacheControl,
            "MOULT_CONTENT_TYPE": file.contentType, "MOULT_IF_MATCH": "", "MOULT_IF_NONE_MATCH": "",
        ]
        // Only the feed is ever replaced by another publisher at the same time.
        if file.name == Feed.fileName {
            environment["MOULT_IF_MATCH"] = found?.tag ?? ""
            if found == nil { environment["MOULT_IF_NONE_MATCH"] = "*" }
        }
        try way.copy(file.name, environment)
    }

    private func failure(_ error: any Error, _ file: FeedFile, isPublic: Bool) -> any Error {
        guard var error = error as? MoultError, error.outcome != .busy else { return error }
        error.what = "cannot upload \(file.name)"
        // The outcome is about the upload destination; the directory itself is complete.
        error.outcome = isPublic ? .stuck : .failed
        error.now =
            isPublic
            ? "Stores already see the new feed. Run the command again to upload the rest."
            : "Stores still see the old feed. Run the command again to upload the missing files."
        return error
    }

    /// The files that a command has copied, each with its digest.
    private struct Record {
        let path: String
        private let head: String
        private(set) var done: [String: String]

        static func read(_ path: String, of command: String) throws -> Record {
            let (head, lines, isWhole, done) = try parsed(path, of: command)
            // Completes the last line, so that the next entry starts on a new line.
            if done == nil || !isWhole {
                let text = (done == nil ? head : lines.joined(separator: "\n")) + "\n"
                try Files.replace(path, with: Array(text.utf8), mode: 0o600)
            }
            return Record(path: path, head: head, done: done ?? [:])
        }

        /// Returns the recorded files, without writing; nil for the record of a different command, which says nothing about this
        /// command's destination.
        static func done(_ path: String, of command: String) throws -> [String: String]? {
            try parsed(path, of: command).done
        }

        private static func parsed(_ path: String, of command: String) throws
            -> (head: String, lines: ArraySlice<Substring>, isWhole: Bool, done: [String: String]?)
        {
            let head = "uploaded by a command with the SHA-256 \(try SHA256.digest(of: Array(command.utf8)).hex)"
            let text = String(decoding: try Files.read(path, limit: 1 << 28) ?? [], as: UTF8.self)
            // A line that a power failure has cut off is ignored.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            guard lines.first == Substring(head) else { return (head, lines, false, nil) }
            let pairs = lines.dropFirst().compactMap { line -> (String, String)? in
                let words = line.split(separator: " ", maxSplits: 1)
                return words.count == 2 ? (String(words[1]), String(words[0])) : nil
            }
            return (head, lines, text.hasSuffix("\n"), Dictionary(pairs) { $1 })
        }

        mutating func add(_ file: FeedFile) throws {
            let record = try Descriptor(path, .append)
            try record.write(Array("\(file.sha256) \(file.name)\n".utf8))
            try record.close()
            done[file.name] = file.sha256
        }

        mutating func keep(only files: [FeedFile]) throws {
            done = Dictionary(files.map { ($0.name, $0.sha256) }) { $1 }
            let lines = [head] + files.map { "\($0.sha256) \($0.name)" }
            try Files.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8), mode: 0o600)
        }
    }
}

/// The way in which a file gets to the place where stores find it.
package struct UploadWay: Sendable {
    /// Identifies the destination in the record of uploaded files.
    let name: String
    /// Copies one file; the environment describes it.
    let copy: @Sendable (_ file: String, _ environment: [String: String]) throws -> Void

    package init(
        name: String, copy: @escaping @Sendable (_ file: String, _ environment: [String: String]) throws -> Void
    ) { (self.name, self.copy) = (name, copy) }

    package static func command(_ command: String) -> UploadWay {
        UploadWay(name: command) { file, environment in
            let ended = try Subprocess.shell(command, environment: environment)
            if file == Feed.fileName, ended.ending == .exited(conflict) { throw FeedUpload.raced }
            guard ended.succeeded else {
                throw MoultError(
                    .publishing, what: "cannot upload \(file)", why: "the command failed: \(ended.complaint)")
            }
        }
    }

    /// The exit status of an upload whose condition (`MOULT_IF_MATCH`) failed: EX_TEMPFAIL.
    private static let conflict: Int32 = 75
}

extension [FeedFile] { fileprivate func digest(of name: String) -> String? { first { $0.name == name }?.sha256 } }
