// swift-tools-version: 6.2
import PackageDescription

// The plugins of moult with the command as it was built: who uses them compiles nothing of moult for them. It is a package
// of its own, because SwiftPM resolves no package whose binary is missing; names are others than in moult itself, because an app
// may have both.
let package = Package(
    name: "moult-plugins",
    products: [
        .plugin(name: "PrebuiltBuildDatabase", targets: ["PrebuiltBuildDatabase"]),
        .plugin(name: "PrebuiltMoultPack", targets: ["PrebuiltMoultPack"]),
    ],
    targets: [
        // Its artifact is `MoultTool`, as the plugins call the command.
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
