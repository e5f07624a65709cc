import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `apply --plan` makes the same checks as `apply`: a plan file is not signed, and keys may have been revoked since.
@Suite struct SavedPlanChecksTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0"])
        #expect(try bench.run("moult plan -o p").status == 2)
    }

    @Test func `a plan of a release whose feed is signed by a revoked key is refused`() throws {
        try bench.key("b")
        try bench.must(
            "cp -rp public before; moult publish public -q -k a.key -k b.key --trust b.pub")
        try bench.must("moult check -q", status: 2)
        // The key list is known to the store, and the old feed is still signed by the old key only.
        try bench.must("rm -r public; mv before public")
        #expect(try bench.run("moult apply --plan p").status == 3)
        #expect(try bench.run("sqlite3 'file:store/food.db?immutable=1' 'SELECT 1 FROM food'").status != 0)
    }

    @Test func `a plan does not install a release that replaced the planned one`() throws {
        try bench.must("mv rel rel1")
        try bench.release("1.0.0", sequence: 1, rows: 5)
        try bench.must("moult publish --allow-unsigned other rel/test-1.0.0.json -q; rm public/*; cp other/* public")
        let ended = try bench.run("moult apply --plan p")
        #expect(ended.status == 4 && ended.errors.contains("is out of date"), "\(ended)")
    }

    @Test func `a plan of a withdrawn release is out of date`() throws {
        try bench.must("moult publish public --withdraw 1.0.0 --reason bad -q -k a.key")
        let ended = try bench.run("moult apply --plan p")
        #expect(ended.status == 4 && ended.errors.contains("no longer offers the planned release 1.0.0"), "\(ended)")
        #expect(ended.errors.contains("moult plan --output FILE"))
    }
}
