import MoultBasics

/// A change at one place of a document, given by a path such as `/databases/food/kind` or `/checks/0`.
enum Edit: Sendable, CustomStringConvertible {
    case set(String, JSON)
    case remove(String)

    var path: String {
        switch self {
        case .set(let path, _), .remove(let path): path
        }
    }

    var description: String {
        switch self {
        case .set(let path, let value): "\(path) = \(value.line)"
        case .remove(let path): "\(path) removed"
        }
    }
}

extension JSON {
    func edited(_ edits: [Edit]) -> JSON {
        edits.reduce(self) { document, edit in
            let path = edit.path.split(separator: "/").map { String($0) }
            return switch edit {
            case .set(_, let value): document.replacing(path[...], by: value)
            case .remove: document.replacing(path[...], by: nil)
            }
        }
    }

    private func replacing(_ path: ArraySlice<String>, by value: JSON?) -> JSON {
        guard let first = path.first else { return value ?? .null }
        let rest = path.dropFirst()
        guard case .array(var items) = self else {
            let inner = rest.isEmpty ? value : (self[first] ?? .object([])).replacing(rest, by: value)
            return setting(first, to: inner)
        }
        guard let index = Int(first) else { return self }
        if index >= items.count {
            if let value { items.append(value) }
        } else if rest.isEmpty {
            if let value { items[index] = value } else { items.remove(at: index) }
        } else {
            items[index] = items[index].replacing(rest, by: value)
        }
        return .array(items)
    }

    /// The path of every value in this document, outermost first.
    var paths: [String] {
        switch self {
        case .object(let members): members.flatMap { Self.below("/\($0.name)", $0.value) }
        case .array(let items): items.enumerated().flatMap { Self.below("/\($0)", $1) }
        default: []
        }
    }

    private static func below(_ path: String, _ value: JSON) -> [String] { [path] + value.paths.map { path + $0 } }

    /// Returns the value at a path.
    func at(_ path: String) -> JSON? {
        path.split(separator: "/").reduce(JSON?.some(self)) { value, part in
            if let items = value?.array { return Int(part).flatMap { items.indices.contains($0) ? items[$0] : nil } }
            return value?[String(part)]
        }
    }
}
