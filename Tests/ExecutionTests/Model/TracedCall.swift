import MoultBasics

/// A line of `strace -f -y -xx`: a call, its arguments, and its result.
struct TracedCall {
    let name: String
    let arguments: [Substring]
    let result: Int
    /// The path of the descriptor that the call returned.
    let opened: String?

    /// Returns nil if the line is not a call, or if the call failed or did not return.
    init?(_ line: String) throws {
        guard let open = line.firstIndex(of: "("), let end = line.range(of: ") = ") else { return nil }
        name = String(line[..<open])
        arguments = line[line.index(after: open)..<end.lowerBound].split(separator: ", ")
        let given = line[end.upperBound...]
        let number = given.prefix { $0.isNumber }
        guard let result = Int(number) else { return nil }
        self.result = result
        opened = given.dropFirst(number.count).hasPrefix("<") ? try Self.path(given.dropFirst(number.count)) : nil
    }

    /// Decodes the text of an argument, which is given as hexadecimal digits between quotes.
    func bytes(_ index: Int) throws -> [UInt8] {
        guard arguments[index].hasPrefix("\""), arguments[index].hasSuffix("\"") else {
            throw Disk.wrong("\(name) has no bytes: \(arguments[index].prefix(80))")
        }
        return try Self.bytes(arguments[index].dropFirst().dropLast())
    }

    func number(_ index: Int) throws -> Int {
        guard let number = Int(arguments[index]) else { throw Disk.wrong("\(name) has no number: \(arguments[index])") }
        return number
    }

    /// Returns an argument as an absolute path; a relative path starts at the directory in the given argument.
    func path(_ index: Int, at directory: Int? = nil) throws -> String {
        let path = String(decoding: try bytes(index), as: UTF8.self)
        if path.hasPrefix("/") { return path }
        guard let directory else { throw Disk.wrong("\(name) has a path that depends on where it is: \(path)") }
        return "\(try described(directory).path)/\(path)"
    }

    /// Returns the number and the path of a descriptor; `isGone` if the file no longer has a name.
    func described(_ index: Int) throws -> (number: Int, path: String, isGone: Bool) {
        let word = arguments[index]
        guard let open = word.firstIndex(of: "<") else { return (Int(word) ?? -1, "", true) }
        return (Int(word[..<open]) ?? -1, try Self.path(word[open...]), word.hasSuffix("(deleted)"))
    }

    private static func path(_ text: Substring) throws -> String {
        guard let end = text.firstIndex(of: ">") else { throw Disk.wrong("no path in \(text)") }
        // strace prints pipes and other files without a path as plain text, not as hexadecimal bytes.
        guard text.dropFirst().hasPrefix("\\x") else { return "" }
        return String(decoding: try bytes(text[..<end].dropFirst()), as: UTF8.self)
    }

    /// Decodes digits such as `\x2f\x00`.
    private static func bytes(_ text: Substring) throws -> [UInt8] {
        var found: [UInt8] = []
        found.reserveCapacity(text.utf8.count / 4)
        var place = 0
        for character in text.utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: digit = 0
            }
            if place == 2 { found.append(digit << 4) } else if place == 3 { found[found.count - 1] |= digit }
            place = (place + 1) % 4
        }
        guard place == 0 else { throw Disk.wrong("the trace has text that is not in hexadecimal digits") }
        return found
    }
}

extension StringProtocol {
    /// Returns the range of the last occurrence of a text.
    fileprivate func range(of text: String) -> Range<Index>? {
        ranges(of: text).last
    }
}
