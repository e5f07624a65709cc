import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A directory with releases, a key and the command, and functions for tests of registries.
struct RegistryBench {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try must("moult keygen a --no-password -q")
    }

    func run(_ line: String, environment: [String: String] = [:]) throws -> Shell.Ended {
        try scratch.run(line, environment: environment)
    }

    @discardableResult
    func must(_ line: String, status: Int32 = 0, environment: [String: String] = [:]) throws -> String {
        try scratch.must(line, status: status, environment: environment)
    }

    /// Creates a release with about this many bytes of random content; returns the path of its manifest.
    @discardableResult
    func release(_ version: String, _ sequence: Int, bytes: Int = 40_000, top: [JSON.Member] = []) throws -> String {
        let sql = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, release TEXT, noise BLOB);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(bytes / 4000))
            INSERT INTO food SELECT i, '\(version)', randomblob(4000) FROM n;
            """
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        _ = try maker.make(version, sequence: sequence, [.reference("food", sql)], top: top)
        return "rel/test-\(version).json"
    }

    func publish(_ version: String, _ sequence: Int, to place: String, _ options: String = "-k a.key") throws {
        try must("moult publish \(place) \(try release(version, sequence)) \(options) -q")
    }

    func follow(_ place: String, key: String = "a", environment: [String: String] = [:]) throws {
        try must(
            "moult init -q --product org.example.test --key \(key).pub --feed \(place)", environment: environment)
        // A test must not wait long for a server that does not respond.
        try set("patience", 2)
    }

    /// Sets a member of "feed" in `moult.json`.
    func set(_ name: String, _ value: JSON) throws {
        let settings = scratch.path("store/moult.json")
        let json = try JSON(parsing: try Files.read(settings, limit: 1 << 20) ?? [], source: settings)
        let feed = try #require(json["feed"]).setting(name, to: value)
        try Files.replace(settings, with: Array(json.setting("feed", to: feed).pretty.utf8))
    }

    /// Returns the installed release, read from the database of the store.
    func installed(in store: String = "store") throws -> String {
        if try Files.factsThroughLinks(scratch.path("\(store)/food.db")) == nil { return "nothing" }
        return try must("sqlite3 'file:\(store)/food.db?immutable=1' 'SELECT DISTINCT release FROM food'")
            .split(separator: "\n").joined()
    }

    /// Runs a command and returns its error. If the command exits with a different status, the result begins with that status.
    func refusal(_ line: String, status: Int32, environment: [String: String] = [:]) throws -> String {
        let ended = try run(line, environment: environment)
        guard ended.status == status else { return "status \(ended.status): \(ended.errors)\(ended.output)" }
        return ended.errors
    }

    /// Pushes files to a registry in the same form as moult: each file is a layer with a name. `type` is the type of
    /// the artifact.
    func put(
        _ files: [String], to registry: Registry, _ repository: String, tag: String, type: String = "feed",
        mediaType: String = "application/vnd.oci.image.manifest.v1+json", change: String = "pass"
    ) throws {
        let script = """
            import hashlib, json, sys, urllib.request
            root, tag, type, media = "http://\(registry.host)/v2/\(repository)/", "\(tag)", "\(type)", "\(mediaType)"
            def ask(method, url, body=None, headers={}):
                return urllib.request.urlopen(urllib.request.Request(url, data=body, method=method, headers=headers))
            def push(data):
                digest = "sha256:" + hashlib.sha256(data).hexdigest()
                place = ask("POST", root + "blobs/uploads/").headers["Location"]
                ask("PUT", place + ("&" if "?" in place else "?") + "digest=" + digest, data,
                    {"Content-Type": "application/octet-stream"})
                return digest
            push(b"{}")
            layers = []
            for name in sys.argv[1:]:
                data = open(name, "rb").read()
                layers.append({"mediaType": "application/vnd.moult.any", "digest": push(data), "size": len(data),
                    "annotations": {"org.opencontainers.image.title": name.split("/")[-1]}})
            empty = "application/vnd.oci.empty.v1+json"
            artifact = {"schemaVersion": 2, "mediaType": media, "artifactType": "application/vnd.moult.%s.v1" % type,
                "config": {"mediaType": empty, "digest": push(b"{}"), "size": 2}, "layers": layers}
            \(change)
            ask("PUT", root + "manifests/" + tag, json.dumps(artifact).encode(), {"Content-Type": media})
            """
        try Files.replace(scratch.path("put.py"), with: Array(script.utf8))
        try must("python3 put.py \(files.joined(separator: " "))")
    }
}
