import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult apply --create`, and repeated `moult init`.
@Suite struct FirstInstallTests {
    let scratch: Scratch
    let first: String
    let second: String

    init() throws {
        scratch = try Scratch()
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        first = try maker.make("1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(x)")])
        second = try maker.make("2.0.0", sequence: 2, [.reference("food", "CREATE TABLE food(x, y)")])
        try scratch.must("moult keygen -q --no-password k && moult keygen -q --no-password other")
    }

    private func refused(_ line: String, _ status: Int32, _ why: String) throws {
        let before = try Tree(scratch.path, times: false)
        let ended: Shell.Ended = try scratch.run(line)
        #expect(ended.status == status && ended.errors.contains(why), "\(line): \(ended)")
        #expect(!ended.errors.contains("secret"))
        #expect(try Tree(scratch.path, times: false) == before, "\(line)")
    }

    @Test func `apply --create installs the first release and the next one`() throws {
        for (release, version) in [(first, "1.0.0"), (first, "1.0.0"), (second, "2.0.0")] {
            try scratch.must("moult apply -q --create -s new/deep/store \(release)")
            #expect(try scratch.must("moult status -s new/deep/store").hasPrefix("org.example.test \(version)\n"))
        }
        try scratch.must("mkdir here && cd here && moult apply -q --create \(first) && test -f store/moult.json")
        try scratch.must("cd here && moult apply -q --create \(second) && moult status | grep -q 2.0.0")
        try scratch.must("MOULT_STORE=named moult apply -q --create \(first) && test -f named/moult.json")
    }

    @Test func `two processes can create a store at the same time`() throws {
        for _ in 1...3 {
            for line in [
                "moult apply -q --create --wait 60 -s both \(first)", "moult init -q both --product org.example.test",
            ] {
                try scratch.must("rm -rf both; \(line) & \(line) && wait $!")
                #expect(try Files.facts(scratch.path("both/.moult.json.moult-new")) == nil)
            }
        }
    }

    @Test func `creating a store from a feed that offers no release fails and leaves no store`() throws {
        try scratch.must("moult publish --allow-unsigned -q public \(first) -k k.key")
        try scratch.must("moult publish -q public --withdraw 1.0.0 --reason bad -k k.key")
        try refused("moult apply -q --create -s new --key k.pub public", 3, "1.0.0: it was withdrawn: bad")
    }

    @Test func `without --create, a missing store is an error`() throws {
        try refused("moult apply -s store \(first)", 1, "moult apply --create \(first) --store store\n")
        try refused("mkdir -p e; cd e; moult apply \(first); s=$?; cd ..; rmdir e; exit $s", 1, "moult apply --create")
    }

    @Test func `a failed first release leaves no store and removes no other file`() throws {
        try scratch.must("mkdir full && echo mine > full/other.txt && echo x > damaged.json")
        try scratch.must(
            "mkdir cut && cp \(first) cut && head -c 100 \(first.dropLast(5)).tar.zst > cut/test-1.0.0.tar.zst")
        for store in ["full", "new/store"] {
            try scratch.must("mkdir -p new")
            try refused("moult apply -s \(store) --create cut/test-1.0.0.json", 1, "")
            try refused("moult apply -s \(store) --create damaged.json", 1, "")
            try refused("moult apply -s \(store) --create nothing.json", 1, "")
            try refused("moult apply -s \(store) --create --key k.pub \(first)", 3, "")
        }
    }

    @Test func `apply --create does not change the keys of an existing store`() throws {
        try scratch.must("moult sign -q \(first) \(second) --key k.key")
        try refused("moult apply -s store --create --key other.pub \(first)", 3, "")
        try scratch.must("moult apply -q -s store --create --key k.pub \(first)")
        try scratch.must("moult apply -q -s store --create --key k.pub \(first)")
        try refused("moult apply -s store --create --key other.pub \(second)", 3, "a different value for \"keys\"")
        // Without `--key`, the keys of the store are used.
        try scratch.must("moult apply -q -s store --create \(second)")
        try refused("moult apply -s store --key k.pub \(second)", 64, "--key needs --create")
        try refused("moult apply -s store --create", 64, "--create needs a release or a feed")
        try refused("moult apply -s store --create --plan p", 64, "--create needs a release or a feed")
    }

    @Test func `a feed can be specified by its file or by its directory`() throws {
        try scratch.must("moult publish --allow-unsigned -q public \(first)")
        for (store, feed) in [("a", "public"), ("b", "public/feed.json")] {
            try scratch.must(
                "moult init -q \(store) --product org.example.test --feed \(feed) && moult apply -q -s \(store)")
            #expect(try scratch.must("moult status -s \(store)").hasPrefix("org.example.test 1.0.0"))
        }
    }

    @Test(arguments: ["--key k.pub", "--key k.pub --key other.pub"])
    func `for a store without keys, the advice contains the line that adds them to the settings`(_ keys: String) throws
    {
        try scratch.must("moult init -q s --product org.example.test && moult sign -q \(first) --key k.key")
        let ended: Shell.Ended = try scratch.run("moult init s --product org.example.test \(keys)")
        let advice = "insert this line after the first { in that file: "
        #expect(ended.status == 3 && ended.errors.contains("/s/moult.json has no \"keys\"\n"), "\(ended)")
        let line = try #require(ended.errors.firstRange(of: advice).map { ended.errors[$0.upperBound...] }, "\(ended)")
        try scratch.must("cat > line <<'EOF'\n\(line)EOF\nsed -i '1r line' s/moult.json")
        try scratch.must("moult apply -q -s s --create \(keys) \(first)")
        try refused("moult apply -s s \(second)", 3, "is not signed")
    }
}
