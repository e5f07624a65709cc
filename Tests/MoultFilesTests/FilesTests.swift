import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@Suite struct FilesTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func write(_ name: String, _ bytes: [UInt8] = [1, 2, 3], mode: UInt32 = 0o644) throws -> String {
        try Files.writeNew(bytes, to: scratch.path(name), mode: mode)
        return scratch.path(name)
    }

    @Test func `a lock does not change the mode of a file that has another name`() throws {
        let file = try write("other", mode: 0o664)
        try Files.setMode(file, 0o664)
        try Files.hardLink(file, at: scratch.path("lock"))
        #expect(try FileLock.take(scratch.path("lock"), .exclusive) != nil)
        #expect(try Files.facts(file)?.mode == 0o664)
    }

    /// A path of so many names is longer than the system allows.
    @Test func `a tree of any depth is removed`() throws {
        for (levels, length) in [(300, 255), (3000, 1)] {
            try Shell.must(
                [
                    "python3", "-c",
                    "import os, sys\nfor _ in range(int(sys.argv[1])): os.mkdir('d' * int(sys.argv[2])); os.chdir('d' * int(sys.argv[2]))",
                    "\(levels)", "\(length)",
                ], in: scratch.path)
            let top = scratch.path(String(repeating: "d", count: length))
            try #require(try Files.facts(top)?.kind == .directory)
            try Files.removeTree(top)
            #expect(try Files.facts(top) == nil)
        }
    }

    @Test
    func `a tree with names of any bytes is removed, links in it are not followed, and directories may be closed`()
        throws
    {
        try Shell.must(
            [
                "python3", "-c",
                """
                import os
                os.mkdir("kept"); open("kept/file", "w").close()
                os.makedirs(b"tree/\\xff/\\xfe/a\\nb"); open(b"tree/\\xff/\\xfd", "w").close()
                os.symlink("../../kept", b"tree/\\xff/\\xfc"); os.mkfifo(b"tree/\\xfb")
                os.makedirs("tree/closed/inner"); open("tree/closed/inner/file", "w").close()
                os.chmod("tree/closed/inner", 0); os.chmod("tree/closed", 0); os.chmod(b"tree/\\xff", 0o100)
                for number in range(2000): os.makedirs("tree/wide/%d/x" % number)
                """,
            ], in: scratch.path)
        try Files.removeTree(scratch.path("tree"))
        #expect(try Files.list(scratch.path) == ["kept"])
        #expect(try Files.list(scratch.path("kept")) == ["file"])
    }

    @Test func `the named entries of a tree are removed last`() throws {
        try Shell.must(["mkdir", "-p", scratch.path("tree/a/b"), scratch.path("tree/z/y")])
        try Files.removeTree(scratch.path("tree"), last: ["a"])
        #expect(try Files.facts(scratch.path("tree")) == nil)
    }

    @Test func `a missing file has no facts, no content and no target`() throws {
        let path = scratch.path("none")
        #expect(try Files.facts(path) == nil)
        #expect(try Files.factsThroughLinks(path) == nil)
        #expect(try Files.read(path, limit: 10) == nil)
        #expect(try Files.target(ofLink: path) == nil)
        #expect(try Files.list(path) == [])
    }

    @Test func `the facts of a path describe a link or its target`() throws {
        let file = try write("file")
        let link = scratch.path("link")
        try Files.symlink(to: "file", at: link)
        #expect(try Files.facts(link)?.kind == .link)
        #expect(try Files.factsThroughLinks(link) == Files.facts(file))
        #expect(try Files.target(ofLink: link) == "file")
        try Files.remove(file)
        #expect(try Files.factsThroughLinks(link) == nil)
    }

    @Test func `a file beyond the limit is not read`() throws {
        let file = try write("file", [UInt8](repeating: 1, count: 100))
        #expect(try Files.read(file, limit: 100)?.count == 100)
        #expect(throws: MoultError.self) { try Files.read(file, limit: 99) }
    }

    /// Opening a pipe would wait for a writer forever.
    @Test func `a pipe instead of a file is refused`() throws {
        let pipe = scratch.path("pipe")
        #expect(mkfifo(pipe, 0o644) == 0)
        #expect(throws: MoultError.self) { try Files.read(pipe, limit: 10) }
        #expect(try Files.facts(pipe)?.kind == .other)
    }

    @Test func `writing a new file does not replace an existing file`() throws {
        let file = try write("file")
        #expect(throws: MoultError.self) { try Files.writeNew([9], to: file) }
        #expect(try Files.read(file, limit: 10) == [1, 2, 3])
    }

    @Test func `a replaced file has only the new content, and the specified mode`() throws {
        let file = try write("file", mode: 0o600)
        try Files.replace(file, with: [9], mode: 0o640)
        #expect(try Files.read(file, limit: 10) == [9])
        #expect(try Files.facts(file)?.mode == 0o640)
        #expect(try Files.list(scratch.path) == ["file"])
    }

    @Test func `threads that replace the same file take turns`() async throws {
        let file = try write("file")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...8 { group.addTask { try Files.replace(file, with: [UInt8(number)]) } }
            try await group.waitForAll()
        }
        #expect(try Files.read(file, limit: 10)?.count == 1)
        #expect(try Files.list(scratch.path) == ["file"])
    }

    @Test func `a leftover staged file is removed`() throws {
        let file = try write("file")
        try Files.writeNew([7, 7], to: Files.staged(file), mode: 0o400)
        try Files.replace(file, with: [9])
        #expect(try Files.read(file, limit: 10) == [9])
        try Files.symlink(to: "file", at: Files.staged(file))
        try Files.replace(file, with: [8])
        #expect(try Files.read(file, limit: 10) == [8])
        #expect(try Files.list(scratch.path) == ["file"])
    }

    @Test func `replacing a link replaces the link and not its target`() throws {
        let file = try write("file")
        let link = scratch.path("link")
        try Files.symlink(to: "file", at: link)
        try Files.replace(link, with: [9])
        #expect(try Files.read(file, limit: 10) == [1, 2, 3])
        #expect(try Files.facts(link)?.kind == .file)
    }

    @Test func `a rename to an existing name fails and changes nothing`() throws {
        let (one, two) = (try write("one"), try write("two", [9]))
        #expect(try !Files.renameIfFree(one, to: two))
        #expect(try Files.read(two, limit: 10) == [9])
        #expect(try Files.renameIfFree(one, to: scratch.path("three")))
        #expect(try Files.list(scratch.path).sorted() == ["three", "two"])
    }

    @Test func `two names are exchanged`() throws {
        let (one, two) = (try write("one"), try write("two", [9]))
        try Files.exchange(one, two)
        #expect(try Files.read(one, limit: 10) == [9])
        #expect(try Files.read(two, limit: 10) == [1, 2, 3])
    }

    @Test func `removing a tree does not follow links in it`() throws {
        let outside = try write("outside")
        let tree = try scratch.directory("tree")
        try scratch.directory("tree/a")
        try scratch.directory("tree/a/b")
        try Files.symlink(to: outside, at: "\(tree)/a/link")
        try Files.symlink(to: scratch.path, at: "\(tree)/a/b/up")
        try Files.setMode("\(tree)/a/b", 0o500)
        try Files.removeTree(tree)
        #expect(try Files.list(scratch.path) == ["outside"])
        #expect(try Files.read(outside, limit: 10) == [1, 2, 3])
        try Files.removeTree(tree)
    }

    @Test func `a copy has the content of the file and the specified mode`() throws {
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let file = try write("file", bytes)
        try Files.copy(file, to: scratch.path("copy"), mode: 0o400)
        #expect(try Files.read(scratch.path("copy"), limit: 1 << 20) == bytes)
        #expect(try Files.facts(scratch.path("copy"))?.mode == 0o400)
        #expect(throws: MoultError.self) { try Files.copy(file, to: scratch.path("copy"), mode: 0o644) }
    }

    @Test func `a copy of a file with holes has the same holes`() throws {
        let file = scratch.path("sparse")
        let source = try Descriptor(file, .create, mode: 0o600)
        let size = 1 << 40
        try source.write([1, 2, 3])
        try ([4, 5] as [UInt8]).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            try source.write(bytes, at: size / 2)
        }
        try source.truncate(to: size)
        try Files.copy(file, to: scratch.path("copy"), mode: 0o600)
        let copy = try Descriptor(scratch.path("copy"), .read)
        #expect(try copy.facts().size == size)
        for (offset, expected) in [(0, [1, 2, 3, 0] as [UInt8]), (size / 2 - 1, [0, 4, 5, 0])] {
            var bytes = [UInt8](repeating: 9, count: 4)
            let count = try bytes.withUnsafeMutableBytes { try copy.read(into: $0, at: offset) }
            #expect(count == 4)
            #expect(bytes == expected)
        }
    }

    @Test func `a hard link is the same file`() throws {
        let file = try write("file")
        #expect(try Files.hardLinkIfPossible(file, at: scratch.path("name")))
        let (one, two) = (try Files.facts(file), try Files.facts(scratch.path("name")))
        #expect(one?.inode == two?.inode && one?.links == 2)
        #expect(throws: MoultError.self) { try Files.hardLink(file, at: scratch.path("name")) }
    }

    @Test func `firstFree returns a name that does not exist`() throws {
        let file = try write("file")
        #expect(try Files.firstFree(scratch.path("new")) == scratch.path("new"))
        let other = try Files.firstFree(file)
        #expect(other != file && other.hasPrefix(file))
        #expect(try Files.facts(other) == nil)
    }

    @Test(arguments: [
        ("/a/b", "/a", "b"), ("/a", "/", "a"), ("a", ".", "a"), ("a/b/c", "a/b", "c"),
    ]) func `a path is split into its directory and its name`(_ path: String, _ directory: String, _ name: String) {
        #expect(Files.directory(of: path) == directory)
        #expect(Files.name(of: path) == name)
    }

    @Test func `relative paths are resolved from the working directory`() throws {
        let here = try Files.resolved(".")
        #expect(try Files.absolute("/a/b") == "/a/b")
        #expect(try Files.absolute("b").hasSuffix("/b"))
        #expect(here.hasPrefix("/"))
    }

    @Test func `a scratch directory is removed after its body, and an error of the body takes precedence`() throws {
        struct Failed: Error {}
        var place = ""
        try Files.withScratchDirectory { place = $0 }
        #expect(try Files.facts(place) == nil)
        #expect(throws: Failed.self) {
            try Files.withScratchDirectory { (directory: String) throws -> Void in
                place = directory
                try Files.writeNew([1], to: "\(directory)/file")
                throw Failed()
            }
        }
        #expect(try Files.facts(place) == nil)
    }

    @Test func `owner, mode and attributes are copied to another file`() throws {
        let scratch = try Scratch(in: "/var/tmp")
        let (old, new) = (scratch.path("old"), scratch.path("new"))
        try Files.writeNew([1], to: old)
        try Files.writeNew([2], to: new)
        try Files.setMode(old, 0o661)
        if geteuid() == 0 { #expect(chown(old, 65534, 65534) == 0) }
        try Files.copyAttributes(from: old, to: new)
        let (before, after) = (try Files.facts(old), try Files.facts(new))
        #expect(after?.mode == 0o661)
        #expect(after?.owner == before?.owner && after?.group == before?.group)
    }

    @Test func `a lock is exclusive, or shared by several holders`() throws {
        let path = scratch.path("lock")
        let shared = [try FileLock.take(path, .shared), try FileLock.take(path, .shared)]
        #expect(shared.allSatisfy { $0 != nil })
        #expect(try FileLock.take(path, .exclusive) == nil)
        withExtendedLifetime(shared) {}
    }

    @Test func `a lock is released when its object is destroyed`() throws {
        let path = scratch.path("lock")
        var lock = try FileLock.take(path, .exclusive)
        #expect(lock != nil)
        #expect(try FileLock.take(path, .shared) == nil)
        lock = nil
        #expect(try FileLock.take(path, .exclusive) != nil)
    }

    @Test func `a write lease is broken when the file is opened`() throws {
        let file = try write("file")
        let lease = try #require(try WriteLease.take(file))
        #expect(try lease.isUnbroken())
        let reader = open(file, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        #expect(try !lease.isUnbroken())
    }

    @Test func `a missing permission is distinguished from other errors`() throws {
        #expect(Files.isDenied(Errno(EACCES).error("x")))
        #expect(!Files.isDenied(Errno.noEntry.error("x")))
    }
}
