import MoultBasics
import MoultFiles
import MoultTrust
import TestSupport
import Testing

/// Malicious archives in a complete update: they are refused, nothing is written outside the transaction, and the
/// transaction is removed afterwards.
@Suite(.tags(.thorough), .processes) struct HostileBundleTests {
    /// Replaces the bundle of release 2.0.0 with an archive that a Python script makes, and writes its size and digest to the
    /// manifest. Returns the error of the update, which must change nothing.
    private func refusal(_ ending: String, _ script: String, outcome: Int32 = 1) throws -> String {
        let bench = try Bench()
        try bench.release("1.0.0", sequence: 1)
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult init --product org.example.test -q && moult apply -q rel/test-1.0.0.json")
        try bench.must("cp rel/2.0.0.work/food.db food.db; mkdir outside; echo safe > outside/file")
        let program = """
            import io, sys, tarfile, zipfile, subprocess, os
            data = open("food.db", "rb").read()
            name = "rel/hostile.\(ending)"
            \(script)
            """
        try Files.writeNew(Array(program.utf8), to: bench.path("make.py"))
        try bench.must("python3 make.py")
        let bundle = bench.path("rel/hostile.\(ending)")
        let path = bench.path("rel/test-2.0.0.json")
        var manifest = try JSON(parsing: try Files.read(path, limit: 1 << 20) ?? [], source: "m")
        manifest = manifest.setting(
            "bundle",
            to: [
                "file": .string("hostile.\(ending)"), "size": .size(try Files.facts(bundle)?.size ?? 0),
                "sha256": .string(try SHA256.digest(ofFileAt: bundle).hex),
            ])
        try Files.replace(path, with: Array(manifest.pretty.utf8))
        let history: Set = ["store/.moult/history.jsonl", "store/.moult/lock", "store/.moult/transactions"]
        let before = try Tree(bench.scratch.path, times: false, skipping: history)
        let ended = try bench.run("moult apply -q rel/test-2.0.0.json")
        #expect(ended.status == outcome)
        #expect(try Tree(bench.scratch.path, times: false, skipping: history) == before)
        #expect(try Files.list(bench.path("store/.moult/transactions")) == [])
        return ended.errors
    }

    static let traversals = ["../outside/file", "/tmp/moult-outside", "a/../../outside/file"]

    private static func packing(_ ending: String, _ name: String) -> String {
        switch ending {
        case "zip":
            return """
                archive = zipfile.ZipFile(name, "w")
                archive.writestr("food.db", data)
                archive.writestr("\(name)", b"harm")
                archive.close()
                """
        default:
            let compression = ["tar": "", "tar.gz": "gz", "tar.xz": "xz", "tar.zst": ""][ending] ?? ""
            return """
                def add(archive, member, content):
                    entry = tarfile.TarInfo(member); entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
                plain = name if not name.endswith(".zst") else "plain.tar"
                archive = tarfile.open(plain, "w:\(compression)")
                add(archive, "food.db", data)
                add(archive, "\(name)", b"harm")
                archive.close()
                if plain != name:
                    subprocess.run(["zstd", "-q", "--rm", plain, "-o", name], check=True)
                """
        }
    }

    @Test(arguments: ["tar", "tar.gz", "tar.xz", "tar.zst", "zip"], traversals)
    func `a member name that leads out of the directory is refused`(ending: String, name: String) throws {
        let why = try refusal(ending, Self.packing(ending, name))
        #expect(why.contains("\"\(name)\""), "\(why)")
        #expect(why.contains("leads out of the directory") || why.contains("an absolute path"), "\(why)")
        #expect(try Files.facts("/tmp/moult-outside") == nil)
    }

    @Test(arguments: ["symlink", "hard link"])
    func `a member that is a link is refused`(kind: String) throws {
        let why = try refusal(
            "tar",
            """
            archive = tarfile.open(name, "w")
            entry = tarfile.TarInfo("food.db")
            entry.type = tarfile.\(kind == "symlink" ? "SYMTYPE" : "LNKTYPE"); entry.linkname = "../../../../outside/file"
            archive.addfile(entry)
            archive.close()
            """)
        #expect(why.contains(kind == "symlink" ? "symbolic link" : "hard link"), "\(why)")
    }

    /// An archive of ten megabytes that unpacks to ten gigabytes, in each format that allows this. Only the declared
    /// size is unpacked.
    @Test(arguments: ["tar.gz", "tar.xz", "tar.zst", "zip"])
    func `an archive bomb is not unpacked`(ending: String) throws {
        let tools = ["tar.gz": "gzip -1", "tar.xz": "xz -0", "tar.zst": "zstd -q"]
        let script =
            ending == "zip"
            ? """
            archive = zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
            with archive.open("food.db", "w", force_zip64=True) as out:
                for _ in range(512): out.write(bytes(1 << 20))
            archive.close()
            """
            : """
            with open(name, "wb") as out:
                packer = subprocess.Popen("\(tools[ending] ?? "") -c", shell=True, stdin=subprocess.PIPE, stdout=out)
                entry = tarfile.TarInfo("food.db"); entry.size = 512 << 20
                packer.stdin.write(entry.tobuf())
                for _ in range(512): packer.stdin.write(bytes(1 << 20))
                packer.stdin.close(); packer.wait()
            """
        let why = try refusal(ending, script)
        #expect(why.contains("has 536870912 bytes instead of 8192"), "\(why)")
    }

    /// Five gigabytes of headers are compressed to a few hundred kilobytes. The reader stops at the first undeclared
    /// entry.
    @Test func `an archive of ten million entries is not read to its end`() throws {
        let why = try refusal(
            "tar.zst",
            """
            def header(member, size):
                entry = tarfile.TarInfo(member); entry.size = size
                return entry.tobuf(tarfile.USTAR_FORMAT)
            first = header("food.db", len(data)) + data + bytes(-len(data) % 512)
            def packed(content): return subprocess.run(["zstd", "-q", "-c"], input=content, stdout=subprocess.PIPE, check=True).stdout
            block = packed(header("x", 0) * 10000)
            with open(name, "wb") as out:
                out.write(packed(first))
                for _ in range(1000): out.write(block)
                out.write(packed(bytes(1024)))
            """)
        #expect(why.contains("\"x\", which is not declared"), "\(why)")
    }
}
