import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultPublish

@Suite struct SubstitutionTests {
    private let substitution = Substitution(
        defines: ["NAME": "it's \"x\"", "n": "7"], environment: ["HOME": "/home"], directory: "/")
    private let place = Place(file: "draft.json", line: 1)

    @Test(arguments: [
        ("plain $n {n} $ ${", "plain $n {n} $ ${"), ("a${n}b${n}", "a7b7"), ("${NAME}", "it's \"x\""),
        ("${env.HOME}", "/home"), ("$${n}", "${n}"), ("$$n $$${n}", "$$n $${n}"), ("${\"a\"} ${}", "${\"a\"} ${}"),
    ])
    func `variables are replaced by their values`(_ text: String, _ result: String) throws {
        #expect(try substitution.apply(to: text, at: place) == result)
    }

    /// The configuration of a repository can specify programs that Git starts when it reads the repository.
    @Test func `reading a Git repository does not run its programs`() throws {
        let (scratch, git) = try repository()
        let trace = scratch.path("trace")
        let program = scratch.path("program")
        try Files.writeNew(Array("#!/bin/sh\ntouch '\(trace)'\ncat\n".utf8), to: program, mode: 0o755)
        for setting in [
            "core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.external", "core.sshCommand",
        ] {
            _ = try git("config", setting, program)
        }
        try scratch.file(".gitattributes", "* filter=evil diff=evil\n")
        _ = try git("config", "diff.evil.textconv", program)
        try Shell.must(["touch", "-d", "2001-01-01", scratch.path("data/s.sql")])
        #expect(try Revision(of: scratch.path).isDirty == false)
        #expect(try Files.facts(trace) == nil)
        try scratch.file("data/s.sql", "SELECT 1;\n")
        #expect(try Revision(of: scratch.path).isDirty)
        #expect(try Files.facts(trace) == nil)
    }

    /// Git compares the content of a file whose time is that of the index, through the filter that the repository names.
    @Test(arguments: ["clean", "process"])
    func `a filter of the repository does not run, and one of the user does`(kind: String) throws {
        let (scratch, git) = try repository()
        let trace = scratch.path("trace")
        let program = scratch.path("program")
        try Files.writeNew(Array("#!/bin/sh\necho x > '\(trace)'\ncat\n".utf8), to: program, mode: 0o755)
        _ = try git("config", "filter.evil.\(kind)", program)
        _ = try git("config", "filter.evil.required", "true")
        try scratch.file(".git/info/attributes", "* filter=evil\n")
        for file in [".git/index", "data/s.sql"] { try Shell.must(["touch", "-d", "2001-01-01", scratch.path(file)]) }
        #expect(try Revision(of: scratch.path).isDirty == false)
        #expect(try Files.facts(trace) == nil)
        let settings =
            "global\0filter.lfs.clean\nlfs\0local\0filter.lfs.clean\nevil\0"
            + "local\0filter.a=b.c.process\nevil\0"
        #expect(
            Revision.withoutFilters(settings, ["GIT_CONFIG_COUNT": "1"]) == [
                "GIT_CONFIG_COUNT": "7",
                "GIT_CONFIG_KEY_1": "filter.a=b.c.clean", "GIT_CONFIG_VALUE_1": "",
                "GIT_CONFIG_KEY_2": "filter.a=b.c.process", "GIT_CONFIG_VALUE_2": "",
                "GIT_CONFIG_KEY_3": "filter.a=b.c.required", "GIT_CONFIG_VALUE_3": "false",
                "GIT_CONFIG_KEY_4": "filter.lfs.clean", "GIT_CONFIG_VALUE_4": "lfs",
                "GIT_CONFIG_KEY_5": "filter.lfs.process", "GIT_CONFIG_VALUE_5": "",
                "GIT_CONFIG_KEY_6": "filter.lfs.required", "GIT_CONFIG_VALUE_6": "false",
            ])
    }

    @Test func `an error about a variable names the line`() {
        let error = #expect(throws: MoultError.self) {
            try substitution.apply(to: "${n}\n\n  ${N}\n", at: Place(file: "draft.json", line: 5))
        }
        #expect(error?.what == "draft.json:7: ${N} has no value")
    }

    /// A value is inserted according to its context: in quotes, quotes are doubled, and comments are not changed.
    @Test func `variables in scripts are replaced according to their context`() throws {
        let scratch = try Scratch()
        try scratch.file(
            "s.sql",
            """
            -- ${NOTHING} here /* ${NOTHING} */
            SELECT '${NAME}', ${n} + 1, "${NAME}", '$${n}', '$.a' /* ${NOTHING} */;
            .print ${NAME} '${NAME}' "$${n}"
            .${n}
            """.replacing(".${n}", with: ".print ${n}${n}"))
        var options = BuildOptions()
        options.defines = ["NAME": "it's \"x\"", "n": "7"]
        var output: [UInt8] = []
        options.output = { output += $0 }
        _ = try DatabaseBuilder(options).build(script: scratch.path("s.sql"), output: scratch.path("m.db"))
        #expect(
            String(decoding: output, as: UTF8.self)
                == "it's \"x\"|8|it's \"x\"|${n}|$.a\nit's \"x\" it's \"x\" ${n}\n77\n")
    }

    private func repository() throws -> (Scratch, (String...) throws -> String) {
        let scratch = try Scratch()
        let git: (String...) throws -> String = { arguments in
            try Shell.must(
                ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
                    + arguments,
                in: scratch.path
            ).trimmed
        }
        _ = try git("init", "-q")
        try scratch.file("data/s.sql", "SELECT '${git.describe}', '${git.revision}', ${git.count};\n")
        _ = try git("add", ".")
        _ = try git("commit", "-qm", "one")
        return (scratch, git)
    }

    private func build(_ scratch: Scratch) throws -> (output: String, revision: Revision?) {
        var options = BuildOptions()
        var output: [UInt8] = []
        options.output = { output += $0 }
        let report = try DatabaseBuilder(options).build(
            script: scratch.path("data/s.sql"), output: scratch.path("data/m.db"))
        return (String(decoding: output, as: UTF8.self), report.revision)
    }

    @Test func `the version comes from the Git repository`() throws {
        let (scratch, git) = try repository()
        let first = try git("rev-parse", "HEAD")
        // Without a tag, the version is the short hash. A built database in the working tree does not make the tree
        // dirty.
        #expect(try build(scratch).output == "\(first.prefix(7))|\(first)|1\n")
        #expect(try build(scratch).revision?.isDirty == false)
        _ = try git("tag", "v2.1.0")
        #expect(try build(scratch).output == "2.1.0|\(first)|1\n")
        _ = try git("commit", "-q", "--allow-empty", "-m", "two")
        let second = try git("rev-parse", "HEAD")
        #expect(try build(scratch).output == "2.1.0-1-g\(second.prefix(7))|\(second)|2\n")
    }

    @Test func `the version of a dirty tree ends in -dirty`() throws {
        let (scratch, git) = try repository()
        _ = try git("tag", "release")
        let hash = try git("rev-parse", "HEAD")
        let index = try Files.facts(scratch.path(".git/index"))
        try scratch.file("data/s.sql", scratch.bytes("data/s.sql") + Array("-- changed\n".utf8))
        let (output, revision) = try build(scratch)
        #expect(output == "release-dirty|\(hash)-dirty|1\n")
        #expect(revision?.isDirty == true)
        // Reading the repository must not write its index.
        #expect(try Files.facts(scratch.path(".git/index")) == index)
    }

    @Test func `build refuses to count the commits of a shallow clone`() throws {
        let (scratch, git) = try repository()
        _ = try git("commit", "-q", "--allow-empty", "-m", "two")
        let clone = try Scratch()
        try Shell.must(["git", "clone", "-q", "--depth", "1", "file://\(scratch.path)", clone.path("c")])
        let error = #expect(throws: MoultError.self) {
            try DatabaseBuilder().build(script: clone.path("c/data/s.sql"), output: clone.path("m.db"))
        }
        #expect(
            error?.description
                == "\(clone.path("c/data/s.sql")):1: ${git.count} is unknown: the clone is shallow: its history is cut "
                + "off. Run `git fetch --unshallow`; in CI, fetch the whole history.")
    }
}
