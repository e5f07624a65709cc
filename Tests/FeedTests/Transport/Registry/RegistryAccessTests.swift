import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Registries with passwords, tokens and TLS, and the files in which users keep credentials.
@Suite(
    .tags(.thorough), .serialized,
    .enabled(if: Registry.isInstalled, "docker-registry, skopeo or htpasswd is not installed"))
struct RegistryAccessTests {
    private let bench: RegistryBench
    private let authority: Authority
    private let certificate: String
    /// "moult:feather" in the encoding of HTTP.
    private let password = "bW91bHQ6ZmVhdGhlcg=="

    init() throws {
        bench = try RegistryBench()
        authority = try Authority(in: bench.scratch.path("ca"))
        certificate = try authority.certify("IP:127.0.0.1", as: "server")
        try bench.scratch.directory("home")
        try bench.release("1.0.0", 1)
    }

    private var environment: [String: String] {
        ["HOME": bench.scratch.path("home"), "CURL_CA_BUNDLE": authority.certificate]
    }

    /// Writes a credentials file, which by default only its owner can read.
    private func save(_ text: String, at path: String, mode: UInt32 = 0o600) throws {
        try bench.must("mkdir -p $(dirname \(path))")
        try Files.replace(bench.scratch.path(path), with: Array(text.utf8), mode: mode)
    }

    private func entry(_ registry: Registry) -> String {
        "{\"auths\": {\"\(registry.host)\": {\"auth\": \"\(password)\"}}}"
    }

    private func publish(_ place: String, environment more: [String: String] = [:]) throws -> Shell.Ended {
        try bench.run(
            "moult publish \(place) rel/test-1.0.0.json -k a.key -q", environment: environment.merging(more) { $1 })
    }

    /// Publishes and installs a release, and checks for a newer one.
    private func works(_ place: String, environment more: [String: String] = [:]) throws {
        let published = try publish(place, environment: more)
        try #require(published.status == 0, "\(published.errors)")
        let environment = environment.merging(more) { $1 }
        try bench.follow(place, environment: environment)
        try bench.must("moult apply -q && moult check -q", environment: environment)
        #expect(try bench.installed() == "1.0.0")
    }

    // MARK: TLS

    @Test func `a registry is reached over TLS`() throws {
        let registry = try Registry(certificate: certificate)
        #expect(registry.address("x").hasPrefix("oci://"))
        try works(registry.address("team/food"))
    }

    @Test func `a registry with another certificate is refused`() throws {
        let registry = try Registry(
            certificate: try Authority(in: bench.scratch.path("other")).certify("IP:127.0.0.1", as: "x"))
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status != 0)
        #expect(ended.errors.contains("certificate"), "\(ended.errors)")
        #expect(try registry.requests() == [])
    }

    // MARK: passwords

    @Test func `without a password, the message suggests a login`() throws {
        let registry = try Registry(.password)
        let place = registry.address("team/food")
        #expect(
            try bench.refusal(
                "moult publish \(place) rel/test-1.0.0.json -k a.key", status: 1, environment: environment)
                    == """
                    moult: error: cannot get \(place):feed: the server replied with status 401 (not authorized): UNAUTHORIZED
                      Log in first, for example with: skopeo login \(registry.host)

                    """)
    }

    @Test func `a wrong password is not repeated in messages`() throws {
        let registry = try Registry(.password)
        // "moult:stone"
        try save(
            "{\"auths\": {\"\(registry.host)\": {\"auth\": \"bW91bHQ6c3RvbmU=\"}}}", at: "home/.docker/config.json")
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status == 1)
        #expect(
            ended.errors.hasSuffix(
                "\n  Ask the operator of the registry for permission to pull, or log in as another user.\n"),
            "\(ended.errors)")
        #expect(!ended.errors.contains("stone") && !ended.errors.contains("bW91bHQ6c3RvbmU="))
    }

    /// The files that skopeo, podman and docker write; an environment variable contains the path of the last file.
    @Test(
        arguments: [
            ("home/.docker/config.json", [:]),
            ("home/.config/containers/auth.json", [:]),
            ("docker/config.json", ["DOCKER_CONFIG": "docker"]),
            ("run/containers/auth.json", ["XDG_RUNTIME_DIR": "run"]),
            ("auth.json", ["REGISTRY_AUTH_FILE": "auth.json"]),
        ] as [(String, [String: String])])
    func `credentials are found in each supported location`(file: String, variables: [String: String]) throws {
        let registry = try Registry(.password, certificate: certificate)
        try save(entry(registry), at: file)
        try works(registry.address("team/food"), environment: variables.mapValues { bench.scratch.path($0) })
    }

    @Test func `the login of skopeo is used`() throws {
        let registry = try Registry(.password)
        try bench.must(
            "skopeo login --tls-verify=false -u moult -p feather --authfile home/.config/containers/auth.json \(registry.host)"
        )
        try works(registry.address("team/food"))
    }

    /// An entry is for a host or a longer path, which takes precedence; docker writes URLs.
    @Test(arguments: ["HOST/team/food", "HOST/team", "http://HOST", "https://HOST/v1/"])
    func `a credentials entry matches its repository`(key: String) throws {
        let registry = try Registry(.password)
        let wrong = "bW91bHQ6c3RvbmU="
        let auths = [key: password, "\(registry.host)/other": wrong, "127.0.0.1": wrong]
        let words = auths.map { "\"\($0.replacing("HOST", with: registry.host))\": {\"auth\": \"\($1)\"}" }
        try save("{\"auths\": {\(words.joined(separator: ", "))}}", at: "home/.docker/config.json")
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test(arguments: [UInt32(0o644), 0o640, 0o620])
    func `moult does not use a credentials file that other users can access`(
        mode: UInt32
    ) throws {
        let registry = try Registry(.password)
        try save(entry(registry), at: "home/.docker/config.json", mode: mode)
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status == 1)
        let path = bench.scratch.path("home/.docker/config.json")
        #expect(
            ended.errors.hasSuffix("Other users can read \(path), so it was not used. Protect it: chmod 600 \(path)\n"),
            "\(ended.errors)")
    }

    @Test func `the error names an invalid credentials file`() throws {
        let registry = try Registry(.password)
        try save("{\"auths\": ", at: "home/.docker/config.json")
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status == 1)
        #expect(ended.errors.contains(bench.scratch.path("home/.docker/config.json")), "\(ended.errors)")
    }

    // MARK: helpers

    private func helper(_ body: String) throws -> [String: String] {
        try save("#!/bin/sh\n\(body)\n", at: "bin/docker-credential-nest", mode: 0o755)
        let moult = Files.directory(of: try BuiltMoult.path())
        return ["PATH": "\(bench.scratch.path("bin")):\(moult):/usr/bin:/bin:/usr/sbin"]
    }

    @Test(arguments: ["credHelpers", "credsStore"]) func `a credential helper is used`(field: String) throws {
        let registry = try Registry(.password)
        let value = field == "credHelpers" ? "{\"\(registry.host)\": \"nest\"}" : "\"nest\""
        try save("{\"\(field)\": \(value)}", at: "home/.docker/config.json")
        let path = try helper(
            #"""
            cat > \#(bench.scratch.path("asked"))
            echo '{"ServerURL": "x", "Username": "moult", "Secret": "feather"}'
            """#)
        try works(registry.address("team/food"), environment: path)
        #expect(try bench.must("cat asked") == registry.host)
    }

    @Test func `if a credential helper has no entry, no password is sent`() throws {
        let registry = try Registry()
        try save("{\"credsStore\": \"nest\"}", at: "home/.docker/config.json")
        let path = try helper("echo 'credentials not found in native keychain'; exit 1")
        // If the registry requires no password, the helper is not called.
        try works(registry.address("team/food"), environment: path)
        let closed = try Registry(.password)
        let ended = try publish(closed.address("team/food"), environment: path)
        #expect(ended.errors.contains("Log in first"), "\(ended.errors)")
    }

    @Test(arguments: [
        ("echo 'the nest is empty'; exit 1", "the nest is empty"),
        ("echo twigs", "docker-credential-nest"),
        ("exit 3", "docker-credential-nest"),
    ])
    func `the error names a credential helper that fails`(body: String, message: String) throws {
        let registry = try Registry(.password)
        try save("{\"credHelpers\": {\"\(registry.host)\": \"nest\"}}", at: "home/.docker/config.json")
        let ended = try publish(registry.address("team/food"), environment: try helper(body))
        #expect(ended.status == 1)
        #expect(ended.errors.contains("docker-credential-nest") && ended.errors.contains(message), "\(ended.errors)")
        #expect(ended.errors.contains("\n  "), "\(ended.errors)")
    }

    @Test func `the error names a credential helper that is not installed`() throws {
        let registry = try Registry(.password)
        try save("{\"credHelpers\": {\"\(registry.host)\": \"absent\"}}", at: "home/.docker/config.json")
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status == 1)
        #expect(ended.errors.contains("docker-credential-absent"), "\(ended.errors)")
    }

    // MARK: tokens

    @Test func `a password is exchanged for a token`() throws {
        let service = try TokenService()
        let registry = try Registry(.token(service))
        try save(entry(registry), at: "home/.docker/config.json")
        try works(registry.address("team/food"))
        let requests = try service.requests()
        #expect(Set(requests.map(\.authorization)) == ["Basic \(password)"])
        #expect(
            Set(requests.map(\.query)) == [
                "account=moult&scope=repository:team/food:pull&service=registry",
                "account=moult&scope=repository:team/food:pull,push&service=registry",
            ])
        // The command requests one token for reading, and one for writing.
        #expect(requests.count { $0.query.contains("push") } == 1)
        // `moult check` sends the request twice: first without a token, then with the token that it has requested.
        let poll = try registry.requests { try bench.must("moult check -q", environment: environment) }
        #expect(poll.map(\.status) == [401, 200] && poll.allSatisfy { $0.method == "HEAD" })
    }

    @Test func `a public repository is read without a password`() throws {
        let service = try TokenService()
        let registry = try Registry(.token(service))
        try save(entry(registry), at: "home/.docker/config.json")
        #expect(try publish(registry.address("public/food")).status == 0)
        try bench.must("rm home/.docker/config.json")
        try bench.follow(registry.address("public/food"))
        let before = try service.requests().count
        try bench.must("moult apply -q", environment: environment)
        #expect(try bench.installed() == "1.0.0")
        #expect(try service.requests().dropFirst(before).map(\.authorization) == [""])
        // A token for reading does not allow writing.
        let ended = try publish(registry.address("public/food"))
        #expect(ended.status == 1 && ended.errors.contains("Log in first"), "\(ended.errors)")
    }

    @Test func `an identity token is exchanged`() throws {
        let service = try TokenService()
        let registry = try Registry(.token(service))
        try save("{\"auths\": {\"\(registry.host)\": {\"identitytoken\": \"nest\"}}}", at: "home/.docker/config.json")
        try works(registry.address("team/food"))
        #expect(Set(try service.requests().map(\.method)) == ["POST"])
    }

    @Test func `a token that has expired is renewed`() throws {
        let service = try TokenService(lifetime: 5)
        let registry = try Registry(.token(service))
        let proxy = try RegistryProxy(before: registry)
        try save(
            "{\"auths\": {\"127.0.0.1:\(proxy.port)\": {\"auth\": \"\(password)\"}}}", at: "home/.docker/config.json")
        try proxy.inject(.delay(seconds: 6), at: "^POST", times: 1)
        try works(proxy.address("team/food"))
        #expect(try service.requests().count { $0.query.contains("push") } >= 2)
    }

    @Test func `tokens are requested over TLS`() throws {
        let service = try TokenService(certificate: certificate)
        let registry = try Registry(.token(service), certificate: certificate)
        try save(entry(registry), at: "home/.docker/config.json")
        try works(registry.address("team/food"))
    }

    /// The registry specifies a token service without TLS. With that service, the password would be sent in clear text.
    @Test func `no password is sent to a token service without TLS`() throws {
        let service = try TokenService()
        let registry = try Registry(.token(service), certificate: certificate)
        try save(entry(registry), at: "home/.docker/config.json")
        let ended = try publish(registry.address("team/food"))
        #expect(ended.status == 3)
        #expect(
            ended.errors == """
                moult: error: cannot get a token for \(registry.address("team/food")): the registry names a token service \
                without TLS: \(service.url)
                  Report this to the operator of the registry.

                """)
        #expect(try service.requests() == [])
    }

    @Test func `blobs of another repository are mounted with a token for both repositories`() throws {
        let service = try TokenService()
        let registry = try Registry(.token(service))
        try save(entry(registry), at: "home/.docker/config.json")
        #expect(try publish(registry.address("team/food")).status == 0)
        let requests = try registry.requests {
            try bench.must(
                """
                moult publish \(registry.address("other/food")) rel/test-1.0.0.json -k a.key -q \
                --mount \(registry.address("team/food"))
                """, environment: environment)
        }
        #expect(requests.count { $0.method == "PUT" && $0.path.contains("/blobs/uploads/") && $0.status == 201 } == 2)
    }

    /// moult must not send the password to storage on another host.
    @Test func `no credentials are sent to storage behind a redirect`() throws {
        let open = try Registry()
        let place = open.address("team/food")
        #expect(try publish(place).status == 0)
        let storage = try ScriptedServer(open.data)
        let registry = try Registry(.password, storage: storage.url("").dropLast().description, data: open.data)
        try save(entry(registry), at: "home/.docker/config.json")
        try bench.follow(registry.address("team/food"))
        try bench.must("moult apply -q", environment: environment)
        #expect(try bench.installed() == "1.0.0")
        let requests = try storage.requests()
        #expect(!requests.isEmpty && Set(requests.map(\.authorization)) == [""])
    }
}
