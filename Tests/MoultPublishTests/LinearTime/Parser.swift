import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import MoultTrust
import StepKit
import TestSupport

@testable import MoultArchive
@testable import MoultPublish
@testable import MoultTransport

/// A reader of bytes that others have written.
struct Parser: Sendable {
    let name: String
    /// The maximum size of its input; for scripts and tables, which have no limit, a size that shows how the time grows.
    let limit: Int
    let shapes: [Shape]
    /// The shapes of JSON around its own members, if it reads a document. The reader of JSON alone is measured with the same shapes
    /// at its full limit, so these are smaller.
    var json: [Shape] = []
    let read: @Sendable ([UInt8]) throws -> Void

    /// Each shape of each parser, with the size of the largest input.
    static let cases: [(parser: Parser, shape: Shape, limit: Int)] = all.flatMap { parser in
        parser.shapes.map { (parser, $0, parser.limit) }
            + parser.json.map { (parser, $0, min(parser.limit, 1 << 20) / 8) }
    }

    static let all = [
        Parser(name: "JSON", limit: 1 << 20, shapes: Shape.json("")) { _ = try JSON(parsing: $0, source: "j") },
        Parser(name: "draft JSON", limit: 1 << 20, shapes: Shape.json("")) {
            _ = try JSON(parsing: $0, as: .draft, source: "j")
        },
        manifest(.sealed), manifest(.draft), feed, choice(installed: "0.0.1"), choice(installed: "0.0.0-a"), keyList,
        Parser(name: "signature", limit: 1 << 14, shapes: lines) { _ = try Signature(file: $0, named: "s") },
        Parser(name: "public key", limit: 1 << 14, shapes: lines) { _ = try PublicKey(file: $0, named: "k") },
        settings, versions, script, table, artifact, challenge,
        Parser(name: "tar", limit: 1 << 20, shapes: archives) { try archive($0, "a.tar") },
        Parser(name: "zip", limit: 1 << 20, shapes: archives) { try archive($0, "a.zip") },
        Parser(name: "tar.zst", limit: 1 << 20, shapes: archives) { try archive($0, "a.tar.zst") },
        Parser(name: "patch", limit: 1 << 20, shapes: archives) { bytes in
            _ = try PatchReader(Descriptor(file(bytes), .read), base: nil, resultSize: 1 << 40)
        },
    ]

    // MARK: manifests

    private static let head =
        "\"manifest\": 1, \"product\": \"org.example.x\", \"version\": \"1.0.0\", \"sequence\": 1, \"databases\": {\"d\": "
        + "{\"kind\": \"user\", \"member\": \"d.db\", \"size\": 1, \"sha256\": \"\(Shape.digest)\"}}, "
        + "\"bundle\": {\"file\": \"b.tar\", \"size\": 1, \"sha256\": \"\(Shape.digest)\"},"

    private static func manifest(_ form: Manifest.Form) -> Parser {
        let critical = "\"critical\": [\((0..<100).map { "\"c\($0)\"" }.joined(separator: ", "))],"
        let open = "{\(head) "
        let facts = "\"size\": 1, \"sha256\": \"\(Shape.digest)\""
        let none = head.replacing("\"databases\": {\"d\": ", with: "\"x\": {\"d\": ")
        let long = String(repeating: "n", count: 100_000)
        return Parser(
            name: "\(form.rawValue) manifest", limit: Manifest.largest,
            shapes: [
                Shape("unknown fields and critical ones", "{\(critical)\(head)", "\"z\": 1}") { "\"m\($0)\": 1, " },
                Shape("unknown fields in a long place", "\(open)\"budget\": {\"\(long).t\": {", "\"z\": 1}}}") {
                    "\"m\($0)\": 1,"
                },
                Shape("critical names", "\(open)\"critical\": [", "\"z\"]}") { "\"c\($0)\", " },
                Shape("alternatives", "\(open)\"requires\": {\"app\": \"", "9\"}}") { "1.\($0).0 || " },
                Shape("databases", "{\(none)\"databases\": {", "\"z\": 1}}") {
                    "\"d\($0)\": {\"kind\": \"reference\", \"member\": \"d\($0).db\", \(facts)},"
                },
                Shape("groups", "{\(none)\"databases\": {", "\"z\": 1}}") {
                    "\"d\($0)\": {\"kind\": \"user\", \"member\": \"d\($0).db\", \(facts), \"attach\": {\"group\": \"g\($0)\"}},"
                },
                Shape(
                    "complete groups", "{\(none)\"databases\": {",
                    "\"z\": {\"kind\": \"user\", \"member\": \"z.db\", \(facts)}}}"
                ) {
                    "\"d\($0)\": {\"kind\": \"user\", \"member\": \"d\($0).db\", \(facts), \"attach\": {\"group\": \"g\($0)\"}},"
                },
                Shape(
                    "databases and golden queries", "{\(none)\"databases\": {",
                    "\"z\": {\"kind\": \"user\", \"member\": \"z.db\", \(facts)}}, \"checks\": []}"
                ) { index in
                    "\"d\(index)\": {\"kind\": \"shared\", \"member\": \"d\(index).db\", \(facts), \"preserve\": [{\"table\": \"t\"}]},"
                },
                Shape(
                    "migrations",
                    "{\(none)\"databases\": {\"d\": {\"kind\": \"user\", \"member\": \"d.db\", \(facts), \"migrations\": [",
                    "{}]}}}"
                ) {
                    "{\"member\": \"m/\($0 + 1).sql\", \(facts)},"
                },
                Shape("golden queries", "\(open)\"checks\": [", "{\"on\": \"z\", \"sql\": \"\", \"expect\": \"1\"}]}") {
                    _ in
                    "{\"on\": \"d\", \"sql\": \"SELECT 1\", \"expect\": \">= 1\"},"
                },
                Shape("patches", "\(open)\"patches\": [", "1]}") {
                    "{\"member\": \"d.db\", \"from\": \"0.1.0\", \"file\": \"p\($0)\", \(facts)},"
                },
                Shape("budgets", "\(open)\"budget\": {", "\"d.z\": {}}}") { "\"d.t\($0)\": {\"shrink\": \"1%\"}," },
                Shape("steps", "\(open)\"steps\": [", "1]}") {
                    "{\"step\": \"s\($0)\", \"after\": \"copy\", \"with\": {}},"
                },
                Shape("a long product", "{\"manifest\": 1, \"product\": \"a", repeating: ".a", "\"}"),
                Shape(
                    "a long version", "{\"manifest\": 1, \"product\": \"a.b\", \"version\": \"1.0.0-a", repeating: ".a",
                    "\"}"),
            ], json: Shape.json(head)
        ) {
            let manifest = try Manifest(parsing: $0, as: form, source: "m")
            // Each apply and each connection asks for these.
            _ = (manifest.groups, manifest.worthwhilePatches(from: manifest))
        }
    }

    // MARK: feeds

    private static let feedHead =
        "\"feed\": 1, \"product\": \"org.example.x\", \"serial\": 1, \"expires\": \"2099-01-01T00:00:00Z\","

    private static func release(_ index: Int, _ more: String = "", version: String? = nil) -> String {
        "{\"version\": \"\(version ?? "1.0.\(index)")\", \"sequence\": \(index + 1), \"manifest\": "
            + "{\"file\": \"m.json\", \"size\": 1, \"sha256\": \"\(Shape.digest)\"}\(more)},"
    }

    private static var feedShapes: [Shape] {
        let open = "{\(feedHead) \"releases\": ["
        let critical = "\"critical\": [\((0..<100).map { "\"c\($0)\"" }.joined(separator: ", "))],"
        @Sendable func end(_ more: String = "") -> String {
            String(release(9_999_999, more, version: "999.0.0").dropLast()) + "]}"
        }
        @Sendable func from(_ range: String) -> String { ", \"requires\": {\"from\": \"\(range)\"}" }
        let alternatives = (0..<60).map { "9.\($0).0" }.joined(separator: " || ")
        return [
            Shape("releases", open, end()) { release($0) },
            Shape("a version twice", open, String(release(0).dropLast()) + "]}") { release($0) },
            Shape("unknown fields and critical ones", "{\(critical)\(feedHead) \"releases\": [", end()) {
                release($0, ", \"a\($0)\": 1, \"b\($0)\": 2, \"d\($0)\": 3")
            },
            Shape("unknown fields in one release", "{\(critical)\(feedHead) \"releases\": [{", "\"version\": 1}]}") {
                "\"m\($0)\": 1, "
            },
            Shape("a chain of requirements", open, end(from("1"))) {
                release($0, from("1.0.\($0 - 1 < 0 ? 0 : $0 - 1)"))
            },
            Shape("requirements that nothing meets", open, end(from("<0.0.1"))) { release($0, from("<0.0.1")) },
            Shape("requirements that all later releases meet", open, end(from(">=1"))) { release($0, from(">=1")) },
            Shape("requirements of many alternatives", open, end(from(alternatives))) {
                release($0, from(alternatives))
            },
            Shape("requirements of pre-releases", open, end(from(">=1.0.0-a"))) {
                release($0, from(">=1.0.0-a"), version: "1.0.0-a.\($0)")
            },
            Shape("requirements between pre-releases", open, end(from(">=1"))) {
                release($0, from(">=1"), version: "1.\($0).0-a")
            },
            Shape("withdrawn releases", open, end(from(">=1"))) { release($0, from(">=1") + ", \"withdrawn\": \"x\"") },
            Shape("patches", "\(open)\(release(0).dropLast(2)), \"patches\": [", "1]}]}") {
                "{\"from\": \"1.0.\($0)\", \"file\": \"p\($0)\"},"
            },
            Shape("long versions", open, end()) {
                release($0, version: "1.0.0-\(String(repeating: "a.", count: 55))\($0)")
            },
        ]
    }

    private static var feed: Parser {
        Parser(
            name: "feed", limit: Feed.largest, shapes: feedShapes, json: Shape.json(feedHead + "\"releases\": [],")
        ) {
            _ = try Feed(parsing: $0, source: "f")
        }
    }

    /// The choice of a release takes the same time, whatever a feed requires.
    private static func choice(installed: String) -> Parser {
        Parser(name: "choice after \(installed)", limit: Feed.largest, shapes: feedShapes) { bytes in
            let layout = try StoreLayout(root: "/nonexistent")
            let settings = Settings(product: "org.example.x")
            _ = try FeedChoice(
                feed: Feed(parsing: bytes, source: "f"), installed: Version(installed),
                channel: Feed.Release.defaultChannel,
                holds: Holds.read(layout, settings),
                policy: Policy(follow: .newer, appVersion: Version(1, 0, 0), moultVersion: .moult),
                machine: Machine(id: "x")
            ).choose()
        }
    }

    // MARK: keys and settings

    private static var keyList: Parser {
        let open = "\"keyList\": 1, \"product\": \"org.example.x\", \"serial\": 1, \"threshold\": 1,"
        return Parser(
            name: "key list", limit: KeyList.largest,
            shapes: [
                Shape("keys", "{\(open) \"trusted\": [", "1]}") { "{\"key\": \"\(key($0))\"}," }
            ], json: Shape.json(open)
        ) { _ = try KeyList(parsing: $0, source: "k") }
    }

    /// A key that differs from those of other numbers.
    private static func key(_ number: Int) -> String {
        let own = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        return Base64.encode(Array("Ed".utf8) + [UInt8](repeating: 7, count: 34) + own + [1, 2])
    }

    private static var settings: Parser {
        let open = "\"moult\": 1, \"product\": \"org.example.x\","
        return Parser(
            name: "settings", limit: 1 << 20,
            shapes: [
                Shape("keys", "{\(open) \"keys\": {\"trusted\": [", "1]}}") { "{\"key\": \"\(key($0))\"}," },
                Shape("mirrors", "{\(open) \"feed\": {\"url\": \"https://a.example/\", \"mirrors\": [", "1]}}") {
                    "\"https://m\($0).example/\","
                },
                Shape("consumers", "{\(open) \"consumers\": [", "1]}") { "{\"run\": [\"/bin/c\($0)\"]}," },
                Shape("steps", "{\(open) \"steps\": {", "\"z\": 1}}") { "\"s\($0)\": {\"run\": [\"/bin/s\"]}," },
            ], json: Shape.json(open)
        ) { _ = try Settings(parsing: $0, source: "s") }
    }

    private static let lines = [
        Shape("lines", repeating: "a\n"), Shape("a long comment", "untrusted comment: ", repeating: "c", "\n"),
        Shape("a long line of Base64", "untrusted comment: c\n", repeating: "QUFB", "\n"),
        Shape("bytes", repeating: "\u{FF}"),
    ]

    private static let versions = Parser(
        name: "versions", limit: 1 << 20,
        shapes: [
            Shape("alternatives", "1", repeating: " || 1.2.3"), Shape("terms", ">=1", repeating: " <2"),
            Shape("bars", repeating: "|"),
            Shape("pre-release", "1.0.0-a", repeating: ".a"), Shape("build", "1.0.0+a", repeating: ".0"),
            Shape("digits", repeating: "9"),
            Shape("points", repeating: "."), Shape("spaces", repeating: " "), Shape("signs", repeating: "<"),
        ]
    ) { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        if let range = VersionRange(text) { _ = (range.contains(Version(2, 1, 0)), range.example) }
        if let version = Version(text) {
            _ = version.precedes(Version(1, 0, 0, prerelease: version.prerelease + ["b"]))
        }
        _ = (
            Expectation(text)?.isMet(by: text), Allowance(text), Timestamp(text), PlainName.fault(path: text),
            PlainName.productFault(text)
        )
    }

    // MARK: the publisher's side

    private static let script = Parser(
        name: "script", limit: 1 << 20,
        shapes: [
            Shape("statements", repeating: "SELECT 1;"), Shape("lines", repeating: "SELECT 1;\n"),
            Shape("semicolons", repeating: ";"),
            Shape("semicolons in lines", repeating: ";\n"), Shape("a statement without an end", repeating: "SELECT "),
            Shape("lines without an end", repeating: "SELECT\n"), Shape("quotes", repeating: "'"),
            Shape("a quote", "'", repeating: "a\n"),
            Shape("comments", repeating: "/*a*/"), Shape("a comment", "/*", repeating: "*\n"),
            Shape("line comments", repeating: "--\n"),
            Shape("slashes", "SELECT 1\n", repeating: "/\n"), Shape("a dot command", ".print", repeating: " a"),
            Shape("dot commands", repeating: ".print \"a\\101\"\n"),
            Shape("a dot command of quotes", ".print ", repeating: "\"\\\" "),
            Shape("names", repeating: "${a} "), Shape("dollars", repeating: "$"), Shape("braces", repeating: "${"),
            Shape("a name", "${", repeating: "a"),
            Shape("triggers", repeating: "CREATE TRIGGER t BEGIN SELECT 1; END;\n"),
            Shape("a trigger", "CREATE TRIGGER t BEGIN ", repeating: "SELECT 1;\n"),
            Shape("brackets", repeating: "["), Shape("numbers", repeating: "# a\n"), Shape("dashes", repeating: "-"),
            Shape("no-break spaces", "'", repeating: "\u{A0}"),
        ]
    ) { bytes in
        let reader = try ScriptReader(path: file(bytes), file: "f") { _, _ in "x" }
        while try reader.next() != nil {}
    }

    private static let table = Parser(
        name: "table", limit: 1 << 22,
        shapes: [
            Shape("rows", repeating: "a,b\n"), Shape("fields", repeating: "a,"), Shape("separators", repeating: ","),
            Shape("line breaks", repeating: "\n"),
            Shape("a field", repeating: "a"), Shape("a quoted field", "\"", repeating: "a\n"),
            Shape("quotes", repeating: "\""),
            Shape("quoted fields", repeating: "\"a\"\"b\",\"c\"\n"), Shape("quotes and text", repeating: "\"a\"b\n"),
            Shape("NUL", repeating: "\0"),
            Shape("carriage returns", repeating: "\r"), Shape("an open quote in each row", repeating: "\"a,b\n"),
            Shape("not UTF-8", repeating: "\u{E9},"),
        ]
    ) { bytes in
        var start = 0
        let reader = RowReader(format: .csv) { buffer in
            let count = min(buffer.count, bytes.count - start)
            buffer.copyBytes(from: bytes[start..<start + count])
            start += count
            return count
        }
        let batch = RowBatch(capacity: 1 << 18)
        while try reader.fill(batch) {}
    }

    // MARK: servers

    private static let artifact = Parser(
        name: "artifact", limit: Artifact.largest,
        shapes: [
            Shape("layers", "{\"artifactType\": \"application/vnd.moult.feed.v1\", \"layers\": [", "1]}") {
                "{\"digest\": \"sha256:\(Shape.digest)\", \"size\": 1, \"mediaType\": \"m\", \"annotations\": "
                    + "{\"org.opencontainers.image.title\": \"f\($0)\"}},"
            }
        ], json: Shape.json("\"artifactType\": \"application/vnd.moult.feed.v1\",")
    ) { _ = try Artifact(parsing: $0, source: "a") }

    private static let challenge = Parser(
        name: "challenge", limit: 4096,
        shapes: [
            Shape("parameters", "Bearer realm=\"r\"", part: { ",p\($0)=\"v\"" }),
            Shape("quotes", "Bearer realm=\"", repeating: "\\\""),
            Shape("equals", "Bearer ", repeating: "="), Shape("commas", "Bearer ", repeating: ","),
            Shape("text", repeating: "a"),
        ]
    ) { _ = Challenge(String(decoding: $0, as: UTF8.self)) }

    // MARK: archives

    private static let archives = [
        Shape("entries of a tar") { tarEntry("f\($0)") },
        Shape("long names in a tar") {
            tarEntry("././@LongLink", type: "L", size: 512) + String(repeating: "n\($0)", count: 512).prefix(512)
        },
        Shape("extended headers in a tar") { _ in
            tarEntry("x", type: "x", size: 512) + String(repeating: "18 comment=abcdef\n", count: 29).prefix(512)
        },
        Shape(
            "local headers of a zip", repeating: "PK\u{3}\u{4}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\u{1}\0\0\0a"),
        Shape("central headers of a zip", "", "PK\u{5}\u{6}\0\0\0\0\u{7F}\u{7F}\u{7F}\u{7F}\0\0\0\0\0\0\0\0\0\0") { _ in
            "PK\u{1}\u{2}" + String(repeating: "\0", count: 24) + "\u{1}" + String(repeating: "\0", count: 17) + "a"
        },
        Shape("ends of a zip", repeating: "PK\u{5}\u{6}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        Shape("zeros", repeating: "\0"), Shape("letters", repeating: "a"),
    ]

    private static func tarEntry(_ name: String, type: String = "0", size: Int = 0) -> String {
        func field(_ text: String, _ width: Int) -> String {
            text + String(repeating: "\0", count: max(0, width - text.utf8.count))
        }
        func octal(_ number: Int, _ width: Int) -> String {
            let digits = String(number, radix: 8)
            return String(repeating: "0", count: max(0, width - 1 - digits.count)) + digits + "\0"
        }
        func header(_ sum: String) -> String {
            field(name, 100) + octal(0o644, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(0, 12) + sum + type
                + field("", 100) + "ustar\0" + "00" + field("", 247)
        }
        let sum = header(String(repeating: " ", count: 8)).utf8.reduce(0) { $0 + Int($1) }
        return header(octal(sum, 7) + " ")
    }

    private static func archive(_ bytes: [UInt8], _ name: String) throws {
        try ArchiveReader(Descriptor(file(bytes), .read), kind: ArchiveKind(fileName: name)).read(members: ["f": 1]) {
            _, _ in
        }
    }

    /// The input in a file without a name on disk; removed with the scratch directory.
    private static func file(_ bytes: [UInt8]) throws -> String { try scratch.value.write("input", bytes) }

    private static let scratch = Lazy()
    private struct Lazy: Sendable {
        let made = Result { try Scratch() }
        var value: Scratch { get throws { try made.get() } }
    }
}
