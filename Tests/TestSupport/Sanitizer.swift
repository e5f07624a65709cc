import MoultLibc

/// Settings for programs that are built with a sanitizer, like these tests (`make test-sanitize`).
package enum Sanitizer {
    /// The sanitizer options of this process. Only this process is checked for leaks, because that needs ptrace, which
    /// does not work in programs that are traced or confined.
    package static let environment: [String: String] = {
        var found: [String: String] = [:]
        for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
            if let value = getenv(name) { found[name] = "\(String(cString: value)):detect_leaks=0" }
        }
        return found
    }()
}
