/// The authentication that a registry requires: `Bearer realm="https://…",service="…",scope="…"`.
struct Challenge: Equatable {
    enum Scheme { case basic, bearer }

    let scheme: Scheme
    let realm: String
    let service: String?

    /// Returns the first Bearer challenge of a response, or otherwise the first Basic one; nil if moult supports none of them.
    static func first(of lines: [String]) -> Challenge? {
        let all = lines.compactMap { Challenge($0) }
        return all.first { $0.scheme == .bearer } ?? all.first
    }

    init?(_ line: String) {
        let word = line.prefix { $0 != " " }
        switch word.lowercased() {
        case "basic": scheme = .basic
        case "bearer": scheme = .bearer
        default: return nil
        }
        let parameters = Self.parameters(line.dropFirst(word.count))
        (realm, service) = (parameters["realm"] ?? "", parameters["service"])
        if scheme == .bearer, realm.isEmpty { return nil }
    }

    /// Parses `name="value"` pairs separated by commas; a quoted value may contain commas.
    private static func parameters(_ text: Substring) -> [String: String] {
        var found: [String: String] = [:]
        var rest = text
        while true {
            rest = rest.drop { $0 == " " || $0 == "," || $0 == "\t" }
            guard let equals = rest.firstIndex(of: "=") else { return found }
            let name = rest[..<equals].lowercased()
            rest = rest[rest.index(after: equals)...]
            var value = ""
            if rest.first == "\"" {
                rest = rest.dropFirst()
                while let next = rest.popFirst(), next != "\"" {
                    value.append(next == "\\" ? rest.popFirst() ?? " " : next)
                }
            } else {
                value = String(rest.prefix { $0 != "," })
                rest = rest.dropFirst(value.count)
            }
            if found[name] == nil { found[name] = value }
        }
    }
}
