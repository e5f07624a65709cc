import MoultFiles

/// All that must stay the same of a directory that is only looked at: names, bytes, modes, owners and times.
struct Tree: Equatable, CustomStringConvertible {
    private var facts: [String: FileFacts] = [:]
    private var bytes: [String: [UInt8]] = [:]

    init(_ scratch: Scratch, _ directory: String) throws {
        facts["."] = try Files.facts(scratch.path(directory))
        for name in scratch.names(in: directory) {
            facts[name] = try Files.facts(scratch.path("\(directory)/\(name)"))
            bytes[name] = try scratch.bytes("\(directory)/\(name)")
        }
    }

    var description: String { "\(facts)" }
}
