import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// An app that embeds the library reads archives with the command that is installed next to the app.
@Suite struct AppArchiveTests {
    let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        let draft =
            #"{"manifest":1,"product":"org.example.test","version":"1.0.0","sequence":1,"databases":{"food":{"kind":"reference","source":"food.db"}}}"#
        try Files.writeNew(Array(draft.utf8), to: scratch.path("draft.json"))
        try scratch.must(
            "sqlite3 food.db 'CREATE TABLE food(x); INSERT INTO food VALUES(hex(zeroblob(9000)))' && moult pack -q draft.json -o rel && ls rel/test-1.0.0.json"
        )
        let app = Files.directory(of: try BuiltMoult.path()) + "/AppProbe"
        try scratch.must("mkdir -p app/bin app/libexec/moult && cp '\(app)' app/bin/app")
    }

    /// Installs a script as the command, and then installs the release with the app. `$moult` is the real command.
    private func install(_ script: String) throws -> Shell.Ended {
        let real = try BuiltMoult.path()
        try Files.replace(
            scratch.path("app/libexec/moult/moult"),
            with: Array("#!/bin/bash\nmoult='\(real)'\n\(script)\n".utf8), mode: 0o755)
        return try scratch.run("app/bin/app rel/test-1.0.0.json store")
    }

    /// Returns a script that runs instead of the archive reader; databases are examined as usual.
    private func reading(_ script: String) -> String {
        "[ \"$1\" = unpack-1 ] || exec \"$moult\" \"$@\"\necho \"$1\" >> '\(scratch.path("calls"))'\n\(script)"
    }

    @Test func `an app lets the command read its archives`() throws {
        let installed = try install(reading("exec \"$moult\" \"$@\""))
        #expect(installed.status == 0, "\(installed)")
        #expect(try String(decoding: scratch.read("calls"), as: UTF8.self).hasPrefix("unpack-1\n"))
        #expect(try scratch.must("moult verify --deep --store store -q; echo $?") == "0\n")
    }

    @Test func `an app without the command reads archives itself`() throws {
        #expect(try scratch.run("rm -r app/libexec; app/bin/app rel/test-1.0.0.json store").status == 0)
    }

    static let ready = #"read -r question; echo '{"ready":true}'"#

    /// After the attack, nothing is installed and no file is left, and the correct program installs the release.
    @Test(arguments: [
        ("echo nonsense", "the reply is not JSON"),
        ("exit 64", "it ended with status 64"),
        ("kill -9 $$", "the process that reads the archive ended with SIGKILL"),
        (#"echo '{"done":true}'"#, "it does not contain the declared"),
        (#"echo '{"bytes":1}'"#, "1 bytes outside a member"),
        (#"echo '{"member":"../x"}'"#, "../x"),
        (#"echo '{"member":"food.db"}'; echo '{"bytes":1000000000000}'"#, "outside a member"),
    ])
    func `a compromised archive process installs nothing`(said: String, why: String) throws {
        let refused = try install(reading("\(Self.ready); \(said); exec sleep 1000"))
        #expect(refused.status == 1 && refused.output.contains(why), "\(refused)")
        #expect(try Files.facts(scratch.path("store/.moult/current")) == nil)
        #expect(try Files.list(scratch.path("store/.moult/transactions")) == [])
        #expect(try Files.list(scratch.path("store")).filter { $0.hasSuffix(".db") } == [])
        #expect(try install("exec \"$moult\" \"$@\"").status == 0)
    }

    /// The messages are correct, but the bytes do not match the digest.
    @Test func `bytes that differ from the release are refused`() throws {
        let refused = try install(
            reading(
                """
                "$moult" "$@" | while read -r line; do
                    case $line in *'"bytes":'*) printf '\\377\\377' | dd of=/proc/self/fd/3 conv=notrunc status=none ;; esac
                    printf '%s\\n' "$line"
                done
                """))
        #expect(refused.status == 1, "\(refused)")
        #expect(try Files.facts(scratch.path("store/.moult/current")) == nil)
        #expect(try Files.list(scratch.path("store")).filter { $0.hasSuffix(".db") } == [])
    }
}
