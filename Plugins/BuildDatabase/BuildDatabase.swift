import PackagePlugin

/// Makes the databases of a target when the target is built, from what is in the directory `Database` next to its
/// sources: a draft with the name `draft.json`, the scripts that it names, and the tables that those import.
///
/// The directory `Database` of the target's resources then has the sealed manifest `release.json` and next to it what
/// the release consists of. It is recreated when a file in `Database` has changed.
@main struct BuildDatabase: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        guard let target = target.sourceModule else { return [] }
        let directory = target.directoryURL.appending(path: "Database")
        let inputs = target.sourceFiles.map(\.url).filter {
            $0.path(percentEncoded: false).hasPrefix(directory.path(percentEncoded: false) + "/")
        }
        let draft = directory.appending(path: "draft.json")
        guard inputs.contains(draft) else {
            Diagnostics.error(
                "\(target.name): \(draft.path(percentEncoded: false)), the list of databases to build, does not exist")
            return []
        }
        let result = context.pluginWorkDirectoryURL.appending(path: "Database")
        return [
            .buildCommand(
                displayName: "Building the databases of \(target.name)",
                executable: try context.tool(named: "MoultTool").url,
                // A build is of what is there now, committed or not; a release is packed by moult-pack.
                arguments: [
                    "pack", "--quiet", "--allow-dirty", "--name", "release", "--output",
                    result.path(percentEncoded: false), draft.path(percentEncoded: false),
                ],
                inputFiles: inputs, outputFiles: [result])
        ]
    }
}
