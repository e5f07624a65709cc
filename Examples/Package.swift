// swift-tools-version: 6.3
import PackageDescription

// Small apps that use moult as a library, each built and run by the tests of moult itself.
func app(_ name: String, plugins: [String] = []) -> Target {
    .executableTarget(
        name: name, dependencies: [.product(name: "Moult", package: "moult")],
        plugins: plugins.map { .plugin(name: $0, package: "moult") })
}

let package = Package(
    name: "examples",
    dependencies: [.package(name: "moult", path: "..")],
    targets: [
        app("Board"),
        app("Phrasebook"),
        app("TenLines"),
        app("WordList"),
        app("Trees", plugins: ["BuildDatabase"]),

        // The moult command with an additional step
        .systemLibrary(name: "SQLite3", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .executableTarget(
            name: "Masked",
            dependencies: [
                .product(name: "MoultCommand", package: "moult"), .product(name: "StepKit", package: "moult"),
                "SQLite3",
            ]),
    ]
)
