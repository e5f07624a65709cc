// swift-tools-version: 6.3
import PackageDescription

// Small apps that use moult as a library, each built and run by the tests of moult itself.
let package = Package(
    name: "examples",
    dependencies: [.package(name: "moult", path: "..")],
    targets: [
        .executableTarget(
            name: "Phrasebook",
            dependencies: [.product(name: "Moult", package: "moult")])
    ]
)
