internal import MoultBasics
internal import MoultFiles

/// The values of `${name}` in scripts and drafts.
///
/// `${git.describe}`, `${git.revision}`, `${git.count}` come from the repository, `${env.X}` from the environment, and all
/// others from defines. A name without a value is an error, never an empty text. `$${` is replaced by a literal `${`.
package final class Substitution {
    private let defines: [String: String]
    private let environment: [String: String]
    private let directory: String
    package private(set) var revision: Revision?

    /// `directory` is any directory in the repository.
    package init(defines: [String: String], environment: [String: String] = ProcessEnvironment.all, directory: String) {
        (self.defines, self.environment, self.directory) = (defines, environment, directory)
    }

    /// Returns the text with all placeholders replaced; `place` is the first line of the text.
    package func apply(to text: String, at place: Place) throws -> String {
        let bytes = Array(text.utf8)
        let result = try Placeholder.replaced(in: bytes) { name, index in
            let line = place.line + bytes[..<index].count { $0 == UInt8(ascii: "\n") }
            return try value(of: name, at: Place(file: place.file, line: line))
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns the value of a name; throws if it has none.
    package func value(of name: String, at place: Place) throws -> String {
        if name.hasPrefix("git.") { return try gitValue(name, at: place) }
        if name.hasPrefix("env."), let value = environment[String(name.dropFirst(4))] { return value }
        if let value = defines[name] { return value }
        throw unknown(name, at: place)
    }

    private func gitValue(_ name: String, at place: Place) throws -> String {
        guard Self.gitNames.contains(name) else { throw unknown(name, at: place) }
        let revision: Revision
        do { revision = try self.revision ?? Revision(of: directory) } catch let error as MoultError {
            var error = error
            error.what = "\(place): ${\(name)}: \(error.what)"
            throw error
        }
        self.revision = revision
        switch name {
        case "git.describe": return revision.describe
        case "git.revision": return revision.hash
        default:
            guard let count = revision.count else {
                throw MoultError(
                    .repository, what: "\(place): ${git.count} is unknown",
                    why: "the clone is shallow: its history is cut off",
                    now: "Run `git fetch --unshallow`; in CI, fetch the whole history.")
            }
            return "\(count)"
        }
    }

    private func unknown(_ name: String, at place: Place) -> MoultError {
        let candidates = Self.gitNames + defines.keys.sorted() + environment.keys.sorted().map { "env.\($0)" }
        let hint = didYouMean(name, among: candidates)
        let ways: Advice =
            name.hasPrefix("env.")
            ? "Set the environment variable \(name.dropFirst(4))." : "Specify it with --define \(name)=VALUE."
        return MoultError(
            .substitution, what: "\(place): ${\(name)} has no value",
            why: name.hasPrefix("env.") ? "no such environment variable is set" : "no --define option sets it",
            now: "\(hint ?? ways) For the literal text, write $${\(name)}.")
    }

    private static let gitNames = ["git.describe", "git.revision", "git.count"]
}

/// `${name}` in a text, or `$${`, which means a literal `${`.
enum Placeholder {
    case name(String)
    case escaped

    /// Returns the placeholder at the index, and the index after it; nil if none starts there.
    ///
    /// Braces around anything but a name (letters, digits, `.`, `_`, `-`) are plain text: `'${"a"}'` is a path in JSON.
    static func at(_ index: Int, in text: [UInt8]) -> (Placeholder, next: Int)? {
        guard text[index] == UInt8(ascii: "$") else { return nil }
        if text[index...].starts(with: "$${".utf8) { return (.escaped, index + 3) }
        guard text[index...].starts(with: "${".utf8) else { return nil }
        let name = text[(index + 2)...].prefix { isPartOfName($0) }
        guard !name.isEmpty, name.endIndex < text.count, text[name.endIndex] == UInt8(ascii: "}") else { return nil }
        return (.name(String(decoding: name, as: UTF8.self)), name.endIndex + 1)
    }

    /// Returns the text with the values of all placeholders; `value` gets a name and its index.
    static func replaced(in text: [UInt8], by value: (String, Int) throws -> String) rethrows -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        while index < text.count {
            guard let (found, next) = at(index, in: text) else {
                result.append(text[index])
                index += 1
                continue
            }
            if case .name(let name) = found { result += try value(name, index).utf8 } else { result += "${".utf8 }
            index = next
        }
        return result
    }

    static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
