import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A token in the URL of a feed is sent only to the server, and written only to `moult.json`.
@Suite(.serialized) struct SecretTests {
    private let scratch: Scratch
    private let server: WebServer
    private let token = "sesame8e21"

    init() throws {
        scratch = try Scratch()
        try scratch.directory("public")
        server = try WebServer(scratch.path("public"))
        try publish("1.0.0", 1)
    }

    private func run(_ line: String) throws -> Shell.Ended { try scratch.run(line) }
    private func must(_ line: String) throws { try scratch.must(line) }

    private func publish(_ version: String, _ sequence: Int) throws {
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        _ = try maker.make(version, sequence: sequence, [.reference("food", World.table("food", version))])
        if try Files.facts(scratch.path("a.key")) == nil { try must("moult keygen a --no-password -q") }
        try must("moult publish public rel/test-\(version).json -k a.key -q")
    }

    private func set(_ name: String, _ value: JSON) throws {
        let settings = scratch.path("store/moult.json")
        let json = try JSON(parsing: try Files.read(settings, limit: 1 << 20) ?? [], source: settings)
        try Files.replace(settings, with: Array(json.setting(name, to: value).pretty.utf8), mode: 0o600)
    }

    /// Runs a command whose output shows the location of the feed, but not the token.
    private func quiet(_ line: String, status: Int32, shows: String = "") throws {
        let ended = try run(line)
        #expect(ended.status == status, "\(line): \(ended.errors)")
        #expect(!ended.output.contains(token) && !ended.errors.contains(token), "\(line)")
        #expect((ended.output + ended.errors).contains(shows), "\(line): \(ended.output)\(ended.errors)")
    }

    /// Returns the files below a directory that contain the token.
    private func leaks(_ directory: String) throws -> [String] {
        let ended = try run("grep -rlF \(token) \(directory)")
        return ended.output.split(separator: "\n").map(String.init)
    }

    @Test func `no verb shows the token of a feed, or stores it outside moult.json`() throws {
        let url = server.url("feed.json?token=\(token)")
        let shown = server.url("feed.json?***")
        try quiet("moult init --product org.example.test --key a.pub --feed '\(url)'", status: 0, shows: shown)
        #expect(try (Files.facts(scratch.path("store/moult.json"))?.mode ?? 0) & 0o777 == 0o600)
        try quiet(
            "moult init other --json --product org.example.test --key a.pub --feed '\(url)'", status: 0, shows: shown)
        // A consumer records everything that it receives.
        let dump = "{ env; tr '\\0' ' ' < /proc/$PPID/cmdline; cat; } >> \(scratch.path("dump"))"
        try set(
            "consumers", [["name": "dump", "command": ["reload": ["/bin/sh", "-c", .string(dump)]]]])
        try quiet("moult check -v", status: 2, shows: shown)
        try quiet("moult check --json", status: 2, shows: shown)
        try quiet("moult plan -v", status: 2, shows: shown)
        try quiet("moult plan --json", status: 2, shows: shown)
        try quiet("moult plan --feed '\(url)'", status: 2, shows: "--feed '\(shown)'")
        try quiet("moult plan -o saved.plan", status: 2)
        try quiet("moult apply --plan saved.plan -v", status: 0)
        try publish("2.0.0", 2)
        try quiet("moult apply --json", status: 0, shows: shown)
        try publish("3.0.0", 3)
        try quiet("moult apply -v", status: 0)
        try quiet("moult apply", status: 0, shows: shown)
        for verb in [
            "status", "history", "verify --deep", "status --deep", "status --processes", "steps", "quarantine",
            "clean --dry-run",
        ] {
            try quiet("moult \(verb)", status: 0)
            try quiet("moult \(verb) --json", status: 0)
        }
        for verb in ["status --prometheus", "status --nagios", "rollback --dry-run"] {
            #expect(try !run("moult \(verb)").output.contains(token))
        }
        try quiet("moult export 1.0.0 stick", status: 0)
        try quiet("moult rollback --reason test -v", status: 0)
        try quiet("moult recover", status: 0)
        #expect(try leaks("store stick saved.plan dump") == ["store/moult.json"])
    }

    @Test(arguments: ["busy", "private/feed.json", "astray", "gone/feed.json", "foreign/feed.json", "text"])
    func `no error shows the token of a feed`(_ path: String) throws {
        try must("mkdir -p public/foreign && cp public/feed.json public/foreign && echo text > public/text")
        let url = server.url("\(path)?token=\(token)")
        try must("moult init -q --product org.example.test --key a.pub --feed '\(url)'")
        for verb in ["check", "apply -v --json", "export 1.0.0 stick"] {
            let ended = try run("moult \(verb)")
            #expect(![0, 2].contains(ended.status))
            #expect(!(ended.output + ended.errors).contains(token))
        }
        #expect(try leaks("store") == ["store/moult.json"])
    }

    @Test func `an interrupted transfer does not show or store the token of a feed`() throws {
        let proxy = try FaultyProxy(before: server, .cut, at: 0.5, times: 99, only: ".tar.zst?token=\(token)")
        try must(
            "moult init -q --product org.example.test --key a.pub --feed '\(proxy.url("feed.json?token=\(token)"))'")
        try quiet("moult apply", status: 75, shows: ".tar.zst?***")
        try quiet("moult history --json", status: 0)
        #expect(try run("ls store/.moult/downloads").output.contains(".part"))
        #expect(try leaks("store") == ["store/moult.json"])
    }

    /// Every user can read the arguments of a process.
    @Test func `no process has the token among its arguments`() throws {
        let proxy = try FaultyProxy(before: server, .stall, at: 0.5, only: ".tar.zst?token=\(token)")
        try must(
            "moult init -q --product org.example.test --key a.pub --feed '\(proxy.url("feed.json?token=\(token)"))'")
        let program = try Background([try BuiltMoult.path(), "apply", "-q", "--store", scratch.path("store")])
        var seen = ""
        try program.wait {
            seen = try Shell.run(["sh", "-c", "ps -o args= --ppid \(program.pid)"]).output
            return try seen.contains("moult-fetch") && proxy.requests().contains { $0.path.contains(".tar.zst") }
        }
        #expect(!seen.contains(token))
        program.signal(SIGKILL)
    }

    /// Mistakes with URLs: a URL where a file is expected, and unsupported URLs.
    @Test func `the error for an unusable address does not contain secrets`() throws {
        for line in [
            "moult init --product org.example.test --feed 'https://me:\(token)@example.org/feed.json'",
            "moult init --product org.example.test --feed 'ftp://example.org/feed.json?\(token)'",
            "moult init --product org.example.test --feed 'https:/example.org/feed.json?\(token)'",
            "moult init -q --product org.example.test && moult apply 'https://example.org/feed.json?\(token)'",
            "moult plan --store store 'https://example.org/feed.json?\(token)'",
            "moult inspect 'https://example.org/feed.json?\(token)'",
        ] {
            let ended = try run(line)
            #expect(ended.status != 0)
            #expect(!ended.errors.isEmpty && !ended.errors.contains(token), "\(ended.errors)")
        }
    }

    /// The plan does not contain the token, so `apply` takes it from the settings.
    @Test func `apply refuses a plan for a feed that is not in the settings`() throws {
        try must("moult init -q --product org.example.test --key a.pub")
        try quiet("moult plan --feed '\(server.url("feed.json?\(token)"))' -o saved.plan", status: 2)
        try quiet(
            "moult apply --plan saved.plan", status: 3,
            shows: "the password or token for \(server.url("feed.json?***")) is unknown")
    }

    @Test func `status --deep reports settings with secrets that every user may read`() throws {
        try must("moult init -q --product org.example.test --key a.pub --feed '\(server.url("feed.json?\(token)"))'")
        try must("moult apply -q && moult status --deep -q && chmod 644 store/moult.json")
        let ended = try run("moult status --deep --json")
        #expect(ended.status == 1)
        #expect(ended.output.contains(#""kind":"secrets""#), "\(ended.output)")
        try must("chmod 600 store/moult.json && moult status --deep -q")
    }
}
