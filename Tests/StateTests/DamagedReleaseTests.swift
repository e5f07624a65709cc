import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Damage in a store is repaired by the command that is advised for it.
@Suite(.tags(.thorough)) struct DamagedReleaseTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try scratch.must(
            #"""
            sqlite3 words.db "CREATE TABLE word(w); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO word SELECT hex(zeroblob(50)) FROM n"
            sqlite3 notes.db "CREATE TABLE note(t); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO note SELECT hex(zeroblob(50)) FROM n"
            for n in 1 2; do
              cat > draft.json <<END
            {"manifest": 1, "product": "org.example.words", "version": "$n.0.0", "sequence": $n, "budget": {"words.word": {"shrink": "10%"}},
             "databases": {"words": {"kind": "reference", "source": "words.db"}, "notes": {"kind": "user", "source": "notes.db"}}}
            END
              moult pack -q draft.json && sqlite3 words.db "INSERT INTO word VALUES('more')"
            done
            moult apply -q --create releases/words-1.0.0.json
            """#)
    }

    private func damage(_ file: String, _ line: String) throws {
        try scratch.must("file=$(readlink -f \(file)); chmod u+w $(dirname $file) $file; \(line)")
    }

    private static let damages = [
        "truncate -s 5000 $file", "dd if=/dev/urandom of=$file bs=4096 count=1 conv=notrunc 2>/dev/null",
        "dd if=/dev/urandom of=$file bs=4096 seek=1 count=2 conv=notrunc 2>/dev/null", ": > $file", "rm -f $file",
        "head -c 9000 /dev/zero > $file",
    ]

    /// A budget compares the new content with the damaged one.
    @Test(arguments: damages, ["1.0.0", "2.0.0"])
    func `an update repairs a damaged read-only database of a release with a budget`(line: String, version: String)
        throws
    {
        try damage("store/words.db", line)
        #expect(try scratch.run("moult verify").status == 1)
        #expect(try scratch.run("moult plan releases/words-\(version).json").status == 2)
        try scratch.must("moult apply -q releases/words-\(version).json && moult verify -q --deep")
    }

    @Test(arguments: [
        ": > $file", "echo '{' > $file", "echo '{\"links\": 1, \"files\": 7}' > $file",
        "head -c 99 /dev/urandom > $file",
    ])
    func `a damaged record of linked files changes nothing`(line: String) throws {
        try scratch.must("file=store/.moult/links.json; \(line)")
        for verb in [
            "status -q", "verify -q", "status --deep -q", "apply -q releases/words-2.0.0.json", "rollback -q",
            "recover -q",
        ] {
            try scratch.must("moult \(verb)")
        }
    }

    @Test func `verify names the command for damaged pages of a user database`() throws {
        try damage("store/notes.db", "dd if=/dev/urandom of=$file bs=4096 seek=1 count=1 conv=notrunc 2>/dev/null")
        let ended: Shell.Ended = try scratch.run("moult verify")
        #expect(ended.status == 1 && ended.output.contains("moult reset notes --set-user-data-aside"), "\(ended)")
        try scratch.must("moult reset -q notes --set-user-data-aside && moult verify -q")
    }

    @Test(arguments: ["mkdir $file", "mkdir $file && touch $file/x", "ln -s /nonexistent $file"])
    func `status --deep names what is in place of a record`(line: String) throws {
        for name in ["links", "checks"] {
            try scratch.must("file=store/.moult/\(name).json; rm -rf $file; \(line)")
            let ended: Shell.Ended = try scratch.run("moult status --deep")
            // Long findings are wrapped.
            let text = ended.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(ended.status == 1 && text.contains("\(name).json: it is not a regular file"), "\(ended)")
            let fixes = ended.output.split(separator: "\n").filter {
                $0.contains("fix:") && $0.contains("\(name).json")
            }
            let fix = try #require(fixes.first, "\(ended)")
            try scratch.must(
                "\(fix.split(separator: "fix:")[1]) && moult status --deep -q && moult recover -q && moult verify -q")
        }
    }

    @Test(arguments: ["quarantine", "leases", "feed", "downloads"])
    func `status --deep names a file in place of a directory of moult`(name: String) throws {
        try scratch.must("rm -rf store/.moult/\(name) && touch store/.moult/\(name)")
        let ended: Shell.Ended = try scratch.run("moult status --deep")
        #expect(ended.status == 1 && ended.output.contains("it is not a directory"), "\(ended)")
        let fix = try #require(ended.output.split(separator: "\n").first { $0.contains("fix:") }, "\(ended)")
        try scratch.must("\(fix.split(separator: "fix:")[1]) && moult status --deep -q && moult recover -q")
    }

    /// The directory is deeper than any path can be, so nothing can list all of it by path.
    @Test func `a very deep directory in place of a cache does not stop later commands`() throws {
        try scratch.must(
            #"""
            for n in 1 2; do
              rm -f cache.db; sqlite3 cache.db "CREATE TABLE t$n(x)"
              echo '{"manifest": 1, "product": "org.example.deep", "version": "'$n'.0.0", "sequence": '$n',
                "databases": {"cache": {"kind": "cache", "source": "cache.db"}}}' > draft.json
              moult pack -q draft.json -o deep
            done
            moult apply -q --create deep/deep-1.0.0.json --store s; rm s/cache.db; mkdir s/cache.db
            python3 -c 'import os, sys; os.chdir("s/cache.db"); [(os.mkdir("d"), os.chdir("d")) for _ in range(2100)]'
            moult apply -q deep/deep-2.0.0.json --store s
            for verb in status recover 'rollback -q' 'verify -q' clean quarantine; do moult $verb --store s; done
            rm -r s
            """#)
    }

    @Test func `status --deep names a database that no user may write to`() throws {
        try scratch.must("chmod 444 store/notes.db")
        let ended: Shell.Ended = try scratch.run("moult status --deep")
        #expect(ended.status == 1 && ended.output.contains("chmod u+w "), "\(ended)")
    }
}
