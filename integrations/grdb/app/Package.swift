// swift-tools-version: 6.2
import Foundation
import PackageDescription

// integrations/grdb/run copies this package, and sets the paths of both libraries.
let environment = ProcessInfo.processInfo.environment
let package = Package(
    name: "app",
    dependencies: [
        .package(name: "moult", path: environment["MOULT_PATH"] ?? "../../.."),
        .package(name: "GRDB", path: environment["GRDB_PATH"] ?? "GRDB"),
    ],
    targets: [
        .target(name: "NoSnapshots"),
        .executableTarget(
            name: "App",
            dependencies: [
                .product(name: "Moult", package: "moult"), .product(name: "GRDB", package: "GRDB"), "NoSnapshots",
            ]),
    ]
)
