import Moult
import MoultBasics
import StepKit
import TestSupport
import Testing

@testable import MoultCommand

@Suite struct PlanVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    /// Returns the text of a plan, in which the free disk space is replaced by a placeholder.
    private func text(_ line: String) throws -> String {
        let run = try world.run(line)
        #expect(run.status == 2)
        #expect(run.err == "")
        return run.out.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard line.hasPrefix("disk: "), let comma = line.firstIndex(of: ","),
                let free = line.firstRange(of: " free")
            else { return String(line) }
            return "\(line[..<comma]), FREE\(line[free.lowerBound...])"
        }
        .joined(separator: "\n")
    }

    @Test func `the plan of a first install lists its effects`() throws {
        try world.install()
        let needs = ByteCount(3 * 8192 + (try world.bytes(world.first)))
        #expect(
            try text("moult plan rel/test-1.0.0.json") == """
                test nothing -> 1.0.0   (store ./store, bundle \(world.size("rel/test-1.0.0.tar.zst")), not signed)

                  check    first install
                + copy     food        8.00 KiB from the bundle, read-only
                + copy     user        user.db from the template, 8.00 KiB
                  attach   user + food as "food" (read-only)
                  verify   food: digest, identity, quick_check
                  verify   user: digest, identity, quick_check

                disk: needs \(needs), FREE free - 2 to add
                apply with: moult apply rel/test-1.0.0.json

                """)
    }

    @Test func `the plan of an update lists its effects`() throws {
        let checks: JSON = [["on": "food", "sql": "SELECT count(*) FROM food", "expect": ">= 2"]]
        let world = try VerbWorld(top: [.init("requires", ["app": ">=3.2 <5"]), .init("checks", checks)])
        try world.must("moult init --product org.example.test --app 3.4.0; moult apply -q rel/test-1.0.0.json")
        let run = try world.run("LANG=C.UTF-8 moult plan rel/test-2.0.0.json --store store --follow match")
        #expect(run.status == 2)
        var lines = run.out.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let disk = lines.remove(at: 9)
        #expect(disk.hasPrefix("disk: needs \(ByteCount(2 * 8192 + (try world.bytes(world.second)))), "))
        #expect(disk.hasSuffix(" free · 1 to replace, 1 unchanged"))
        #expect(
            try lines.joined(separator: "\n") == """
                test 1.0.0 -> 2.0.0   (store store, bundle \(world.size("rel/test-2.0.0.tar.zst")), not signed)

                  check    installed 1.0.0 < 2.0.0; app 3.4.0 satisfies >=3.2 <5
                - delete   food        out of service, kept for rollback (generation \(world.generation(world.first)))
                + copy     food        8.00 KiB from the bundle, read-only
                = copy     user        the existing file is kept
                  attach   user + food as "food" (read-only)
                  verify   food: digest, identity, quick_check, 1 golden query

                apply with: moult apply rel/test-2.0.0.json --store store --follow match

                """)
    }

    @Test func `the plan of an in-place release copies nothing`() throws {
        let maker = try ReleaseMaker(in: world.scratch.path("app"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(name);", inPlace: true)])
        try world.install()
        let run = try world.run("moult plan app/test-1.0.0.json")
        #expect(
            run.out.hasPrefix(
                """
                test nothing -> 1.0.0   (store ./store, not signed)

                  check    first install
                + copy     food        8.00 KiB in place, not copied: \(world.scratch.path("app/food.db"))
                  attach   food as "food" (read-only)
                  verify   food: header, identity

                disk: needs \(try world.size("app/test-1.0.0.json")), 
                """))
    }

    @Test func `with -v, a plan contains details`() throws {
        try world.install(world.first)
        let plain = try text("moult plan rel/test-2.0.0.json").split(separator: "\n")
        let verbose = try text("moult plan -v rel/test-2.0.0.json").split(separator: "\n")
        let (old, new) = (try world.generation(world.first), try world.generation(world.second))
        #expect(
            verbose.filter { !plain.contains($0) } == [
                "+ copy     user        8.00 KiB template kept for rollback and reset",
                "+ copy     generation \(new)", "~ copy     current: \(old) -> \(new)",
            ])
    }

    @Test func `a saved plan is valid for its store, however the store's path is written`() throws {
        try world.install(world.first)
        try world.must("moult plan -q -o p -s rel/../store rel/test-2.0.0.json", status: 2)
        try world.must("ln -s . link")
        try world.must("moult apply -q --plan p -s link/store && moult status | grep -q 'test 2.0.0'")
        try world.must("moult plan -q -o q rel/test-1.0.0.json --allow-downgrade", status: 2)
        try world.must("moult init -q other --product org.example.test")
        #expect(try world.run("moult apply --plan q -s other").err.contains("it was made for the store"))
    }

    @Test func `the plan of the installed release contains nothing to do`() throws {
        try world.install(world.first)
        #expect(try world.run("moult plan rel/test-1.0.0.json") == (0, "nothing to do: 1.0.0 is installed\n", ""))
        #expect(try world.run("moult plan -q rel/test-1.0.0.json") == (0, "", ""))
        #expect(try world.run("moult plan -q rel/test-2.0.0.json") == (2, "", ""))
    }

    @Test func `a plan as JSON has the same content`() throws {
        try world.install(world.first)
        let text = try text("moult plan -v rel/test-2.0.0.json")
        let run = try world.run("moult plan --json rel/test-2.0.0.json")
        #expect(run.status == 2)
        #expect(run.out.hasPrefix(#"{"format":1,"plan":"#))
        let json = try JSON(parsing: run.out, source: "stdout")
        let effects = try #require(json["effects"]?.array)
        let lines = text.split(separator: "\n").dropFirst().dropLast(2).map(String.init)
        #expect(effects.count == lines.count)
        for (effect, line) in zip(effects, lines) {
            let (mark, phase) = (try #require(effect["mark"]?.string), try #require(effect["phase"]?.string))
            #expect(line.hasPrefix("\(mark) \(phase) "))
            #expect(line.hasSuffix(try #require(effect["text"]?.string)))
            if let database = effect["database"]?.string { #expect(line.contains(database)) }
        }
        #expect(json["to"]?["version"]?.string == "2.0.0")
        #expect(json["changes"]?.bool == true)
        #expect(json["unfinished"]?.array == [])
    }

    /// Compares names, content, modes and ctimes of the store and of the releases.
    @Test func `plan changes nothing`() throws {
        try world.install(world.first)
        let (store, releases) = (try world.tree, try Tree(world.scratch.path("rel")))
        for line in ["plan rel/test-2.0.0.json", "plan --json rel/test-2.0.0.json", "plan -o p rel/test-2.0.0.json"] {
            #expect(try world.run("moult \(line)").status == 2)
        }
        #expect(try world.tree == store)
        #expect(try Tree(world.scratch.path("rel")) == releases)
    }

    @Test func `plan writes only the given file`() throws {
        try world.install()
        let text = try text("moult plan --output p rel/test-1.0.0.json --app 3.4.0")
        #expect(text.hasSuffix("\napply with: moult apply --plan p\n"))
        let saved = try Plan(json: JSON(parsing: world.scratch.text("p"), source: "p"), source: "p")
        #expect(saved.to.version == Version(1, 0, 0))
        #expect(saved.request.app == Version(3, 4, 0))
        #expect(try world.run("moult plan -q --out p rel/test-1.0.0.json").status == 2)
        #expect(try world.run(": > empty; moult plan -q --out empty rel/test-1.0.0.json").status == 2)
    }

    @Test(arguments: ["/dev/stdout", "rel/test-1.0.0.json", "rel/test-1.0.0.tar.zst"])
    func `plan does not replace a file of another kind`(_ file: String) throws {
        try world.install()
        let releases = try Tree(world.scratch.path("rel"))
        let run = try world.run("moult plan --output \(file) rel/test-1.0.0.json")
        #expect(run.status == 1)
        #expect(
            run.err == """
                moult: error: cannot save the plan to \(file): it exists and is not a plan
                  Choose another file, or print the plan with --json.

                """)
        #expect(try Tree(world.scratch.path("rel")) == releases)
    }

    @Test(arguments: [
        ("moult plan -o none/p rel/test-1.0.0.json", "none/p"), ("moult history --html none/h.html", "none/h.html"),
        ("moult keygen --no-password none/k", "none/k.key"),
    ])
    func `the error names a missing directory`(_ line: String, path: String) throws {
        try world.install()
        let run = try world.run(line)
        #expect(run.status == 1)
        #expect(
            run.err
                == "moult: error: cannot write \(path): no directory none\n  Create the directory first, or choose another file.\n"
        )
    }

    @Test func `only the signs of a plan are coloured`() throws {
        try world.install(world.first)
        let plain = try text("moult plan rel/test-2.0.0.json")
        #expect(!plain.contains("\u{1B}"))
        let coloured = try text("CLICOLOR_FORCE=1 moult plan rel/test-2.0.0.json")
        #expect(coloured.contains("\u{1B}[31m-\u{1B}[0m delete "))
        #expect(coloured.contains("\u{1B}[32m+\u{1B}[0m copy "))
    }

    /// On a terminal, a long line continues under the start of its text.
    @Test func `long lines of a plan are wrapped under their text`() throws {
        try world.install(world.first)
        let orchestrator = try Orchestrator(root: world.store, steps: .builtIn)
        let plan = try orchestrator.plan(ReleaseFile(world.scratch.path(world.second)))
        let lines = PlanLines(plan, details: false)
        let terminal = Terminal(width: 50)
        let shown = lines.effects.flatMap { lines.lines(of: $0, on: terminal).map(\.plain) }
        #expect(
            shown == [
                "  check    installed 1.0.0 < 2.0.0",
                "- delete   food        out of service, kept for",
                "                       rollback (generation",
                "                       \(try world.generation(world.first)))",
                "+ copy     food        8.00 KiB from the bundle,",
                "                       read-only",
                "= copy     user        the existing file is kept",
                #"  attach   user + food as "food" (read-only)"#,
                "  verify   food: digest, identity, quick_check",
            ])
    }
}
