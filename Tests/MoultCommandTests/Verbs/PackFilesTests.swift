import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult pack` with database files, without a draft.
@Suite struct PackFilesTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try make("food.db", "one")
        try make("my_app.sqlite", "mine")
    }

    private func make(_ name: String, _ word: String) throws {
        try scratch.must("rm -f \(name); sqlite3 \(name) \"CREATE TABLE t(x); INSERT INTO t VALUES('\(word)')\"")
    }

    private func refused(_ line: String, _ status: Int32, _ why: String) throws {
        let before = try Tree(scratch.path, times: false)
        let ended: Shell.Ended = try scratch.run(line)
        #expect(ended.status == status && ended.errors.contains(why), "\(line): \(ended)")
        #expect(try Tree(scratch.path, times: false) == before, "\(line)")
    }

    private func manifest(_ name: String) throws -> JSON {
        try JSON(parsing: scratch.read("releases/\(name).json"), source: name)
    }

    /// Packs the first release, in which the app's database is shared: the rows of `t` survive updates.
    private func packShared() throws {
        let pack = "moult pack food.db my_app.sqlite --product org.example.food --kind my_app=shared"
        try scratch.must("\(pack) --write-draft my.json || [ $? = 3 ]")
        try scratch.must(
            #"sed -i 's/"kind": "shared",/&\n"preserve": [{ "table": "t" }],/' my.json && moult pack my.json"#)
    }

    @Test func `a shared database without a draft is refused with the line to add to the draft`() throws {
        try scratch.must("sqlite3 my_app.sqlite 'CREATE TABLE note(x)'")
        let pack = "moult pack my_app.sqlite --product org.example.food --kind my_app=shared"
        try refused(pack, 3, #""preserve": [{ "table": "note" }, { "table": "t" }],"#)
        let ended: Shell.Ended = try scratch.run(pack)
        let lines = ended.errors.split(separator: "\n")
        let advice = try #require(lines.first { $0.contains("moult pack my_app.sqlite") })
        let command = try #require(advice.firstRange(of: "moult pack my_app.sqlite").map { advice[$0.lowerBound...] })
        let saved: Shell.Ended = try scratch.run(String(command))
        #expect(saved.status == 3 && saved.errors.contains("moult pack my_app.draft.json"), "\(saved)")
        try scratch.must(
            #"sed -i 's/"kind": "shared",/&\n"preserve": [],/' my_app.draft.json && moult pack my_app.draft.json"#)
        // The next release takes the decision from this one.
        try scratch.must("moult pack my_app.sqlite && moult apply -q --create -s store releases/food-1.1.0.json")
        // A release that was published before the field was required does not count as a decision.
        try scratch.must(#"sed -i 's/"preserve": \[\]/"unpreserved": "refuse"/' releases/*.json"#)
        try refused("moult pack my_app.sqlite", 3, #""preserve": [{ "table": "note" }, { "table": "t" }],"#)
    }

    @Test func `sequences increase automatically, and a store follows the releases`() throws {
        try packShared()
        try scratch.must("moult apply -q --create -s store releases/food-1.0.0.json")
        #expect(try scratch.must("sqlite3 store/my_app.sqlite 'SELECT x FROM t'") == "mine\n")
        try make("food.db", "two")
        try scratch.must("moult pack food.db my_app.sqlite && moult apply -q -s store releases/food-1.1.0.json")
        #expect(try scratch.must("sqlite3 store/food.db 'SELECT x FROM t'") == "two\n")
        let second = try manifest("food-1.1.0")
        #expect(second["sequence"] == 2 && second["databases"]?["my_app"]?["kind"] == "shared")
        try make("food.db", "three")
        try scratch.must("moult pack food.db my_app.sqlite --version 2.0.0-rc.1")
        #expect(try manifest("food-2.0.0-rc.1")["sequence"] == 3)
        #expect(
            try scratch.must("moult pack --json -o other food.db --product org.example.food").contains("\"sequence\":1")
        )
    }

    @Test func `pack does not replace the files of another release, even with --name`() throws {
        try scratch.write(
            "d.json",
            """
            {"manifest": 1, "product": "org.example.food", "version": "1.0.0", "bundle": {"file": "data.tar.zst"},
             "databases": {"food": {"kind": "reference"}}}
            """)
        try scratch.must("moult pack -q d.json")
        try make("food.db", "two")
        try scratch.must("sed -i s/1.0.0/1.1.0/ d.json")
        for option in ["", "--name latest"] {
            try refused("moult pack d.json \(option)", 3, "it belongs to the release releases/food-1.0.0.json")
        }
    }

    @Test func `pack and diff report a changed kind and tables that are no longer preserved`() throws {
        func draft(_ version: String, _ database: String) throws {
            try scratch.must("rm -f d.json")
            try scratch.write(
                "d.json",
                """
                {"manifest": 1, "product": "org.example.food", "version": "\(version)",
                 "databases": {"food": \(database)}}
                """)
        }
        try draft("1.0.0", "{\"kind\": \"user\"}")
        try scratch.must("moult pack -q d.json")
        try draft("1.1.0", "{\"kind\": \"shared\", \"preserve\": [{\"table\": \"t\"}]}")
        let text: String = try scratch.must("moult pack d.json")
        #expect(text.contains("its kind changes from user to shared"), "\(text)")
        try draft("1.2.0", "{\"kind\": \"shared\", \"preserve\": []}")
        try scratch.must("moult pack -q d.json")
        let diff: Shell.Ended = try scratch.run("moult diff releases/food-1.1.0.json releases/food-1.2.0.json")
        #expect(diff.output.contains("rows of t are no longer preserved"), "\(diff)")
    }

    @Test func `pack reuses the settings of the previous release`() throws {
        try scratch.write(
            "draft.json",
            """
            { "manifest": 1, "product": "org.example.food", "version": "3.4.5", "sequence": 40,
              "databases": { "food": { "kind": "shared", "source": "food.db", "path": "data.sqlite", "verify": "full",
                "preserve": [{ "table": "t", "where": "x = 'mine'" }] } },
              "checks": [{ "on": "food", "sql": "SELECT count(*) FROM t", "expect": ">= 1" }],
              "requires": { "app": ">=2" } }
            """)
        try scratch.must("moult pack draft.json")
        try make("food.db", "two")
        try scratch.must("moult pack food.db --write-draft next.json")
        let (old, new) = (try manifest("food-3.4.5"), try manifest("food-3.5.0"))
        #expect(new["sequence"] == 41)
        for name in ["checks", "requires", "product"] { #expect(new[name] == old[name]) }
        for name in ["kind", "path", "verify", "preserve"] {
            #expect(new["databases"]?["food"]?[name] == old["databases"]?["food"]?[name])
        }
        // Packing the draft gives the same release.
        try scratch.must("moult pack next.json -o again && cmp again/food-3.5.0.json releases/food-3.5.0.json")
        // The checks of the previous release also apply to the new release.
        try scratch.must("sqlite3 food.db 'DELETE FROM t'")
        try refused("moult pack food.db", 3, "fails a golden query")
    }

    @Test func `a draft from --write-draft explains each of its fields, and says how to pack it`() throws {
        try packShared()
        let lines = try scratch.must("cat my.json").split(separator: "\n").map { $0.drop { $0 == " " } }
        #expect(lines.first == "// The draft of a release. Pack it with: moult pack my.json")
        for field in ["product", "version", "databases", "source", "path"] {
            let at = try #require(lines.firstIndex { $0.hasPrefix("\"\(field)\":") })
            #expect(lines[at - 1].hasPrefix("// "), "\(field)")
        }
        for (kind, word) in [("reference", "only releases change it"), ("shared", "the app writes to it, too")] {
            let at = try #require(lines.firstIndex { $0.hasPrefix("\"kind\": \"\(kind)\"") })
            #expect(lines[at - 1].contains(word))
        }
        // Only the choices of the publisher are taken from the previous release.
        try make("food.db", "two")
        try scratch.must("moult pack food.db my_app.sqlite --write-draft next.json")
        let text = try scratch.must("cat next.json")
        for field in ["proved", "sha256", "\"member\": \"food.db\""] { #expect(!text.contains(field), "\(text)") }
        try scratch.must("moult pack next.json -o again && cmp again/food-1.1.0.json releases/food-1.1.0.json")
    }
}
