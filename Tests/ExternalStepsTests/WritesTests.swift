import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// The paths that a step may write to: the listed files, and the directories of new files.
@Suite struct WritesTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private static let result = #"echo '{"reply":"result"}'"#

    /// Creates a store with a step that may write to `GRANTED/file`; the directory also contains another file.
    private func world(apply: String, undo: String = result, isThere: Bool = true) throws -> StepWorld {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]), apply: apply, undo: undo)
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

    @Test func `a step can create a new file, and its undo can remove the file`() throws {
        let world = try world(
            apply: "echo x > GRANTED/.t; mv GRANTED/.t GRANTED/file; exit 1",
            undo: "rm -f GRANTED/.t GRANTED/file || exit 7; \(Self.result)", isThere: false)
        let error = try #require(try world.failure())
        #expect(error.outcome == .undone)
        #expect(try Files.list(world.granted) == ["other"])
    }

    /// The command is killed after the file was created, but the next command still knows that the file is new.
    @Test func `after a crash, a file that a step created still counts as new`() throws {
        let world = try world(
            apply: """
                if [ -e GRANTED/crashed ] || [ -e GRANTED/file ]; then
                    echo again > GRANTED/.t && mv GRANTED/.t GRANTED/file; \(Self.result)
                else echo once > GRANTED/file; exec sleep 60; fi
                """, isThere: false)
        let moult = try BuiltMoult.path()
        let second = world.world.second
        let store = world.store
        let ended = try Shell.run([
            "bash", "-c",
            "'\(moult)' apply -q --store '\(store)' '\(second)' & pid=$!; until [ -e '\(world.granted)/file' ]; do sleep 0.02; done; kill -KILL $pid; wait $pid",
        ])
        #expect(ended.status == 137)
        let settled = try Shell.run([moult, "recover", "--store", store])
        #expect(settled.status == 0, "\(settled.errors)")
        #expect(try text(world, "file") == "again\n")
        #expect(try world.world.versions() == ["2.0.0"])
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
