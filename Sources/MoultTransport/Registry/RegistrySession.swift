internal import MoultBasics
internal import MoultTrust
internal import Synchronization

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
            ["repository:\(repository.name):\(writes ? "pull,push" : "pull")"].joined()
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
