@preconcurrency import Glibc
import PackagePlugin

/// `swift package moult-pack`: packs a release of every target that has a `Database/draft.json`, into `releases`. With
/// arguments, it runs `moult pack` with these arguments in the package's directory.
@main struct MoultPack: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) throws {
        let tool = try InstalledCommand(context).url.path(percentEncoded: false)
        let directory = context.package.directoryURL.path(percentEncoded: false)
        guard chdir(directory) == 0 else { throw Failure(text: "cannot change to the directory \(directory)") }
        if !arguments.isEmpty { return try run(tool, ["pack"] + arguments) }
        let drafts = context.package.targets.compactMap(\.sourceModule).flatMap { target in
            let draft = target.directoryURL.appending(path: "Database/draft.json")
            return target.sourceFiles.map(\.url).filter { $0 == draft }
        }
        if drafts.isEmpty { throw Failure(text: "no target has a Database/draft.json; specify the path of a draft") }
        for draft in drafts { try run(tool, ["pack", "--output", "releases", draft.path(percentEncoded: false)]) }
    }

    private struct Failure: Error, CustomStringConvertible {
        let text: String
        var description: String { text }
    }

    private func run(_ tool: String, _ arguments: [String]) throws {
        let words = ([tool] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, tool, nil, nil, words + [nil], environ)
        guard code == 0 else { throw Failure(text: "cannot start \(tool): \(String(cString: strerror(code)))") }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { throw Failure(text: "cannot wait for \(tool)") }
        }
        // The command has printed the reason.
        guard status == 0 else { throw Failure(text: "moult \(arguments.joined(separator: " ")) failed") }
    }
}
