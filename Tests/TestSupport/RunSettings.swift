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

/// The distance between the system calls that are made to fail. MOULT_FAULTS=all uses all calls (`make faults`);
/// otherwise this is a sample, which is the same in every run.
package enum FaultPoints {
    package static let step = getenv("MOULT_FAULTS").map { String(cString: $0) } == "all" ? 1 : 17

    /// Half of the calls that the smallest flow makes: a sweep that tries fewer has ended early. The exact number depends
    /// on the processes of the machine, whose open files a command lists, and on the length of paths.
    package static let leastCalls = 500
}

extension Collection {
    /// Returns a sample of the cases of a test, spread evenly and the same in every run; with MOULT_CASES=all, which `make
    /// test-all` sets for tests with the tag `sampled`, returns all cases.
    package func sampled(_ size: Int) -> [Element] {
        let all = Array(self)
        let isComplete = getenv("MOULT_CASES").map { String(cString: $0) } == "all" || all.count <= size
        return isComplete ? all : (0..<size).map { all[$0 * all.count / size] }
    }
}
