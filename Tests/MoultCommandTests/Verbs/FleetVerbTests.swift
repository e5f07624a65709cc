import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult fleet` finds the stores that do not update among many, and says why.
@Suite struct FleetVerbTests {
    let world: VerbWorld

    init() throws {
        world = try VerbWorld()
        try world.must(
            """
            moult keygen -q --no-password k; moult publish -q public rel/test-1.0.0.json --key k.key; mkdir fleet
            moult init -q --product org.example.test --key k.pub --feed "$PWD/public/feed.json"
            moult apply -q; moult status --json > fleet/sound.json
            """)
    }

    private func collect(_ machine: String, after script: String) throws {
        try world.must(
            """
            cp -a store \(machine); \(script.replacing("STORE", with: machine))
            moult status --json --store \(machine) > fleet/\(machine).json || true
            """)
    }

    @Test func `each broken store is found with its cause, and the sound ones are only counted`() throws {
        try world.must("mv public gone")
        for machine in ["down1", "down2"] { try collect(machine, after: "! moult apply -q --store STORE") }
        try world.must("mv gone public")
        try collect("lost", after: "rm STORE/user.db")
        try collect("garbage", after: "echo '{' > STORE/moult.json")
        try world.must("echo 'ssh: no route to host' > fleet/silent.json")
        let ended = try world.run("moult fleet fleet")
        #expect(ended.status == 2, "\(ended)")
        let json = try #require(try world.json("moult fleet --json fleet").first)
        var found: [String: [String]] = [:]
        for group in json["groups"]?.array ?? [] {
            let machines = (group["members"]?.array ?? []).compactMap { $0["machine"]?.string }
            found[group["name"]?.string ?? ""] = machines.sorted()
        }
        #expect(found["E272"] == ["down1", "down2"], "\(found)")
        #expect(found["missing"]?.contains("lost") == true, "\(found)")
        #expect(found["E110"] == ["garbage"], "\(found)")
        #expect(found["unreadable"] == ["silent"], "\(found)")
        #expect(json["stores"]?.integer == 6)
        #expect(!ended.out.contains("sound  "), "\(ended.out)")
        #expect(ended.out.contains("no feed at \(world.scratch.path("public/feed.json"))"), "\(ended.out)")
    }

    @Test func `a fleet without a warning is sound`() throws {
        let ended = try world.run("moult fleet fleet/sound.json")
        #expect(ended == (0, "1 store: all without a warning\n", ""))
    }

    @Test func `a store with an older feed than the others is found`() throws {
        try collect("behind", after: ":")
        try world.must("moult publish -q public rel/test-2.0.0.json --key k.key; moult apply -q")
        try world.must("moult status --json > fleet/sound.json")
        let ended = try world.run("moult fleet fleet")
        #expect(ended.status == 1 && ended.out.contains("olderFeed on 1 store, warning"), "\(ended)")
    }

    @Test func `the page has the same stores, and text from machines is escaped`() throws {
        try world.must(
            """
            echo '{"error":{"code":"E100","what":"<script>alert(1)</script>"}}' > fleet/evil.json
            moult fleet fleet --html fleet.html -q || true
            """)
        let page = try world.must("cat fleet.html")
        #expect(page.contains("&lt;script&gt;") && !page.contains("<script>"))
        #expect(page.contains("<td>evil</td>"))
    }

    @Test func `an empty file counts as a store, and a directory in the directory is not read`() throws {
        try world.must("mkdir fleet/old; : > fleet/silent.json")
        let ended = try world.run("moult fleet fleet")
        #expect(ended.status == 2 && ended.out.hasSuffix("\n2 stores: 1 without a warning\n"), "\(ended)")
        #expect(ended.out.contains("silent  fleet/silent.json"), "\(ended)")
    }

    @Test func `a file that does not exist is an error`() throws {
        let ended = try world.run("moult fleet nowhere")
        #expect(ended.status == 64 && ended.err.contains("no file nowhere"), "\(ended)")
    }
}
