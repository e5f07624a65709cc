import MoultBasics
import MoultFiles
import MoultTrust
import TestSupport
import Testing

/// Bundles that other programs have made.
@Suite(.tags(.thorough)) struct ForeignBundleTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    struct Way: CustomTestStringConvertible {
        let testDescription: String
        var members = ["food.db"]
        let pack: String
    }

    /// Each command creates `bundle.*` from the named files, which are in the current directory.
    static let ways = [
        Way(
            testDescription: "tar with directories", members: ["data/food.db", "data/more/word.db"],
            pack: "tar -cf bundle.tar data"),
        Way(
            testDescription: "tar with directories, from here", members: ["data/food.db", "data/more/word.db"],
            pack: "tar -czf bundle.tar.gz ./data"),
        Way(
            testDescription: "zip with directories", members: ["data/food.db"],
            pack: "zip -qr bundle.zip data -x '*word*' -x '*/more/'"),
        Way(testDescription: "deep", members: ["a/b/c/food.db"], pack: "tar -cJf bundle.tar.xz a"),
        Way(
            testDescription: "long names",
            members: ["\(String(repeating: "d", count: 120))/\(String(repeating: "f", count: 120)).db"],
            pack: "tar --format=gnu -cf bundle.tar ddd*"),
        Way(
            testDescription: "long names in pax headers",
            members: ["\(String(repeating: "d", count: 120))/\(String(repeating: "f", count: 120)).db"],
            pack: "bsdtar --format=pax -cf bundle.tar ddd*"),
        Way(
            testDescription: "gzip, padded",
            pack: "tar -czf bundle.tar.gz food.db && head -c 5000 /dev/zero >> bundle.tar.gz"),
        Way(testDescription: "gzip of bsdtar", pack: "bsdtar -czf bundle.tar.gz food.db"),
        Way(
            testDescription: "zip with a comment",
            pack: "zip -q bundle.zip food.db && echo 'made by hand' | zip -qz bundle.zip"),
        Way(
            testDescription: "zip behind a program",
            pack: "zip -q x.zip food.db && (printf '#!/bin/sh\\nexit\\n'; cat x.zip) > bundle.zip && zip -qA bundle.zip"
        ),
        Way(testDescription: "bzip2", pack: "bsdtar -cjf bundle.tar.bz2 food.db"),
        Way(
            testDescription: "7z with directories", members: ["data/food.db", "data/more/word.db"],
            pack: "7z a -bd bundle.7z data >/dev/null"),
        Way(testDescription: "zip with bzip2", pack: "zip -q -Z bzip2 bundle.zip food.db"),
        Way(testDescription: "stored", pack: "zip -q0 bundle.zip food.db"),
    ]

    @Test(arguments: ways) func `a release with a foreign bundle is installed`(_ way: Way) throws {
        var databases: [JSON.Member] = []
        for member in way.members {
            let path = scratch.path(member)
            try scratch.must(
                "mkdir -p \(Files.directory(of: path)) && sqlite3 \(path) \"CREATE TABLE t(x); INSERT INTO t VALUES('\(member)')\""
            )
        }
        try scratch.must(way.pack)
        let bundle = try #require(try Files.list(scratch.path).first { $0.hasPrefix("bundle.") })
        for (number, member) in way.members.enumerated() {
            try databases.append(
                .init(
                    "db\(number)",
                    .object([.init("kind", "reference"), .init("member", .string(member))] + facts(member))))
        }
        let manifest: JSON = .object([
            .init("manifest", 1), .init("product", "org.example.app"), .init("version", "1.0.0"), .init("sequence", 1),
            .init("bundle", .object([.init("file", .string(bundle))] + (try facts(bundle)))),
            .init("databases", .object(databases)),
        ])
        try scratch.write("m.json", Array(manifest.pretty.utf8))
        let inspected: Shell.Ended = try scratch.run("moult inspect m.json")
        #expect(inspected.status == 0, "\(inspected)")
        try scratch.must("moult init -q store --product org.example.app && moult apply -q m.json -s store")
        for member in way.members {
            let read = try scratch.must("sqlite3 store/\(Files.name(of: member)) 'SELECT x FROM t'")
            #expect(read == "\(member)\n")
        }
        try scratch.must("moult verify --deep -s store")
    }

    private func facts(_ file: String) throws -> [JSON.Member] {
        let path = scratch.path(file)
        return [
            .init("size", .size(try Files.facts(path)?.size ?? 0)),
            .init("sha256", .string(try SHA256.digest(ofFileAt: path).hex)),
        ]
    }

    @Test(arguments: [
        ("../food.db", "member"), ("/food.db", "member"), ("a/../food.db", "member"), ("a//food.db", "member"),
        ("a/.food.db", "member"), ("a/seal.json", "member"), ("a/food.db-wal", "member"), ("a/b\\food.db", "member"),
    ])
    func `a member path that is not plain is refused`(_ member: String, _ place: String) throws {
        let manifest: JSON = [
            "manifest": 1, "product": "org.example.app", "version": "1.0.0", "sequence": 1,
            "bundle": ["file": "b.tar", "size": 1, "sha256": .string(String(repeating: "0", count: 64))],
            "databases": [
                "food": [
                    "kind": "reference", "member": .string(member), "size": 1,
                    "sha256": .string(String(repeating: "0", count: 64)),
                ]
            ],
        ]
        try scratch.write("m.json", Array(manifest.pretty.utf8))
        try scratch.must("moult init -q store --product org.example.app")
        let ended: Shell.Ended = try scratch.run("moult apply m.json -s store")
        #expect(ended.status == 1 && ended.errors.contains("databases.food.\(place)"), "\(ended)")
    }

    @Test func `two members with the same file name must have different paths in the store`() throws {
        let zeros: JSON = .string(String(repeating: "0", count: 64))
        func database(_ member: String) -> JSON {
            ["kind": "reference", "member": .string(member), "size": 1, "sha256": zeros]
        }
        let manifest: JSON = [
            "manifest": 1, "product": "org.example.app", "version": "1.0.0", "sequence": 1,
            "bundle": ["file": "b.tar", "size": 1, "sha256": zeros],
            "databases": ["one": database("a/food.db"), "two": database("b/Food.db")],
        ]
        try scratch.write("m.json", Array(manifest.pretty.utf8))
        try scratch.must("moult init -q store --product org.example.app")
        let ended: Shell.Ended = try scratch.run("moult apply m.json -s store")
        #expect(
            ended.status == 1 && ended.errors.contains("differs from databases.one.member only in case"), "\(ended)")
    }
}
