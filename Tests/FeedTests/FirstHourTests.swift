import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Mistakes and repetitions in the first hour with a feed.
@Suite struct FirstHourTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `packing the same draft again makes the same release`() throws {
        try bench.must("sqlite3 birds.db 'CREATE TABLE bird(name)'")
        try bench.must("moult pack -q birds.db --product org.example.birds --version 1.0.0; cp -r releases first")
        try bench.must("moult pack -q birds.db --version 1.0.0 && diff -r first releases")
        try bench.must("sqlite3 birds.db \"INSERT INTO bird VALUES('owl')\"; moult pack -q birds.db --version 1.1.0")
        try bench.must("cp -r releases second; moult pack -q birds.db --version 1.1.0 && diff -r second releases")
        let changed = try bench.refusal("moult pack birds.db --version 1.0.0", status: 3)
        #expect(changed.contains("1.0.0.json already exists with different content"), "\(changed)")
    }

    /// In a draft, `${NAME}` stands for a value.
    @Test func `paths and conditions with a dollar sign are packed literally`() throws {
        try bench.must(
            #"""
            mkdir 'd${y}' 'd$${y}'; sqlite3 'd${y}/a.db' "CREATE TABLE t(x); INSERT INTO t VALUES('one')"
            sqlite3 'd$${y}/a.db' "CREATE TABLE t(x); INSERT INTO t VALUES('two')"
            cat > draft.json <<'END'
            {"manifest": 1, "product": "o.x", "version": "1.0.0", "databases": {"a": {"kind": "shared", "source": "d$${y}/a.db",
             "preserve": [{"table": "t", "where": "x = '$${z}'"}]}}}
            END
            moult pack -q draft.json && moult pack -q 'd$${y}/a.db'
            moult apply -q --create releases/x-1.1.0.json
            """#)
        #expect(try bench.must("sqlite3 store/a.db 'SELECT x FROM t'") == "two\n")
        #expect(try bench.must("cat releases/x-1.1.0.json").contains("x = '${z}'"))
    }

    @Test func `init can be repeated after the directory of the feed was created`() throws {
        try bench.key("a")
        let line = "moult init -q store --product org.example.test --key a.pub --feed public"
        try bench.must(line)
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult publish public rel/test-1.0.0.json -q -k a.key")
        try bench.must("\(line) && moult apply -q")
        #expect(try bench.refusal("\(line)2", status: 3).contains("different value for \"feed\""))
    }

    /// Anyone who can write to the directory of the feed can put a release there.
    @Test func `publish makes no trial installation over a release that the feed does not list`() throws {
        try bench.key("a")
        // No release could be installed over the planted one, whose `user_version` is higher.
        try bench.must(
            #"""
            release() {
              rm -f food.db; sqlite3 food.db "CREATE TABLE food(x); PRAGMA user_version = $4"
              echo '{"manifest": 1, "product": "org.example.test", "version": "'$2'", "sequence": '$3',
                "databases": {"food": {"kind": "user", "source": "food.db"}}}' > draft.json
              moult pack -q draft.json -o $1
            }
            release rel 1.0.0 1 1; moult publish public rel/test-1.0.0.json -q -k a.key
            release planted 1.0.1 2 7; cp planted/* public
            release rel 1.1.0 3 1; moult publish public rel/test-1.1.0.json -q -k a.key
            """#)
        #expect(try bench.must("cat public/feed.json").contains("test-1.1.0.json"))
    }

    @Test func `a withdrawn release is not exported`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must("moult publish public -q --withdraw 2.0.0 --reason 'bad names' -k a.key")
        let refused = try bench.refusal("moult export 2.0.0 stick", status: 3)
        #expect(refused.contains("release 2.0.0 was withdrawn: bad names"), "\(refused)")
        #expect(try Files.facts(bench.path("stick")) == nil)
        try bench.must("moult export -q 1.0.0 stick")
    }

    @Test func `the advised command for --create with --feed keeps the store and its key`() throws {
        try bench.follow(["1.0.0"])
        let ended = try bench.refusal("moult apply --create -s other --feed public/feed.json --key a.pub", status: 64)
        let advice = try #require(
            ended.split(separator: "\n").first?.split(separator: "created from: ").last, "\(ended)")
        try bench.must("\(advice) -q")
        #expect(try bench.must("moult status -s other").contains("1.0.0"))
        #expect(try bench.must("cat other/moult.json").contains("keys"))
    }

    @Test func `the error for a user who may not change the store says who may`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q; chmod 755 .")
        for verb in ["apply", "export 1.0.0 /tmp/never"] {
            let ended = try bench.run("setpriv --reuid 65534 --clear-groups moult \(verb)")
            #expect(ended.status == 1 && ended.errors.contains("this user cannot change the store"), "\(ended)")
            #expect(!ended.errors.contains("chown"), "\(ended)")
        }
    }

    @Test func `a feed that this user may not read is not given away`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("chmod 600 public/feed.json; chmod 755 .; chown -R 65534 store")
        let ended = try bench.run("setpriv --reuid 65534 --clear-groups moult apply")
        #expect(ended.errors.contains("or ask that user for the permission to read it."), "\(ended)")
        #expect(!ended.errors.contains("chown"), "\(ended)")
    }
}
