internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension StoreSnapshot {
    /// Throws for the store of an earlier build, whose records this one cannot continue. Commands that only read do not call this.
    func requireOwnFormat() throws {
        guard try isOfEarlierBuild() else { return }
        let new = try Files.firstFree("\(layout.root).new")
        let copies = try (installed?.manifest.databases ?? []).filter(\.holdsAppData).map { database in
            ["sqlite3", try place(of: database), ".backup '\(new)/\(database.path)'"]
        }
        let commands = [["mkdir", new]] + copies + [["moult", "apply", "--create", "--store", new, "RELEASE"]]
        throw MoultError(
            .settings, .refused, what: "\(layout.root) is the store of an earlier build of moult",
            why: "its records have another format",
            now: "Nothing was changed. Start a new store beside it, with a copy of each database that apps write to: "
                + "\(Advice.Command(commands))")
    }

    private func isOfEarlierBuild() throws -> Bool {
        if try Files.facts("\(layout.generations)/0+adopted") != nil { return true }
        let isJournaled = try Files.list(layout.transactions).contains {
            try Files.facts("\(layout.transaction($0))/journal.jsonl") != nil
        }
        if isJournaled { return true }
        do { return try installed.map { try seal(of: $0).format < Seal.format } ?? false } catch let error as MoultError
        {
            if Files.isDenied(error) { throw error }
            // Damage is reported by the code that needs the record.
            return false
        }
    }
}
