import MoultBasics
import MoultFiles
import TestSupport

extension ConsumerShop {
    /// The log of a test's consumers, with one line for each call.
    var said: [String] {
        get throws {
            let bytes = try Files.read(scratch.path("said"), limit: 1 << 20) ?? []
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { String($0) }
        }
    }

    /// Returns the words of a command that logs its call and then runs a script.
    func words(_ name: String, then script: String = "") -> [String] {
        let say = "echo \"\(name) $MOULT_CALL $MOULT_CHANGED $MOULT_VERSION $MOULT_OUTCOME\" >> \(scratch.path("said"))"
        return ["sh", "-c", "\(say)\n\(script)"]
    }

    /// Returns the settings of a consumer.
    func consumer(
        _ name: String, release: String = "", reload: String = "", _ more: KeyValuePairs<String, JSON?> = [:]
    ) -> JSON {
        func json(_ words: [String]) -> JSON { .array(words.map { .string($0) }) }
        let command: JSON = [
            "release": json(words(name, then: release)), "reload": json(words(name, then: reload)),
        ]
        return .object(
            [.init("name", .string(name)), .init("command", command)] + (JSON.compact(more).members ?? []))
    }

    func set(consumers: JSON...) throws { try set("consumers", JSON.array(consumers).line) }

    /// Applies a release with the command, as a script would do.
    func apply(_ manifest: String, _ options: String...) throws -> Shell.Ended {
        try Shell.run([BuiltMoult.path(), "apply", "--store", root, manifest] + options)
    }
}
