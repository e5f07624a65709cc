/// A text of a given size in one shape, which an attacker chooses so that a reader takes long.
struct Shape: Sendable {
    let name: String
    let make: @Sendable (_ size: Int) -> [UInt8]

    /// A part, repeated between a beginning and an end.
    init(_ name: String, _ begin: String = "", _ end: String = "", part: @escaping @Sendable (Int) -> String) {
        self.name = name
        make = { size in
            var bytes = Array(begin.utf8)
            var index = 0
            bytes.reserveCapacity(size + 64)
            while bytes.count < size - end.utf8.count {
                bytes += part(index).utf8
                index += 1
            }
            return bytes + end.utf8
        }
    }

    init(_ name: String, _ begin: String = "", repeating part: String, _ end: String = "") {
        self.init(name, begin, end) { _ in part }
    }
}

extension Shape {
    /// Shapes of a JSON document whose other members are `begin`, such as `"manifest": 1,`.
    static func json(_ begin: String) -> [Shape] {
        let open = "{ \(begin) "
        let nested = String(repeating: "[", count: 60) + String(repeating: "]", count: 60) + ","
        return [
            Shape("lists in lists", "\(open)\"z\": ", repeating: "[", ""),
            Shape("objects in objects", "\(open)\"z\": ", repeating: "{\"a\":", ""),
            Shape("nested lists", "\(open)\"z\": [", repeating: nested, "1]}"),
            Shape("members", open, "\"z\": 1}") { "\"m\($0)\": 1, " },
            Shape("members and a duplicate", open, "\"m0\": 1}") { "\"m\($0)\": 1, " },
            Shape("equal members in a list", "\(open)\"z\": [", repeating: "{\"a\": 1, \"b\": 2}, ", "1]}"),
            Shape("a few long names", open, "\"z\": 1}") { "\"\($0)\(String(repeating: "n", count: 40_000))\": 1, " },
            Shape("a long name", "\(open)\"", repeating: "n", "\": 1}"),
            Shape("a long name with marks", "\(open)\"a", repeating: "\u{301}\u{323}", "\": 1}"),
            Shape("names with marks", open, "\"z\": 1}") { "\"m\($0)\u{301}\u{323}\u{301}\u{316}\": 1, " },
            Shape("a long string", "\(open)\"z\": \"", repeating: "s", "\"}"),
            Shape("a string without an end", "\(open)\"z\": \"", repeating: "s"),
            Shape("escapes", "\(open)\"z\": \"", repeating: "\\n", "\"}"),
            Shape("characters in escapes", "\(open)\"z\": \"", repeating: "\\u00e9", "\"}"),
            Shape("pairs of escapes", "\(open)\"z\": \"", repeating: "\\ud83d\\ude00", "\"}"),
            Shape("a long number", "\(open)\"z\": ", repeating: "9", "}"),
            Shape("a long fraction", "\(open)\"z\": 0.", repeating: "9", "}"),
            Shape("a long exponent", "\(open)\"z\": 1e", repeating: "0", "1}"),
            Shape("numbers", "\(open)\"z\": [", repeating: "1.5e10,", "1]}"),
            Shape("white space", open, repeating: " \n", "\"z\": 1}"),
            Shape("comments", open, repeating: "/* a */ // b\n", "\"z\": 1}"),
            Shape("a comment without an end", "\(open)/*", repeating: " *"),
            Shape("slashes", open, repeating: "/"),
            Shape("a fault at the end", "\(open)\"z\": [", repeating: "1,\n", "]}"),
            Shape("strings", "\(open)\"z\": [", repeating: "\"a\",", "1]}"),
        ]
    }

    static let digest = String(repeating: "a", count: 64)
}
