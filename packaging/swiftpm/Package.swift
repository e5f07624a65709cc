// swift-tools-version: 6.2
import PackageDescription

// The plugins of moult with the compiled command, so that their users do not compile moult. This is a separate package,
// because SwiftPM does not resolve a package whose binary is missing. Its names differ from those in moult, because an
// app may use both.
let package = Package(
    name: "moult-plugins",
    products: [
        .plugin(name: "PrebuiltBuildDatabase", targets: ["PrebuiltBuildDatabase"]),
        .plugin(name: "PrebuiltMoultPack", targets: ["PrebuiltMoultPack"]),
    ],
    targets: [
        // Its artifact is `MoultTool`, which is the plugins' name for the command.
        .binaryTarget(name: "MoultBinary", path: "moult.artifactbundle"),
        .plugin(
            name: "PrebuiltBuildDatabase", capability: .buildTool(), dependencies: ["MoultBinary"],
            path: "Plugins/BuildDatabase"),
        .plugin(
            name: "PrebuiltMoultPack",
            capability: .command(
                intent: .custom(verb: "moult-pack", description: "Pack releases of the databases of this package"),
                permissions: [.writeToPackageDirectory(reason: "It writes manifests and bundles to releases/.")]),
            dependencies: ["MoultBinary"], path: "Plugins/MoultPack"),
    ]
)
