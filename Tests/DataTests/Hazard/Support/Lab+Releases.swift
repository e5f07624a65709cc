import MoultBasics
import TestSupport

extension Lab {
    /// Makes a release with one shared database `note`, whose rows with `mine = 1` are preserved; returns the path of
    /// the manifest.
    func shared(_ version: String, _ sequence: Int, _ rows: Int, _ text: String) throws -> String {
        let more: [JSON.Member] = [.init("preserve", [["table": "note", "where": "mine = 1"]])]
        return try make(version, sequence, .shared("note", Lab.notes(rows, text), more: more))
    }

    /// Makes a release with one read-only database `note`.
    func sealed(_ version: String, _ sequence: Int, _ rows: Int, _ text: String) throws -> String {
        try make(version, sequence, .reference("note", Lab.notes(rows, text)))
    }

    /// Makes a release with one cache `note`, whose schema is different in each release.
    func cache(_ version: String, _ sequence: Int, _ rows: Int, _ text: String) throws -> String {
        try make(version, sequence, .cache("note", Lab.cacheSchema(rows, text, sequence)))
    }

    /// Makes a release with one user database `note`.
    func user(_ version: String, _ sequence: Int, _ rows: Int, _ text: String) throws -> String {
        try make(version, sequence, .user("note", Lab.notes(rows, text)))
    }

    static func cacheSchema(_ rows: Int, _ text: String, _ number: Int) -> String {
        notes(rows, text) + "CREATE INDEX by_text_\(number) ON note(text);"
    }

    private func make(_ version: String, _ sequence: Int, _ source: ReleaseMaker.Source) throws -> String {
        try maker.make(version, sequence: sequence, [source])
    }
}
