import MoultFiles
import TestSupport
import Testing

/// The demo and the walkthroughs, run as a user would run them.
@Suite(.tags(.slow)) struct WalkthroughTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// A walkthrough stops at the first command with an unexpected status or output.
    @Test(
        .tags(.thorough),
        arguments: [
            "scripts/demo", "manifests/one-file/run", "manifests/replace-on-new-version/run",
            "manifests/build-and-attach/run", "manifests/drop-when-incompatible/run", "manifests/complete-reset/run",
            "manifests/replace-live/run",
        ])
    func `walkthroughs run from any directory, any number of times`(_ script: String) throws {
        let temporary = try scratch.directory("tmp")
        for directory in ["/", scratch.path] {
            let ended = try Project.run(["\(Project.root)/\(script)"], in: directory, ["TMPDIR": temporary])
            #expect(ended.errors == "")
            #expect(ended.status == 0, "\(ended.output)")
            #expect(try Files.list(temporary).isEmpty)
        }
        #expect(try Files.list(scratch.path) == ["tmp"])
    }

    @Test func `the demo accepts a path to the command`() throws {
        let ended = try Project.run(
            ["scripts/demo", "\(Project.built)/moult"], in: Project.root, ["PATH": "/usr/bin:/bin"])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    /// Colours must not hide the text that the demo looks for.
    @Test func `the demo succeeds with coloured output`() throws {
        let ended = try Project.run(["\(Project.root)/scripts/demo"], in: "/", ["CLICOLOR_FORCE": "1"])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect(ended.output.contains("\u{1B}["))
    }

    @Test func `a walkthrough fails if a command does not behave as expected`() throws {
        let silent = try Project.run(["\(Project.root)/scripts/demo", "/bin/true"], in: "/")
        #expect(silent.status == 1)
        #expect(silent.errors.hasSuffix("and the text \"phrasebook-1.0.0\"; the exit status was 0\n"))
        let missing = try Project.run(["\(Project.root)/scripts/demo", "no-such-command"], in: "/")
        #expect(missing.status == 127)
        #expect(missing.errors.hasPrefix("command not found: no-such-command. Install it"))
    }
}
