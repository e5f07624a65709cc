import MoultFiles
import TestSupport

/// The apps in `Examples`, built once for all tests, and incrementally from one test run to the next.
enum ExampleApps {
    static func path(_ name: String) async throws -> String { "\(try await directory.value)/\(name)" }

    /// The directory of the executables. They are built on a separate thread, because this takes minutes in a clean
    /// clone, and tests that run in parallel need the threads of Swift's pool.
    private static let directory = Task {
        try await withCheckedThrowingContinuation { (built: CheckedContinuation<String, any Error>) in
            do { try Threads.detach { built.resume(with: Result { try build() }) } } catch {
                built.resume(throwing: error)
            }
        }
    }

    /// Builds the apps that have changed.
    @discardableResult
    static func build() throws -> String {
        let arguments = ["swift", "build", "--package-path", "Examples", "--scratch-path", ".build/examples"]
        try Project.must(arguments, in: Project.root, Project.home)
        return "\(Project.root)/.build/examples/debug"
    }
}
