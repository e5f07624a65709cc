import Foundation
import PackagePlugin

/// The command `moult` that a plugin runs: the one of the package with the compiled command, otherwise the installed one. It is not
/// compiled with the app, so the app's build compiles the library once.
struct InstalledCommand {
    let url: URL

    init(_ context: PluginContext) throws {
        if let tool = try? context.tool(named: "MoultTool") {
            url = tool.url
            return
        }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin"
        let files = path.split(separator: ":").map { URL(filePath: String($0)).appending(path: "moult") }
        guard let found = files.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) }) else {
            throw NotInstalled()
        }
        url = found
    }

    private struct NotInstalled: Error, CustomStringConvertible {
        let description = """
            the command moult is not in the PATH. Install it (docs/publish.md of moult), or use the package that \
            `make artifactbundle` writes.
            """
    }
}
