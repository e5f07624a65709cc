import MoultLibc

/// What programs must know that were built with a sanitizer, as these tests were (`make test-sanitize`).
package enum Sanitizer {
    /// The options that this process has. Leaks are looked for in this process only: that needs ptrace, which many of the
    /// programs do not have, because they are traced or confined.
    package static let environment: [String: String] = {
        var found: [String: String] = [:]
        for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
            if let value = getenv(name) { found[name] = "\(String(cString: value)):detect_leaks=0" }
        }
        return found
    }()
}
