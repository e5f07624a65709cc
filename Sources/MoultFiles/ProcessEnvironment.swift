package import MoultBasics
internal import MoultLibc

/// The environment variables of this process.
package enum ProcessEnvironment {
    /// Returns the value of a variable; nil if it is unset or empty. Throws if it is not valid UTF-8.
    package static func value(_ name: String) throws(MoultError) -> String? {
        guard let bytes = getenv(name), bytes.pointee != 0 else { return nil }
        if let value = OutsideText.valid(bytes) { return value }
        throw OutsideText.error(
            UnsafeRawBufferPointer(start: bytes, count: strlen(bytes)), "the environment variable \(name)",
            now: "Correct the variable, or unset it: \(run: ["unset", name])")
    }

    /// Returns the value of a variable that is not used as a path; nil if it is unset, empty or not valid UTF-8.
    package static func word(_ name: String) -> String? {
        guard let bytes = getenv(name), bytes.pointee != 0 else { return nil }
        return OutsideText.valid(bytes)
    }

    /// The directories in PATH. One whose name is not valid UTF-8 is not searched.
    package static var searchPath: [String] {
        guard let bytes = getenv("PATH") else { return [] }
        return UnsafeRawBufferPointer(start: bytes, count: strlen(bytes)).split(separator: UInt8(ascii: ":"))
            .compactMap { OutsideText.valid($0) }
    }

    /// The variables that are valid UTF-8.
    package static var all: [String: String] {
        var settings: [String: String] = [:]
        for setting in settingsOfProcess {
            guard let text = OutsideText.valid(setting), let equals = text.utf8.firstIndex(of: UInt8(ascii: "="))
            else { continue }
            settings[String(text[..<equals])] = String(text[text.utf8.index(after: equals)...])
        }
        return settings
    }

    /// Returns copies of all variables, with changes, for a child process; the caller frees them. Values that are not valid
    /// UTF-8 stay as they are.
    static func copy(changing changes: [String: String]) -> [UnsafeMutablePointer<CChar>?] {
        let kept = settingsOfProcess.filter { setting in
            guard let equals = strchr(setting, Int32(UInt8(ascii: "="))) else { return false }
            let name = UnsafeRawBufferPointer(start: setting, count: equals - UnsafeMutablePointer(mutating: setting))
            return OutsideText.valid(name).map { changes[$0] == nil } ?? true
        }
        return kept.map { strdup($0) } + changes.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") }
    }

    private static var settingsOfProcess: [UnsafePointer<CChar>] {
        var settings: [UnsafePointer<CChar>] = []
        var next = MoultLibc.environ
        while let setting = next.pointee {
            settings.append(UnsafePointer(setting))
            next += 1
        }
        return settings
    }
}
