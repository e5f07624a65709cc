/// A function, collation or module that only the app registers, and without which a statement fails.
package struct AppNeed: Equatable, Sendable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        case collation, function, module, tokenizer
    }

    package let kind: Kind
    package let name: String

    init(_ kind: Kind, _ name: String) { (self.kind, self.name) = (kind, name) }

    package var description: String { "\(kind.rawValue) \"\(name)\"" }

    /// Nil if the error has a different cause. With `isAlone`, the message must be about nothing else: it may quote a value.
    package init?(_ error: any Error, isAlone: Bool = false) {
        guard let error = error.sqlite, error.resultCode.primary == .error else { return nil }
        self.init(message: error.message, isAlone: isAlone)
    }

    /// SQLite reports such a need only as text, without a result code: `error in index i: no such collation sequence: de`.
    init?(message: String, isAlone: Bool = false) {
        let beginnings: [(String, Kind)] = [
            ("no such collation sequence: ", .collation), ("unknown function: ", .function),
            ("no such function: ", .function), ("no such module: ", .module),
            ("no such tokenizer: ", .tokenizer), ("unknown tokenizer: ", .tokenizer),
        ]
        for (beginning, kind) in beginnings {
            guard let start = message.lastRange(of: beginning), !isAlone || message.hasPrefix(beginning) else {
                continue
            }
            var name = message[start...]
            if name.hasSuffix("()") { name = name.dropLast(2) }
            (self.kind, self.name) = (kind, String(name))
            return
        }
        return nil
    }
}

extension String {
    /// Returns the index after the last occurrence of these words; nil if they do not occur.
    fileprivate func lastRange(of words: String) -> Index? {
        var found: Index?
        var place = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(words) { found = index(place, offsetBy: words.count) }
            place = index(after: place)
        }
        return found
    }
}
