package import MoultBasics
internal import MoultFiles
internal import MoultTransport
package import MoultTrust
internal import StepKit

/// Reads a feed as a new store with the given keys would. The store is temporary.
package struct TrialFollow {
    private let keys: TrustedKeys?

    /// Without keys, the store trusts none, and signatures are not checked.
    package init(trusting keys: TrustedKeys?) { self.keys = keys }

    /// Returns the reasons why a store would reject the feed at this path, or some of its releases, with advice for the
    /// publisher. The caller checks that the files exist and match the feed.
    package func faults(of feed: String, product: String) throws -> [MoultError] {
        try Files.withScratchDirectory { scratch in
            var settings = Settings(product: product)
            settings.keys = keys
            let root = "\(scratch)/store"
            try Orchestrator.create(at: root, settings)
            let orchestrator = try Orchestrator(root: root, steps: .builtIn)
            let request = FeedRequest(place: Address(try Files.absolute(feed)))
            let follower = try orchestrator.follower(request, orchestrator.snapshot())
            do {
                let current = try follower.ask()
                return current.feed.releases.filter { $0.withdrawn == nil }.compactMap { release in
                    do {
                        _ = try follower.incoming(release, of: current)
                        return nil
                    } catch var error as MoultError {
                        if [.notThere, .digest, .badAnswer].contains(error.code) { return nil }
                        error.now =
                            "If its files cannot be restored, withdraw the release: "
                            + "\(publish(feed, "--withdraw", "\(release.version)", "--reason", "TEXT"))"
                        return error
                    } catch { return MoultError(.system, what: "\(error)", cause: error) }
                }
            } catch var error as MoultError where error.outcome == .refused {
                error.now =
                    switch error.code {
                    // `publish` does not sign a feed that was changed after it was signed.
                    case .badSignature: "Restore the feed and its signatures from a copy that you trust."
                    // Nor does it sign with a new key alone.
                    case .unknownKey where try hasKeyList(feed):
                        "Stores trust the keys in the feed's key list through its root keys. Check with a root key: "
                            + "\(moult: "publish", Files.directory(of: feed), "--check", "--trust", "ROOT.pub")"
                    case .unknownKey:
                        "Sign the feed with its own key and with a key that stores trust: "
                            + "\(publish(feed, "--key", "OLD.key", key: "NEW.key"))"
                    default: "Sign the feed again with a key that stores trust: \(publish(feed))"
                    }
                return [error]
            }
        }
    }

    private func hasKeyList(_ feed: String) throws -> Bool {
        try Files.list(Files.directory(of: feed)).contains { KeyList.isFileName($0) }
    }

    private func publish(_ feed: String, _ options: String..., key: String = "FILE") -> Advice.Command {
        Advice.Command(["moult", "publish", Files.directory(of: feed)] + options + ["--key", key])
    }
}
