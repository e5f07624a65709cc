// swift-tools-version: 6.0
import PackageDescription

// The plugins of moult with the command as it was built: who uses them compiles nothing of moult for them. It is a package
// of its own, because SwiftPM resolves no package whose binary is missing.
let package = Package(
    name: "moult-plugins",
    products: [
        .plugin(name: "BuildDatabase", targets: ["BuildDatabase"]),
        .plugin(name: "MoultPack", targets: ["MoultPack"]),
    ],
    targets: [
        .binaryTarget(name: "MoultTool", path: "moult.artifactbundle"),
        .plugin(name: "BuildDatabase", capability: .buildTool(), dependencies: ["MoultTool"]),
        .plugin(
            name: "MoultPack",
            capability: .command(
                intent: .custom(verb: "moult-pack", description: "Pack releases of the databases of this package"),
                permissions: [.writeToPackageDirectory(reason: "It writes manifests and bundles to releases/.")]),
            dependencies: ["MoultTool"]),
    ]
)
