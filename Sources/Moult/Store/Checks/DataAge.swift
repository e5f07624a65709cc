package import MoultBasics
internal import MoultFiles
internal import StepKit

package struct DataAge: Sendable, Equatable {
    /// When the publisher made the release; if its manifest does not say so, when it was installed.
    let since: Timestamp
    let limit: Int

    /// Nil without a limit or an installed release, and if its manifest is damaged: other code reports that, or repairs it.
    init?(_ store: StoreSnapshot) throws {
        guard let limit = try store.settings.maxAge, let pointer = try Files.facts(store.layout.current) else {
            return nil
        }
        let installed: Generation?
        do { installed = try store.installed } catch  where !Files.isDenied(error) { return nil }
        guard let installed else { return nil }
        (since, self.limit) = (installed.manifest.created ?? Timestamp(seconds: pointer.changed.seconds), limit)
    }

    package func isOver(at now: Timestamp = .now) -> Bool { now.seconds - since.seconds > limit }
    package var sentence: String { "the installed data is from \(since)" }
    package var reason: String { "\"maxAge\" in moult.json is \(durationText(seconds: Double(limit)))" }

    func require(at now: Timestamp = .now) throws {
        guard isOver(at: now) else { return }
        throw MoultError(
            .tooOld, .refused, what: sentence, why: reason, now: "Install a newer release: \(moult: "apply")")
    }
}
