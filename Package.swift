// swift-tools-version: 6.3
import PackageDescription

// The modules of moult, lowest layer first. `scripts/check-arrows`, a part of `make lint`, lists the layers, and fails if a
// target depends on one in its own layer or above.

/// Declares a C library from Debian; exactly one Swift target imports each.
func system(_ name: String, pkgConfig: String? = nil, apt: [String]) -> Target {
    .systemLibrary(name: name, path: "Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt(apt)])
}

/// Links static libraries, because loading the shared ones takes longer than the rest of an update without changes. (With
/// `pkgConfig:`, the system library target would link the shared one again.)
func staticLibraries(_ names: String...) -> [LinkerSetting] { names.map { .linkedLibrary(":lib\($0).a") } }

/// Whether to build without features that only Linux has, for `make portable-test`; see CONTRIBUTING.md.
let isPortable = Context.environment["MOULT_PORTABLE"] == "1"

/// Whether to build for `make test` (see `BUILD_TESTS` in the Makefile): with a command that starts and
/// runs fast, because the tests start it thousands of times.
let isTestBuild = Context.environment["MOULT_TEST_BUILD"] == "1"

let package = Package(
    name: "moult",
    products: [
        .executable(name: "moult", targets: ["MoultTool"]),
        .executable(name: "moult-fetch", targets: ["MoultFetch"]),
        .library(name: "Moult", targets: ["Moult"]),
        .library(name: "MoultTesting", targets: ["MoultTesting"]),
        .library(name: "StepKit", targets: ["StepKit"]),
        .library(name: "MoultCommand", targets: ["MoultCommand"]),
        .plugin(name: "BuildDatabase", targets: ["BuildDatabase"]),
        .plugin(name: "MoultPack", targets: ["MoultPack"]),
    ],
    targets: [
        // C libraries
        // System calls and child processes that Swift cannot handle, in C
        .target(name: "CLinux", exclude: isPortable ? ["system.c", "spawn.c", "confine.c"] : ["portable.c"]),
        // The C library of the system; every Swift target of this package may import it (see the end of this file)
        .target(name: "MoultLibc"),
        system("CSQLite", pkgConfig: "sqlite3", apt: ["libsqlite3-dev"]),
        system(
            "CArchive",
            apt: ["libarchive-dev", "nettle-dev", "liblzma-dev", "libbz2-dev", "zlib1g-dev", "libzstd-dev"]),
        system("CCrypto", apt: ["libssl-dev"]),
        system("CZstd", apt: ["libzstd-dev"]),
        system("CZlib", apt: ["zlib1g-dev"]),
        system("CLzma", apt: ["liblzma-dev"]),
        system("CSeccomp", apt: ["libseccomp-dev"]),
        system("CCurl", pkgConfig: "libcurl", apt: ["libcurl4-openssl-dev"]),

        // Used by all modules: errors, JSON, sizes and times
        .target(name: "MoultBasics"),

        // Adapters: each wraps external libraries or system interfaces, and knows nothing about updates
        // Files, locks, processes, and the limits of processes that handle untrusted input
        .target(
            name: "MoultFiles", dependencies: ["MoultBasics", "CLinux"] + (isPortable ? [] : ["CSeccomp"]),
            exclude: [isPortable ? "Linux" : "Portable"],
            linkerSettings: isPortable ? [] : staticLibraries("seccomp")),
        .target(name: "MoultSQLite", dependencies: ["MoultBasics", "MoultFiles", "CLinux", "CSQLite"]),
        // The rules for rows: comparing, carrying, rejecting and keeping them
        .target(name: "MoultRows", dependencies: ["MoultBasics", "MoultFiles", "MoultSQLite"]),
        .target(
            name: "MoultArchive", dependencies: ["MoultBasics", "MoultFiles", "CArchive", "CZstd", "CZlib", "CLzma"],
            linkerSettings: staticLibraries("archive", "nettle", "lzma", "zstd", "bz2", "z")),
        .target(
            name: "MoultTrust", dependencies: ["MoultBasics", "MoultFiles", "CCrypto"],
            linkerSettings: staticLibraries("crypto")),
        // The examination of databases, and the reading of archives, in confined processes
        .target(
            name: "MoultSandbox",
            dependencies: [
                "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite", "MoultArchive", "MoultTrust", "CLinux",
            ]),
        .target(name: "MoultTransport", dependencies: ["MoultBasics", "MoultFiles", "MoultTrust"]),
        // The program that the transport starts to send requests to web servers; only this one loads libcurl
        .executableTarget(
            name: "MoultFetch", dependencies: ["MoultBasics", "MoultFiles", "CLinux", "CCurl"]),

        // The interface for authors of steps
        .target(name: "StepKit", dependencies: ["MoultBasics"]),
        // The five steps that every store has, each in a separate directory; they depend neither on each other nor on the core
        .target(
            name: "BuiltInSteps",
            dependencies: [
                "StepKit", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite", "MoultTrust", "MoultSandbox",
            ],
            path: "Plugins/Steps"),
        // All operations on a store, feeds, external steps, and the library for apps; the publisher's operations; the command
        .target(
            name: "Moult",
            dependencies: [
                "BuiltInSteps", "StepKit", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite", "MoultArchive",
                "MoultTrust",
                "MoultTransport", "MoultSandbox",
            ]),
        // A store for the tests of apps, which is made without an update
        .target(
            name: "MoultTesting",
            dependencies: ["Moult", "StepKit", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite", "MoultTrust"]),
        .target(
            name: "MoultPublish",
            dependencies: [
                "StepKit", "MoultBasics", "MoultFiles", "MoultSandbox", "MoultRows", "MoultSQLite", "MoultArchive",
                "MoultTrust", "MoultTransport",
            ]),
        .target(
            name: "MoultCommand",
            dependencies: [
                "Moult", "MoultPublish", "StepKit", "MoultBasics",
                "MoultFiles", "MoultRows", "MoultSQLite", "MoultArchive", "MoultTrust", "MoultTransport",
                "MoultSandbox", "CLinux",
            ]),
        .executableTarget(name: "MoultTool", dependencies: ["MoultCommand"]),
        // Plugins for other packages: they build a database together with an app, and pack releases of it. They run the installed
        // command: with a dependency on MoultTool, SwiftPM would compile all modules a second time.
        .plugin(name: "BuildDatabase", capability: .buildTool(), path: "Plugins/BuildDatabase"),
        .plugin(
            name: "MoultPack",
            capability: .command(
                intent: .custom(verb: "moult-pack", description: "Pack releases of the databases of this package"),
                permissions: [.writeToPackageDirectory(reason: "It writes manifests and bundles to releases/.")]),
            path: "Plugins/MoultPack"),

        // Tests of modules, of subjects such as data, state and feeds, and of the built command
        .target(
            name: "TestSupport",
            dependencies: [
                "Moult", "StepKit", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite",
                "MoultTrust", "MoultArchive", "MoultCommand", "CLinux",
            ],
            path: "Tests/TestSupport"),
        .testTarget(
            name: "MoultTests",
            dependencies: [
                "Moult", "StepKit", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite",
                "TestSupport",
            ]),
        .testTarget(
            name: "DataTests",
            dependencies: ["Moult", "MoultBasics", "MoultFiles", "MoultSQLite", "TestSupport"]),
        .testTarget(
            name: "StateTests",
            dependencies: [
                "Moult", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite", "MoultTrust", "TestSupport",
            ]),
        .testTarget(
            name: "ExecutionTests",
            dependencies: [
                "Moult", "StepKit", "MoultBasics", "MoultFiles", "MoultRows", "MoultSQLite", "MoultTrust",
                "TestSupport",
            ]),
        .testTarget(
            name: "ConsumersTests",
            dependencies: [
                "Moult", "MoultTesting", "StepKit", "MoultBasics", "MoultFiles", "TestSupport", "CLinux",
                "MoultRows", "MoultSQLite",
            ]),
        .testTarget(
            name: "MoultFilesTests",
            dependencies: ["MoultTrust", "MoultFiles", "MoultBasics", "CLinux", "TestSupport"]),
        .testTarget(
            name: "StepKitTests", dependencies: ["StepKit", "MoultBasics", "MoultFiles", "Moult", "TestSupport"]),
        .testTarget(
            name: "MoultSQLiteTests",
            dependencies: ["MoultRows", "MoultSQLite", "MoultBasics", "MoultFiles", "TestSupport", "CSQLite"]),
        .executableTarget(name: "GuardProbe", dependencies: ["MoultFiles", "CLinux"], path: "Tests/GuardProbe"),
        .executableTarget(
            name: "AppProbe", dependencies: ["Moult", "MoultBasics", "MoultFiles"], path: "Tests/AppProbe"),
        // Simulates a week of a million machines with the code that makes the decisions in a store: `make simulate`
        .executableTarget(
            name: "FleetSimulation",
            dependencies: ["Moult", "MoultFiles", "StepKit", "MoultBasics"], path: "Tests/FleetSimulation"
        ),
        .testTarget(
            name: "MoultArchiveTests",
            dependencies: ["MoultArchive", "MoultSandbox", "MoultBasics", "MoultFiles", "TestSupport"],
            exclude: ["Sandbox/Guard/ioctls.txt"]),
        .testTarget(
            name: "MoultPublishTests",
            dependencies: [
                "Moult", "MoultPublish", "MoultTransport", "StepKit", "MoultBasics", "MoultFiles", "MoultRows",
                "MoultSQLite",
                "MoultArchive", "MoultTrust", "TestSupport",
            ]),
        .testTarget(
            name: "MoultCommandTests",
            dependencies: [
                "MoultCommand", "Moult", "StepKit", "MoultBasics", "MoultFiles",
                "TestSupport", "CLinux", "MoultPublish", "MoultTrust",
            ]),
        .testTarget(
            name: "FeedTests",
            dependencies: [
                "Moult", "MoultPublish", "MoultTransport", "StepKit", "MoultBasics", "MoultFiles", "MoultTrust",
                "TestSupport", "CLinux",
            ]),
    ]
)

// The fuzzer, which needs special compiler options: `make fuzz`.
if Context.environment["MOULT_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: ["MoultArchive", "MoultBasics", "MoultFiles", "MoultPublish", "MoultTrust", "StepKit"],
            path: "Fuzz", exclude: ["corpus"]))
}

// Builds only some test targets, separated by commas: MOULT_TESTS=DataTests,FeedTests swift test
if let names = Context.environment["MOULT_TESTS"]?.split(separator: ",").map(String.init) {
    package.targets.removeAll { $0.type == .test && !names.contains($0.name) }
}

// Settings for sanitizers, which do not work under the usual resource limits: `make test-sanitize`.
if Context.environment["MOULT_SANITIZE"] != nil {
    for target in package.targets where ["MoultSandbox", "MoultArchiveTests", "MoultFetch"].contains(target.name) {
        target.swiftSettings = [.define("SANITIZED")]
    }
}

if isTestBuild {
    let compiled = package.targets.filter { [.regular, .executable, .test].contains($0.type) && $0.name != "CLinux" }
    for target in compiled {
        // One compiler process for each module takes less time in all. Only these two modules run for longer than it takes to
        // optimize them.
        let isOptimized = ["MoultBasics", "MoultFiles"].contains(target.name)
        target.swiftSettings = [
            .unsafeFlags(
                ["-disable-batch-mode", "-whole-module-optimization", "-num-threads", "2"] + (isOptimized ? ["-O"] : [])
                    // Nothing imports a module of tests, so it is not compiled once more for its interface alone.
                    + (target.type == .test ? ["-no-emit-module-separately-wmo"] : [])
            )
        ]
    }
    // A static program starts in less than half the time.
    for target in compiled where target.name == "MoultTool" {
        target.linkerSettings = [
            .unsafeFlags([
                "-static-executable", "-Xclang-linker", "-static-pie", "-use-ld=lld", "-Xlinker", "-z", "-Xlinker",
                "pack-relative-relocs",
            ])
        ]
    }
}

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    .treatAllWarnings(as: .error),
]
for target in package.targets where ![.system, .binary, .plugin].contains(target.type) {
    target.swiftSettings = (target.swiftSettings ?? []) + settings
    if isPortable, target.name != "CLinux" { target.swiftSettings?.append(.define("MOULT_PORTABLE")) }
    if !["CLinux", "MoultLibc"].contains(target.name) { target.dependencies.append("MoultLibc") }
}
