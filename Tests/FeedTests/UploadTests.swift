import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `moult publish --upload-with` copies the feed to another place, where stores can follow the feed at every moment.
@Suite struct UploadTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("a")
        try bench.must("mkdir away")
        for number in 1...3 { try bench.release("\(number).0.0", sequence: number) }
    }

    /// Publishes, and uploads each file with a script that copies it to `away` and logs its name and headers. Before that, the
    /// script runs the shell code `first`.
    @discardableResult
    private func publish(_ rest: String, first: String = "", command: String = "sh copy") throws -> Shell.Ended {
        let script = """
            \(first)
            cp "$MOULT_FILE" "away/$MOULT_NAME" && echo "$MOULT_NAME|$MOULT_CACHE_CONTROL|$MOULT_CONTENT_TYPE" >> log
            """
        try Files.replace(bench.path("copy"), with: Array(script.utf8))
        let isFirst = try Files.facts(bench.path("away/feed.json")) == nil
        return try bench.run(
            "moult publish public -k a.key \(rest) --upload-with '\(command)' --fetch-with 'cp away/\"$MOULT_NAME\" \"$MOULT_FILE\"'"
                + (isFirst ? " --new" : ""))
    }

    private func uploaded() throws -> [String] {
        let text = String(decoding: try Files.read(bench.path("log"), limit: 1 << 20) ?? [], as: UTF8.self)
        try Files.remove(bench.path("log"))
        return text.split(separator: "\n").map { String($0.prefix { $0 != "|" }) }
    }

    /// Returns the name of the current feed's signature that is uploaded before the feed.
    private func early() throws -> String {
        "feed.json.\(try bench.must("sha256sum public/feed.json").prefix(16)).minisig"
    }

    @Test func `publish uploads each file after the files that it refers to`() throws {
        let first = try publish("rel/test-1.0.0.json")
        #expect(first.status == 0 && first.output.hasSuffix("uploaded 6 files\n"), "\(first.errors)\(first.output)")
        #expect(
            try uploaded() == [
                "test-1.0.0.tar.zst", "test-1.0.0.json.minisig", "test-1.0.0.json", early(), "feed.json",
                "feed.json.minisig",
            ])
        // Only the files of the next release and the feed are uploaded.
        #expect(try publish("rel/test-2.0.0.json").status == 0)
        #expect(
            try uploaded() == [
                "test-2.0.0.tar.zst", "test-2.0.0.json.minisig", "test-2.0.0.json", early(), "feed.json",
                "feed.json.minisig",
            ])
        try bench.must("moult publish away --check --trust a.pub && moult apply -q --create --key a.pub away")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `publish uploads each file with the recommended header`() throws {
        #expect(try publish("rel/test-1.0.0.json").status == 0)
        let forever = "public, max-age=31536000, immutable"
        #expect(
            try bench.must("cat log") == """
                test-1.0.0.tar.zst|\(forever)|application/zstd
                test-1.0.0.json.minisig|public, max-age=300|text/plain; charset=utf-8
                test-1.0.0.json|\(forever)|application/json
                \(early())|\(forever)|text/plain; charset=utf-8
                feed.json|public, max-age=60|application/json
                feed.json.minisig|public, max-age=60|text/plain; charset=utf-8

                """)
        #expect(try bench.must("moult publish public --list-uploads | sed -E 's/ {2,}/|/g'") == bench.must("cat log"))
    }

    @Test func `publish uploads a new key list only after a feed signed by its keys`() throws {
        #expect(try publish("rel/test-1.0.0.json").status == 0)
        try bench.must("moult apply -q --create --key a.pub away")
        _ = try uploaded()
        try bench.key("b")
        #expect(try publish("-k b.key --trust b.pub").status == 0)
        let names = try uploaded()
        #expect(names.suffix(2) == ["keys-1.json.minisig", "keys-1.json"] && names.contains("feed.json"))
        try bench.must("moult check -q && moult publish away --check --trust a.pub -q")
    }

    /// The destination fails at each upload in turn: stores find the old or the new feed there, and the same command
    /// completes the upload.
    @Test func `an upload that fails is completed by the same command`() throws {
        #expect(try publish("rel/test-1.0.0.json").status == 0)
        try bench.must("moult apply -q --create --key a.pub away && cp -r public before && cp -r away there")
        var statuses: [Int32] = []
        for number in 1...6 {
            try bench.must("rm -rf public away store count; cp -r before public; cp -r there away")
            try bench.must("moult apply -q --create --key a.pub away")
            // The upload stops after half of the file.
            let failing = """
                echo >> count
                if [ $(wc -l < count) = \(number) ]; then
                    head -c 20 "$MOULT_FILE" > "away/$MOULT_NAME"; echo 'no space' >&2; exit 9
                fi
                """
            let ended = try publish("rel/test-2.0.0.json -q", first: failing)
            statuses.append(ended.status)
            #expect(ended.errors.contains("the command failed: no space"), "\(ended.errors)")
            #expect(
                ended.errors.contains(
                    ended.status == 6
                        ? "Stores already see the new feed. Run the command again to upload the rest."
                        : "Stores still see the old feed. Run the command again to upload the missing files."))
            // This destination overwrites a file during the upload, so stores may find a truncated feed, which they
            // refuse. An object store replaces an object as a whole.
            if number != 5 {
                let check = try bench.run("moult check -q")
                #expect(check.status == (ended.status == 6 ? 2 : 0), "\(number): \(check.errors)")
                try bench.must("moult apply -q")
            }
            #expect(try publish("rel/test-2.0.0.json -q").status == 0)
            try bench.must("moult apply -q && moult publish away --check --trust a.pub -q")
            #expect(try bench.installed() == "2.0.0")
        }
        #expect(statuses == [1, 1, 1, 1, 1, 6])
    }

    @Test func `if publish is killed, its upload ends, and the next publish completes it`() throws {
        try Files.replace(bench.path("slow"), with: Array("echo $$ > pid; exec sleep 600".utf8))
        let publisher = try Background([
            "sh", "-c",
            "cd \(bench.path("")) && exec \(try BuiltMoult.path()) publish public rel/test-1.0.0.json -k a.key --upload-with 'sh slow' --fetch-with false --new",
        ])
        try publisher.wait { try (Files.facts(bench.path("pid"))?.size ?? 0) > 1 }
        let pid = try bench.must("cat pid").split(separator: "\n")[0]
        publisher.signal(SIGKILL)
        // A zombie has no command line.
        while try Files.read("/proc/\(pid)/cmdline", limit: 4096)?.isEmpty == false { usleep(1000) }
        #expect(try publish("rel/test-1.0.0.json").status == 0)
        try bench.must("moult publish away --check --trust a.pub -q")
    }

    @Test func `publish with a different upload command uploads everything`() throws {
        #expect(try publish("rel/test-1.0.0.json").status == 0)
        try bench.must("rm -rf away && mkdir away")
        #expect(try publish("", command: "true; sh copy").status == 0)
        try bench.must("moult publish away --check --trust a.pub -q")
        #expect(try bench.must("! grep -r 'sh copy' public && ls -l public/.moult-uploaded").hasPrefix("-rw-------"))
    }
}
