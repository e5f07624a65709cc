internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import MoultTransport
internal import StepKit

/// The checks of the arguments of `moult publish`, before any password is requested.
extension PublishVerb {
    /// Throws if the first argument is a file, because the directory was forgotten.
    static func requireDirectory(_ call: Call) throws {
        let place = try call.required(directory)
        guard !Repository.isRegistryAddress(place), let facts = try Files.factsThroughLinks(place),
            facts.kind != .directory
        else { return }
        let isFeed = Files.name(of: place) == Feed.fileName
        if !isFeed { try refuseMistaken(place, call) }
        var files = isFeed ? call.values(manifests) : [place] + call.values(manifests)
        // The directory may be among the manifests.
        let later = try files.firstIndex { try Files.factsThroughLinks($0)?.kind == .directory }
        let words = [isFeed ? Files.directory(of: place) : later.map { files.remove(at: $0) } ?? "public"] + files
        throw MoultError(
            .publishing, what: "\(place) is not a directory", why: "the first argument is the directory of the feed",
            now: "Specify the directory\(isFeed ? "" : " first"): \(line(words, call))")
    }

    /// Throws if a file is a database, a bundle or a draft instead of the manifest of a release.
    static func refuseMistaken(_ path: String, _ call: Call) throws {
        try MistakenManifest.refuse(path) { manifest in
            let files = call.values(manifests).map { $0 == path ? manifest : $0 }
            let place = call.value(directory).map { $0 == path ? ["public", manifest] : [$0] } ?? []
            return "Publish the release from its manifest: \(line(place + files, call))"
        }
    }

    private static func line(_ arguments: [String], _ call: Call) -> Advice.Command {
        Advice.Command(["moult", "publish"] + arguments + call.words(of: call.command.ownOptions))
    }
}
