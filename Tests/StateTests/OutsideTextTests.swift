import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Names from outside that are not valid UTF-8. Next to each is the name that results if the invalid byte is replaced: no command
/// uses that one instead.
@Suite struct OutsideTextTests {
    private let scratch: Scratch
    /// A name in Latin-1, and the same name with U+FFFD in place of the invalid byte.
    private static let names = "unset MOULT_STORE; BAD=$'caf\\xe9'; WRONG=$'caf\\xef\\xbf\\xbd'\n"

    init() throws {
        scratch = try Scratch()
        try scratch.must(
            Self.names + """
                mkdir "$BAD" "$WRONG"; cd "$WRONG"
                sqlite3 app.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'; sqlite3 new.db 'CREATE TABLE t(x)'
                echo 'CREATE TABLE c(x);' > c.sql; moult keygen -q --no-password key
                moult pack -q app.db --product org.example.x --version 1.0.0 -o rel
                moult init -q store --product org.example.x; moult init -q . --product org.example.x
                cp -r . ../good; cp -r . "../$BAD"
                """)
    }

    private func run(_ script: String) throws -> Shell.Ended { try scratch.run(Self.names + script) }
    private func wrong() throws -> Tree { try Tree(scratch.path("caf\u{FFFD}")) }

    /// Either the command works in its working directory, or it is refused.
    @Test(
        .tags(.thorough),
        arguments: [
            "replace app.db new.db", "replace --undo app.db", "cache c.db --schema c.sql",
            "init other --product org.example.x", "init --product org.example.x", "apply rel/x-1.0.0.json",
            "apply rel/x-1.0.0.json --store store", "status", "plan rel/x-1.0.0.json --output new.plan",
            "build c.sql -o c.db",
            "pack app.db --product org.example.x --version 2.0.0 -o rel", "publish feed rel/x-1.0.0.json --key key.key",
            "delta app.db new.db -o d.patch", "diff app.db new.db --html d.html", "keygen --no-password other",
            "inspect app.db", "attach x", "sql 'SELECT 1'", "export 1.0.0 out --store store",
        ])
    func `a command in a directory whose name is not UTF-8 uses no other directory`(_ command: String) throws {
        let before = try wrong()
        let ended = try run("cd \"$BAD\"; moult \(command)")
        #expect(try wrong() == before, "\(command): \(ended)")
        #expect(!ended.errors.contains("\u{FFFD}"), "\(ended)")
    }

    @Test func `replace, cache and init name the bytes of the working directory`() throws {
        for command in ["replace app.db new.db", "cache c.db --schema c.sql", "init other --product org.example.x"] {
            let ended = try run("cd \"$BAD\"; moult \(command)")
            #expect(ended.status == 3, "\(ended)")
            #expect(
                ended.errors.contains(
                    "the name of the working directory is not valid UTF-8: \(scratch.path)/caf\\xE9: moult would use a different path"
                ), "\(ended)")
        }
    }

    /// Environment variables, links and URLs that lead to a directory.
    @Test(
        .tags(.thorough),
        arguments: [
            "MOULT_STORE=\"$BAD\" moult status", "MOULT_STORE=$PWD/\"$BAD\" moult apply good/rel/x-1.0.0.json",
            "MOULT_STORE=\"$BAD/n\" moult init --product org.example.x", "moult status --store \"$BAD\"",
            "ln -s \"$BAD\" link; moult replace link/app.db good/new.db",
            "ln -s \"$BAD/app.db\" l.db; moult replace l.db good/new.db",
            "TMPDIR=$PWD/\"$BAD\" moult pack good/app.db --product org.example.x -o out",
            "TMPDIR=$PWD/\"$BAD\" moult diff good/app.db good/new.db",
            "HOME=$PWD/\"$BAD\" moult apply --store good/store oci+http://localhost:1/x:1",
            "moult apply --store good/store file://$PWD/caf%e9/rel/x-1.0.0.json",
        ])
    func `a path from outside that is not UTF-8 is an error`(_ command: String) throws {
        let before = try wrong()
        let ended = try run(command)
        #expect(![0, 2].contains(ended.status), "\(command): \(ended)")
        #expect(ended.errors.contains("UTF-8"), "\(command): \(ended)")
        #expect(try wrong() == before, "\(command): \(ended)")
    }

    @Test func `a variable that is not used as a path may have any bytes, and programs get it unchanged`() throws {
        let ended = try run(
            """
            export OTHER=$'\\xe9' LANG=$'\\xe9' PATH=$'\\xe9':$PATH; cd good; moult keygen -q --no-password other
            moult publish -q feed rel/x-1.0.0.json --key key.key --new --fetch-with 'cp feed/"$MOULT_NAME" "$MOULT_FILE"' --upload-with 'printf %s "$OTHER" | od -An -tx1; true'
            moult publish -q feed2 rel/x-1.0.0.json --key key.key --new --fetch-with 'cp feed2/"$MOULT_NAME" "$MOULT_FILE"' --upload-with 'printf %s "$OTHER" > ../other'
            od -An -tx1 ../other
            """)
        #expect(ended.status == 0 && ended.output.hasSuffix(" e9\n"), "\(ended)")
    }

    @Test func `files whose names are not UTF-8 next to others are left alone`() throws {
        let ended = try run(
            """
            cd good; touch "$BAD" ".$BAD.moult" "$BAD.json"; mkdir -p feed/"$BAD"; touch feed/"$BAD.json"
            moult replace -q app.db new.db && moult publish -q feed rel/x-1.0.0.json --key key.key && moult publish feed --check
            """)
        #expect(ended.status == 0, "\(ended)")
        #expect(!ended.output.contains("\u{FFFD}") && !ended.errors.contains("\u{FFFD}"), "\(ended)")
        #expect(
            try scratch.must(
                Self.names + "cd good; ls \"$BAD\" \".$BAD.moult\" \"$BAD.json\" feed/\"$BAD.json\" | wc -l") == "4\n")
    }

    @Test(.enabled(if: geteuid() == 0, "only root may mount"))
    func `a trusted store whose name is not UTF-8 does not make another one trusted`() throws {
        let ended = try run(
            """
            chmod 755 .; mkdir -p etc/moult bin; cp /etc/passwd /etc/group /etc/ld.so.cache etc; cp $(command -v moult) bin
            chown -R 65534 "$WRONG"; printf '%s\\n' "$PWD/$BAD" > etc/moult/trusted-stores
            unshare -m sh -c 'mount --bind etc /etc; bin/moult status -q --store "$0"' "$PWD/$WRONG"
            """)
        #expect(ended.status == 3 && ended.errors.contains("root does not use the store"), "\(ended)")
    }

    @Test func `bytes that are not UTF-8 are shown in hexadecimal`() {
        #expect(OutsideText.shown(Array("caf".utf8) + [0xE9]) == "caf\\xE9")
        #expect(OutsideText.shown(Array("é".utf8) + [0xC3, 0x28, 0x0A]) == "é\\xC3(\\n")
        #expect(OutsideText.shown([0xF0, 0x9F, 0x98] + Array("x".utf8)) == "\\xF0\\x9F\\x98x")
        #expect(OutsideText.valid([0x66, 0xE9]) == nil)
    }
}
