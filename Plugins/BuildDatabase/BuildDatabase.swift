import PackagePlugin

/// Builds the databases of a target when the target is built, from the directory `Database` next to its sources: a draft called
/// `draft.json`, the scripts that it names, and the tables that the scripts import. The directory `Database` of the target's
/// resources then contains the sealed manifest `release.json` and the files of the release. That directory is recreated when a
/// file of the source directory has changed.
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
                executable: try InstalledCommand(context).url,
                // A build uses the current files, whether committed or not; moult-pack packs a release.
                arguments: [
                    "pack", "--quiet", "--allow-dirty", "--name", "release", "--output",
                    result.path(percentEncoded: false), draft.path(percentEncoded: false),
                ],
                inputFiles: inputs, outputFiles: [result])
        ]
    }
}
