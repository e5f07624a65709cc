/// The text with every character that could steer a terminal or reorder the line written out: names from archives,
/// manifests and file systems are other people's.
package func visible(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar.value {
        case 0x0A: result += "\\n"
        case 0x09: result += "\\t"
        // C0 and C1 controls, line separators, bidirectional marks and overrides.
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
            result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}
