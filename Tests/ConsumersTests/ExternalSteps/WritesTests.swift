import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// The paths that a step may write to: the listed files, which moult creates if they are missing, and directories.
@Suite struct WritesTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private static let result = #"echo '{"reply":"result"}'"#

    /// Creates a store with a step that may write to `GRANTED/file`; the directory also contains another file.
    private func world(
        apply: String, undo: String = result, isThere: Bool = true, writes: [String] = ["GRANTED/file"]
    ) throws -> StepWorld {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: writes), apply: apply, undo: undo)
        let world = try StepWorld(program, after: .verify)
        try world.adapt(program)
        if isThere { try Files.writeNew(Array("old\n".utf8), to: "\(world.granted)/file") }
        try Files.writeNew(Array("other\n".utf8), to: "\(world.granted)/other")
        return world
    }

    private func text(_ world: StepWorld, _ name: String) throws -> String? {
        try Files.read("\(world.granted)/\(name)", limit: 100).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a step can write to an existing file in place`() throws {
        let world = try world(apply: "echo new > GRANTED/file; \(Self.result)")
        let before = try Files.facts("\(world.granted)/file")?.inode
        try world.update()
        #expect(try text(world, "file") == "new\n")
        #expect(try Files.facts("\(world.granted)/file")?.inode == before)
    }

    /// The kernel denies these calls; moult does not only detect the changes afterwards.
    @Test(arguments: [
        "echo x > GRANTED/new", "echo x > GRANTED/other", "rm GRANTED/other", "rm GRANTED/file", "mkdir GRANTED/d",
        "mv GRANTED/file GRANTED/moved", "ln GRANTED/file GRANTED/link",
    ])
    func `a step cannot change other names in the directory of an existing file`(what: String) throws {
        let world = try world(apply: "\(what) 2> /dev/null && exit 9; \(Self.result)")
        let names = try Files.list(world.granted)
        #expect(try world.failure() == nil)
        #expect(try Files.list(world.granted) == names)
        #expect(try text(world, "other") == "other\n")
    }

    /// moult creates the file, so that the step needs no right in the directory.
    @Test(arguments: [
        "echo x > GRANTED/new", "echo x > GRANTED/other", "rm GRANTED/other", "rm GRANTED/file", "mkdir GRANTED/d",
        "mv GRANTED/file GRANTED/moved", "ln -s other GRANTED/link",
    ])
    func `a step that writes to a missing file gets access to that file alone`(what: String) throws {
        let world = try world(
            apply: "\(what) 2> /dev/null && exit 9; echo new > GRANTED/file || exit 8; \(Self.result)", isThere: false)
        #expect(try world.failure() == nil)
        #expect(try text(world, "file") == "new\n")
        #expect(try text(world, "other") == "other\n")
        #expect(try Files.list(world.granted) == ["file", "other"])
        #expect(try Files.facts("\(world.granted)/file")?.mode == 0o644)
    }

    @Test func `a file that moult created is removed again if the update is undone and the file is empty`() throws {
        let world = try world(
            apply: "echo x > GRANTED/file; exit 1", undo: ": > GRANTED/file || exit 7; \(Self.result)", isThere: false)
        #expect(try #require(try world.failure()).outcome == .undone)
        #expect(try Files.list(world.granted) == ["other"])
    }

    @Test func `a file that moult created stays if the undo leaves something in it`() throws {
        let world = try world(apply: "echo x > GRANTED/file; exit 1", isThere: false)
        #expect(try #require(try world.failure()).outcome == .undone)
        #expect(try text(world, "file") == "x\n")
    }

    @Test func `an existing empty file stays if the update is undone`() throws {
        let world = try world(apply: "exit 1")
        try Files.replace("\(world.granted)/file", with: [])
        #expect(try #require(try world.failure()).outcome == .undone)
        #expect(try text(world, "file") == "")
    }

    @Test func `a step can create, rename and remove files in a directory that it writes to`() throws {
        let world = try world(
            apply: "echo x > GRANTED/.t; mv GRANTED/.t GRANTED/file; exit 1",
            undo: "rm -f GRANTED/.t GRANTED/file || exit 7; \(Self.result)", isThere: false, writes: ["GRANTED"])
        #expect(try #require(try world.failure()).outcome == .undone)
        #expect(try Files.list(world.granted) == ["other"])
    }

    /// The command is killed after the file was created, but the next command still knows that the file is new.
    @Test(arguments: ["recover", "recover --undo"])
    func `after a crash, a file that moult created still counts as new`(_ verb: String) throws {
        let world = try crashed(
            apply: """
                if [ -s GRANTED/file ]; then echo again > GRANTED/file; \(Self.result)
                else echo once > GRANTED/file; exec sleep 60; fi
                """, undo: ": > GRANTED/file; \(Self.result)")
        let settled = try Shell.run(
            [BuiltMoult.path()] + verb.split(separator: " ").map { String($0) } + ["--store", world.store])
        #expect(settled.status == 0, "\(settled.errors)")
        #expect(try text(world, "file") == (verb == "recover" ? "again\n" : nil))
        #expect(try world.world.versions() == [verb == "recover" ? "2.0.0" : "1.0.0"])
    }

    /// Starts an update, and kills the command when the step has put something in `GRANTED/file`.
    private func crashed(apply: String, undo: String, writes: [String] = ["GRANTED/file"]) throws -> StepWorld {
        let world = try world(apply: apply, undo: undo, isThere: false, writes: writes)
        let moult = try Background([BuiltMoult.path(), "apply", "-q", "--store", world.store, world.world.second])
        try moult.wait { try Files.facts("\(world.granted)/file").map { $0.kind == .link || $0.size > 0 } ?? false }
        moult.stop()
        return world
    }

    /// The step may also write to the directory of its planned file, so it can put a link there.
    @Test(arguments: ["recover", "recover --undo"], ["/nothing/there", "other", "/etc/passwd"])
    func `a link that a step has put at its planned path is not followed, and recovery ends`(
        _ verb: String, _ target: String
    ) throws {
        let world = try crashed(
            apply: """
                if [ -e GRANTED/again ]; then echo again > GRANTED/file; \(Self.result)
                else : > GRANTED/again; ln -sf \(target) GRANTED/file; exec sleep 60; fi
                """, undo: Self.result, writes: ["GRANTED/file", "GRANTED"])
        let settled = try Shell.run(
            [BuiltMoult.path()] + verb.split(separator: " ").map { String($0) } + ["--store", world.store])
        #expect(settled.status == 0, "\(settled.errors)")
        #expect(try text(world, "other") == "other\n")
        #expect(try Files.facts("\(world.granted)/file")?.kind == (verb == "recover" ? .file : nil))
        #expect(try text(world, "file") == (verb == "recover" ? "again\n" : nil))
    }

    @Test func `a step that replaces its planned file with a link fails, and the link is removed`() throws {
        let world = try world(
            apply: "ln -sf /etc/passwd GRANTED/file; \(Self.result)", isThere: false,
            writes: ["GRANTED/file", "GRANTED"])
        let error = try #require(try world.failure())
        #expect(error.outcome == .undone)
        #expect(
            error.why?.contains(
                "GRANTED/file was replaced with a symbolic link".replacing("GRANTED", with: world.granted)) == true,
            "\(error)")
        #expect(try Files.list(world.granted) == ["other"])
    }

    @Test func `a step cannot send moult's own record of new files as an intent`() throws {
        let world = try world(
            apply: """
                echo '{"reply":"intent","id":1,"intent":{"moult":["GRANTED/file"]}}'; read -r x; \(Self.result)
                """)
        #expect(try world.failure()?.why?.hasSuffix("its intent has a member \"moult\"") == true)
    }

    /// A step gets only its own intents.
    @Test func `steps do not see moult's own record of new files`() throws {
        let world = try world(
            apply: """
                case $message in *'"intents":[]'*) ;; *) exit 8 ;; esac
                echo x > GRANTED/file; \(Self.result)
                """, isThere: false)
        #expect(try world.failure() == nil)
        #expect(try text(world, "file") == "x\n")
    }
}
