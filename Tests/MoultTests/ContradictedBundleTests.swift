import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Bundles that differ from their manifests.
@Suite struct ContradictedBundleTests {
    let scratch: Scratch
    let store: Store
    let manifest: String
    let bundle: String

    init() throws {
        scratch = try Scratch()
        store = Store(at: scratch.path("store"))
        let maker = try ReleaseMaker(in: scratch.path("releases"))
        let rows = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, note TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
            INSERT INTO food SELECT i, hex(randomblob(40)) FROM n;
            """
        manifest = try maker.make(
            "1.0.0", sequence: 1, [.reference("food", rows), .user("user", "CREATE TABLE note(text);")])
        bundle = scratch.path("releases/test-1.0.0.tar.zst")
    }

    /// Changes the manifest with Python code, in which `m` is the manifest.
    private func edit(_ change: String) throws {
        try Shell.must([
            "python3", "-c",
            "import json,sys; m=json.load(open(sys.argv[1])); \(change); json.dump(m,open(sys.argv[1],'w'))", manifest,
        ])
    }

    @Test func `the installed files equal the packed files`() throws {
        try store.updateBlocking(to: manifest)
        for name in ["food", "user"] {
            let packed = try Files.read(scratch.path("releases/1.0.0.work/\(name).db"), limit: 1 << 30)
            #expect(try Files.read(scratch.path("store/\(name).db"), limit: 1 << 30) == packed)
        }
    }

    /// Each error is detected, and nothing is installed.
    @Test(arguments: [
        (
            "the digest of a member", "m['databases']['user']['sha256']='0'*64",
            "its SHA-256 is "
        ),
        ("a size", "m['databases']['food']['size']+=1", "its member \"food.db\" has"),
        (
            "a member that is missing", "m['databases']['more']=dict(m['databases']['food'],member='more.db')",
            "it does not contain the declared \"more.db\""
        ),
        (
            "a member that is not declared", "del m['databases']['user']",
            "it contains \"user.db\", which is not declared"
        ),
    ])
    func `a manifest that differs from its bundle is refused`(name: String, change: String, why: String) throws {
        try edit(change)
        let error = try #require(throws: MoultError.self, "\(name)") { try store.updateBlocking(to: manifest) }
        #expect(error.why?.hasPrefix(why) == true, "\(name): \(error)")
        #expect(try Files.facts(scratch.path("store/food.db")) == nil)
        #expect(try Files.facts(scratch.path("store/current")) == nil)
    }

    /// A byte is wrong in a header or in content.
    @Test func `a bundle with a changed byte is refused or gives the packed files`() throws {
        let size = try #require(try Files.facts(bundle)?.size)
        for place in stride(from: 0, to: size, by: max(1, size / 40)) {
            try Shell.must([
                "python3", "-c",
                "import sys; f=open(sys.argv[1],'r+b'); f.seek(\(place)); b=f.read(1); f.seek(\(place)); f.write(bytes([b[0]^1]))",
                bundle,
            ])
            // A bit that zstd ignores is accepted, because the output is verified.
            do {
                try store.updateBlocking(to: manifest)
                let packed = try Files.read(scratch.path("releases/1.0.0.work/food.db"), limit: 1 << 30)
                #expect(try Files.read(scratch.path("store/food.db"), limit: 1 << 30) == packed)
                try Files.removeTree(scratch.path("store"))
            } catch is MoultError { #expect(try Files.facts(scratch.path("store/food.db")) == nil) }
            try Shell.must([
                "python3", "-c",
                "import sys; f=open(sys.argv[1],'r+b'); f.seek(\(place)); b=f.read(1); f.seek(\(place)); f.write(bytes([b[0]^1]))",
                bundle,
            ])
        }
        try store.updateBlocking(to: manifest)
    }
}
