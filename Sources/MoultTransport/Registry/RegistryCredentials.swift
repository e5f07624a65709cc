internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultTrust
internal import Synchronization

/// The user's credentials for a registry, from the files and helpers that container tools use.
enum RegistryCredentials: Equatable {
    case password(name: String, password: String)
    /// An identity token, which the token service exchanges for an access token.
    case identity(String)

    /// The result of a search for credentials.
    struct Found {
        var credentials: RegistryCredentials?
        /// A file that was skipped, because other users can access it.
        var open: String?
    }

    /// Searches only `$REGISTRY_AUTH_FILE` if it is set, otherwise the usual files in order.
    static func find(for repository: Repository, stop: () throws -> Void) throws -> Found {
        var found = Found()
        for path in try files {
            guard let bytes = try Files.read(path, limit: 1 << 20) else { continue }
            if let facts = try Files.factsThroughLinks(path),
                facts.mode & 0o077 != 0 || ![0, geteuid()].contains(facts.owner)
            {
                found.open = found.open ?? path
                continue
            }
            found.credentials = try read(bytes, path, repository, stop)
            if found.credentials != nil { return found }
        }
        return found
    }

    private static var files: [String] {
        get throws {
            if let file = try ProcessEnvironment.value("REGISTRY_AUTH_FILE") { return [file] }
            let home = try ProcessEnvironment.value("HOME")
            let docker = try ProcessEnvironment.value("DOCKER_CONFIG") ?? home.map { "\($0)/.docker" }
            return [
                try ProcessEnvironment.value("XDG_RUNTIME_DIR").map { "\($0)/containers/auth.json" },
                home.map { "\($0)/.config/containers/auth.json" }, docker.map { "\($0)/config.json" },
            ].compactMap(\.self)
        }
    }

    private static func read(
        _ bytes: [UInt8], _ path: String, _ repository: Repository, _ stop: () throws -> Void
    ) throws -> RegistryCredentials? {
        let fields = try Fields(JSON(parsing: bytes, source: path)) {
            MoultError(.json, what: "\(path): \($0) \($1)", now: $2)
        }
        if let helper = try fields.optionalTexts("credHelpers")?[repository.host] {
            return try ask(helper, for: repository.host, path, stop)
        }
        let entries = try fields.named("auths")
        for key in keys(repository) {
            guard let entry = entries.first(where: { $0.name == key })?.fields else { continue }
            if let token = try entry.optionalString("identitytoken"), !token.isEmpty { return .identity(token) }
            if let text = try entry.optionalString("auth"), !text.isEmpty { return try password(text, entry) }
        }
        // The default helper for all registries.
        if let store = try fields.optionalString("credsStore"), !store.isEmpty {
            return try ask(store, for: repository.host, path, stop)
        }
        return nil
    }

    /// Returns the keys of `auths` that match: the repository, its parents, then the host in its usual spellings.
    private static func keys(_ repository: Repository) -> [String] {
        var parts = repository.name.pathParts()
        var keys: [String] = []
        while !parts.isEmpty {
            keys.append("\(repository.host)/\(parts.joined(separator: "/"))")
            parts.removeLast()
        }
        return keys + [repository.host]
            + ["https", "http"].flatMap { scheme in
                ["", "/", "/v1/", "/v2/"].map { "\(scheme)://\(repository.host)\($0)" }
            }
    }

    private static func password(_ text: String, _ entry: Fields) throws -> RegistryCredentials {
        guard let bytes = Base64.decode(text.utf8), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            throw entry.fail("auth", "is not the base64 of NAME:PASSWORD")
        }
        return .password(
            name: String(decoding: bytes[..<colon], as: UTF8.self),
            password: String(decoding: bytes[(colon + 1)...], as: UTF8.self))
    }

    /// Returns the credentials that a credential helper has for a host; nil if it has none.
    private static func ask(
        _ helper: String, for host: String, _ path: String, _ stop: () throws -> Void
    ) throws -> RegistryCredentials? {
        let program = "docker-credential-\(helper)"
        func error(_ why: String) -> MoultError {
            MoultError(
                .credentials, what: "\(program) returned no password for \(host)", why: why,
                now: "Correct \(path), or log in again, for example with: skopeo login \(host)")
        }
        guard !helper.isEmpty, !helper.containsSlash, !helper.hasPrefix(".") else {
            throw error("\"\(helper)\" is not the name of a program")
        }
        let ended = try Subprocess.run(
            [program, "get"], input: Array(host.utf8), within: .seconds(60), limit: 1 << 16, stop: stop)
        guard ended.succeeded else {
            // Docker's helper library reports a missing entry with this text.
            if ended.text.contains("credentials not found") { return nil }
            throw error(ended.text.isEmpty ? ended.complaint : String(ended.text.prefix(200)))
        }
        let json: JSON
        do { json = try JSON(parsing: ended.output, source: program) } catch let broken as MoultError {
            throw error("its output is not valid JSON" + (broken.why.map { ": \($0)" } ?? ""))
        }
        let answer = try Fields(json) { place, why, _ in error("\(place) \(why)") }
        guard let secret = try answer.optionalString("Secret"), !secret.isEmpty else { return nil }
        let name = try answer.optionalString("Username") ?? ""
        return name == "<token>" ? .identity(secret) : .password(name: name, password: secret)
    }
}

/// The tokens, credentials and artifacts that one command has received.
///
/// Requests are made one after the other; the mutex is only needed because the compiler cannot know that.
final class RegistrySession: Sendable {
    private struct State {
        var authorizations: [Purpose: String] = [:]
        var credentials: [Repository: RegistryCredentials.Found] = [:]
        var artifacts: [String: Artifact] = [:]
    }

    /// The access that a token is requested for.
    struct Purpose: Hashable {
        let repository: Repository
        let writes: Bool
        /// The repository that blobs are mounted from.
        var source: String?

        /// The scope in the syntax of token services.
        var scope: String {
            "repository:\(repository.name):\(writes ? "pull,push" : "pull")"
                + (source.map { " repository:\($0):pull" } ?? "")
        }
    }

    private let state = Mutex(State())

    func authorization(for purpose: Purpose) -> String? { state.withLock { $0.authorizations[purpose] } }
    func keep(_ authorization: String?, for purpose: Purpose) {
        state.withLock { $0.authorizations[purpose] = authorization }
    }

    func artifact(_ place: String) -> Artifact? { state.withLock { $0.artifacts[place] } }
    func keep(_ artifact: Artifact?, at place: String) { state.withLock { $0.artifacts[place] = artifact } }

    /// Returns the credentials, which are looked up only once, and only when a registry requires them.
    func credentials(for repository: Repository, stop: () throws -> Void) throws -> RegistryCredentials.Found {
        if let found = state.withLock({ $0.credentials[repository] }) { return found }
        let found = try RegistryCredentials.find(for: repository, stop: stop)
        state.withLock { $0.credentials[repository] = found }
        return found
    }
}

/// The authentication that a registry requires: `Bearer realm="https://…",service="…",scope="…"`.
struct Challenge: Equatable {
    enum Scheme { case basic, bearer }

    let scheme: Scheme
    let realm: String
    let service: String?

    /// Returns the first Bearer challenge of a response, or otherwise the first Basic one; nil if moult supports none of them.
    static func first(of lines: [String]) -> Challenge? {
        let all = lines.compactMap { Challenge($0) }
        return all.first { $0.scheme == .bearer } ?? all.first
    }

    init?(_ line: String) {
        let word = line.prefix { $0 != " " }
        switch word.lowercased() {
        case "basic": scheme = .basic
        case "bearer": scheme = .bearer
        default: return nil
        }
        let parameters = Self.parameters(line.dropFirst(word.count))
        (realm, service) = (parameters["realm"] ?? "", parameters["service"])
        if scheme == .bearer, realm.isEmpty { return nil }
    }

    /// Parses `name="value"` pairs separated by commas; a quoted value may contain commas.
    private static func parameters(_ text: Substring) -> [String: String] {
        var found: [String: String] = [:]
        var rest = text
        while true {
            rest = rest.drop { $0 == " " || $0 == "," || $0 == "\t" }
            guard let equals = rest.firstIndex(of: "=") else { return found }
            let name = rest[..<equals].lowercased()
            rest = rest[rest.index(after: equals)...]
            var value = ""
            if rest.first == "\"" {
                rest = rest.dropFirst()
                while let next = rest.popFirst(), next != "\"" {
                    value.append(next == "\\" ? rest.popFirst() ?? " " : next)
                }
            } else {
                value = String(rest.prefix { $0 != "," })
                rest = rest.dropFirst(value.count)
            }
            if found[name] == nil { found[name] = value }
        }
    }
}
