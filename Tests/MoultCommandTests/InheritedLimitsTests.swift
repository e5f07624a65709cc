import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Settings that the command inherits from its caller: ignored signals, a limit on the size of files, a umask.
@Suite struct InheritedLimitsTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try scratch.must(
            """
            mkdir work; cd work
            echo 'CREATE TABLE t(x); INSERT INTO t VALUES(1);' > make.sql
            echo '{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"food":{"kind":"reference","build":{"script":"make.sql"}}}}' > draft.json
            moult pack -q draft.json -o out
            """)
    }

    /// With SIGCHLD ignored, the kernel does not keep the exit statuses of children.
    @Test func `a caller that ignores SIGCHLD does not make an update fail`() throws {
        let ignoring =
            "python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])'"
        try scratch.must("\(ignoring) moult apply -q --create --store store work/out/x-1.0.0.json")
        try scratch.must("\(ignoring) moult verify -q --deep --store store")
    }

    private static let big =
        "CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO t SELECT randomblob(1000) FROM n;"

    /// Each command reaches the limit of 64 KiB.
    @Test(arguments: [
        "moult build big.sql -o big.db", "moult pack big.db -o packed --product org.example.big",
        "moult apply --create --store store big/big-1.0.0.json",
    ])
    func `a file larger than the shell's limit is an error, and nothing is left behind`(_ line: String) throws {
        try scratch.write("work/big.sql", Self.big)
        try scratch.must(
            "cd work && moult build -q big.sql -o b.db && mv b.db big.db && moult pack -q big.db -o big --product org.example.big && mv big.db keep.db"
        )
        if line.contains("pack ") { try scratch.must("cd work && mv keep.db big.db") }
        let before = try Tree(scratch.path("work"), times: false)
        let ended: Shell.Ended = try scratch.run("cd work && ulimit -f 64 && \(line)")
        #expect(ended.status == 1, "\(ended)")
        #expect(ended.errors.contains("ulimit -f unlimited"), "\(ended)")
        #expect(try Tree(scratch.path("work"), times: false, skipping: ["store"]) == before, "\(ended)")
        #expect(try scratch.run("cd work && \(line)").status == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may become another user"))
    func `an error names a umask that denies users their own files`() throws {
        try scratch.must("chmod 755 . && cp $(command -v moult) work/moult && chown -R 65534 work")
        let ended: Shell.Ended = try scratch.run(
            "cd work && umask 777 && setpriv --reuid=65534 --regid=65534 --clear-groups ./moult pack draft.json -o again"
        )
        #expect(ended.status == 1, "\(ended)")
        let said = ended.errors.replacing("\n", with: " ")
        #expect(said.contains("The umask of this shell, 0777, removes this user's own permissions"), "\(ended)")
        #expect(said.contains("umask 022"), "\(ended)")
    }
}
