import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Feeds with changed keys, which earlier versions of moult published with these commands:
///
///     moult publish DIR golden-1.0.0.json -k first.key --days 3650                              key-list-1
///     moult publish DIR -k first.key -k second.key --trust second.pub --days 3650
///     moult publish DIR -k second.key --days 3650
///
///     moult trust keys --product org.example.golden --root root.pub --release release.pub \     key-list-2
///         --timestamp online.pub --days 3650 -k root.key
///     moult publish DIR golden-1.0.0.json --trust keys/keys-1.json -k release.key -k online.key --days 3650
///     moult trust keys --release second.pub --days 3650 -k root.key
///     moult publish DIR --trust keys/keys-2.json -k second.key -k online.key --days 3650
@Suite struct GoldenKeyListTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func run(_ line: String) throws -> Shell.Ended {
        let built = Files.directory(of: try BuiltMoult.path())
        let golden = Files.directory(of: Golden().directory)
        return try Shell.run(
            ["bash", "-c", line], in: scratch.path, environment: ["PATH": "\(built):/usr/bin:/bin", "GOLDEN": golden])
    }

    @Test(arguments: [("key-list-1", "first.pub", 1), ("key-list-2", "root.pub", 2)])
    func `key lists of earlier formats are followed`(_ format: String, _ pinned: String, _ lists: Int) throws {
        let ended = try run(
            """
            set -e; moult init -q --product org.example.golden --key $GOLDEN/\(format)/\(pinned) --feed $GOLDEN/\(format)/feed.json
            moult apply -q; moult verify -q --deep; moult check -q; ls store/.moult/keys/keys-*.json | wc -l
            """)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "\(lists)\n")
    }

    /// Each version refuses a key list of a later format, and the feed with it, as versions without roles refused
    /// `key-list-2`.
    @Test func `a key list of a later format is refused`() throws {
        let ended = try run(
            """
            set -e; cp -r $GOLDEN/key-list-1 public; cd public; moult keygen -q --no-password key
            sed -i 's/"keyList": 1/"keyList": 3/' keys-1.json
            rm *.minisig; moult sign -q -k key.key feed.json keys-1.json; cd ..
            moult init -q --product org.example.golden --key public/key.pub --feed public/feed.json
            moult apply
            """)
        #expect(ended.status == 3)
        #expect(
            ended.errors == """
                moult: error: keys-1.json: keyList is format 3, and this version of moult reads formats up to 2
                  Install a newer moult.

                """)
        #expect(try Files.list(scratch.path("store")) == [".moult", "moult.json"])
    }
}
