import MoultBasics
import MoultFiles
import TestSupport

/// The golden files of a format, which `Tests/Golden/make` created once.
struct Golden {
    let directory: String

    init(format: Int = 1) {
        directory = "\(Project.root)/Tests/Golden/format-\(format)"
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }
    func release(_ number: Int) -> String { path("releases/golden-\(number).0.0.json") }

    func json(_ name: String) throws -> JSON {
        try JSON(parsing: Files.read(path(name), limit: 1 << 20) ?? [], source: name)
    }
}

/// The golden store of an earlier build.
struct GoldenStore {
    let scratch: Scratch
    let root: String

    init(of golden: Golden = Golden()) throws {
        scratch = try Scratch()
        root = scratch.path("store")
        try Shell.must(["tar", "-xJpf", golden.path("installed.tar.xz"), "--no-same-owner", "-C", scratch.path])
    }
}
