import CLinux
import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// Paths below `.moult` are reached without following symlinks, which an attacker may have planted there.
@Suite struct StorePathTests {
    private let scratch: Scratch
    private var moult: String { scratch.path("store/.moult") }
    private var outside: String { scratch.path("outside") }

    /// Creates a store with a generation, a pointer to it, and a planted link to a directory outside of the store.
    init() throws {
        scratch = try Scratch()
        for name in ["outside", "store", "store/.moult", "store/.moult/generations", "store/.moult/generations/1"] {
            try scratch.directory(name)
        }
        try scratch.write("outside/file", "outside")
        try scratch.write("store/.moult/generations/1/food.db", "food")
        try Files.symlink(to: "generations/1", at: "\(moult)/current")
        try Files.symlink(to: outside, at: "\(moult)/planted")
    }

    private func text(_ path: String) throws -> String? {
        try Files.read(path, limit: 100).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("/s/.moult/lock", "/s/.moult", ["lock"]), ("s/.moult/a//./b", "s/.moult", ["a", "b"]),
        ("/s/.moult/a/.moult/b", "/s/.moult/a/.moult", ["b"]), ("/../s/.moult/a..b", "/../s/.moult", ["a..b"]),
        ("/s\u{301}/.moult/\u{E9}", "/s\u{301}/.moult", ["\u{E9}"]),
    ])
    func `a path below the directory is divided into the directory and names`(
        _ path: String, _ directory: String, _ names: [String]
    ) throws {
        let place = try #require(try StorePath(path))
        #expect(String(place.directory) == directory)
        #expect(place.names.map(String.init) == names)
    }

    @Test(arguments: [
        "", "/", "/s/food.db", "/s/.moult", "/s/.moult/", "/s/.moult/.", "/s/.moultx/a", "/s/x.moult/a", "/s/.Moult/a",
        ".moult/a",
    ])
    func `other paths are not below the directory`(_ path: String) throws { #expect(try StorePath(path) == nil) }

    @Test(arguments: ["/s/.moult/..", "/s/.moult/../food.db", "/s/.moult/a/../../x"])
    func `a path that leaves the directory is refused`(_ path: String) {
        #expect(throws: Errno.loop) { try StorePath(path) }
    }

    @Test func `a planted link to a directory is not followed, and the error names it`() throws {
        let actions: [(String) throws -> Void] = [
            { _ = try Files.read($0, limit: 100) }, { try Files.replace($0, with: [1]) }, { try Files.remove($0) },
            { try Files.rename($0, to: "\(moult)/taken") }, { try Files.ensureDirectory("\($0).d") },
            { try Files.symlink(to: "x", at: "\($0).link") },
        ]
        for (index, action) in actions.enumerated() {
            let error = #expect(throws: MoultError.self, "action \(index)") { try action("\(moult)/planted/file") }
            #expect(
                error?.why?.hasPrefix("\(moult)/planted is a symbolic link") == true, "action \(index): \(error as Any)"
            )
        }
        #expect(try Files.list(outside) == ["file"])
        #expect(try text("\(outside)/file") == "outside")
        // Outside of `.moult`, links belong to the operator.
        try Files.symlink(to: outside, at: scratch.path("store/link"))
        #expect(try text(scratch.path("store/link/file")) == "outside")
    }

    @Test func `the directory itself and its parents may be links`() throws {
        try Files.rename(moult, to: scratch.path("moved"))
        try Files.symlink(to: scratch.path("moved"), at: moult)
        try Files.symlink(to: scratch.path("store"), at: scratch.path("link"))
        let path = scratch.path("link/.moult/generations/1/food.db")
        #expect(try text(path) == "food")
        try Files.replace(path, with: Array("new".utf8))
        #expect(try scratch.text("moved/generations/1/food.db") == "new")
    }

    /// A release may keep a file at the operator's location, and its generation then has a link to that file. The other files
    /// of moult, which it reads as records, are never links.
    @Test func `a link as the last component is followed only in a generation`() throws {
        for name in ["generations/1/own.db", "own.db"] {
            try Files.symlink(to: "\(outside)/file", at: "\(moult)/\(name)")
        }
        for directory in ["generations/1", "current"] {
            let path = "\(moult)/\(directory)/own.db"
            #expect(try Descriptor(path, .read).facts().isSameFile(Files.facts("\(outside)/file")))
            #expect(throws: MoultError.self) { try Descriptor(path, .record).facts() }
        }
        #expect(throws: MoultError.self) { try Descriptor("\(moult)/own.db", .read).facts() }
    }

    @Test(arguments: ["generations/../../../outside", "../../outside", "generations/.hidden", "generations", "planted"])
    func `the pointer leads only to a generation`(_ target: String) throws {
        try scratch.directory("store/.moult/generations/.hidden")
        for directory in ["store/.moult/generations/.hidden", "store/.moult/generations"] {
            try scratch.write("\(directory)/file", "wrong")
        }
        #expect(try text("\(moult)/current/food.db") == "food")
        try Files.remove("\(moult)/current")
        try Files.symlink(to: target, at: "\(moult)/current")
        #expect(throws: MoultError.self) { try text("\(moult)/current/file") }
        #expect(throws: MoultError.self) { try Files.facts("\(moult)/current/file") }
    }

    /// A command that has locked a store continues to use that store if its path now leads elsewhere.
    @Test func `a pinned directory is reached even if its path has changed`() throws {
        let pinned = try #require(try PinnedDirectory.ifFree(moult))
        try Files.rename(scratch.path("store"), to: scratch.path("moved"))
        try scratch.directory("store")
        try scratch.directory("store/.moult")
        try Files.replace("\(moult)/generations/1/food.db", with: Array("new".utf8))
        #expect(try scratch.text("moved/.moult/generations/1/food.db") == "new")
        #expect(throws: MoultError.self) { try text("\(moult)/planted/file") }
        #expect(access("\(moult)/generations", F_OK) != 0)
        withExtendedLifetime(pinned) {}
    }
}
