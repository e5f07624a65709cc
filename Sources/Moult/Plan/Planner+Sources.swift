internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension Planner {
    /// Finds the sources of the release's files: patches, existing files, or the bundle.
    func addSources(to plan: inout Plan, _ manifest: Manifest, _ incoming: Incoming, _ view: RecordingView) throws {
        guard !plan.members.isEmpty, let bundle = manifest.bundle else { return }
        let downloads = Downloads(layout)
        let isDownloaded = plan.origin != nil
        let directory = plan.manifestPath.map(Files.directory(of:))
        let selection = SourceSelection(store: store, manifest: manifest, avoided: avoided) { patch in
            guard let result = manifest.result(of: patch) else { return nil }
            var (path, missing) = ("", 0)
            if let directory {
                path = "\(directory)/\(patch.file)"
                guard try Files.factsThroughLinks(path)?.size == patch.size else { return nil }
            } else {
                guard isDownloaded, incoming.patches.contains(patch.file) else { return nil }
                let place = downloads.place(of: patch)
                (path, missing) = (place.path, try place.missing())
            }
            return Plan.PatchFile(
                file: patch.file, path: path, size: patch.size, sha256: patch.sha256, missing: missing, result: result)
        }
        // A file that a step will change must belong to this release alone, and not share its inode with a kept generation.
        let isChanged = plan.effects.contains { $0.isCustom && $0.database != nil }
        plan.reuse = try isChanged ? [] : selection.reuse(for: plan.members, bundle: cost(of: bundle, plan))
        for patch in plan.patches where directory != nil { view.note(try .read(patch.path, "size")) }
        if !plan.bundled.isEmpty { try addBundle(bundle, of: incoming, to: &plan, view) }
    }

    /// Returns how many bytes of the bundle must be downloaded and read; nil if it is not available.
    private func cost(of bundle: Manifest.Bundle, _ plan: Plan) throws -> (missing: Int, size: Int)? {
        if let path = plan.manifestPath {
            let facts = try Files.factsThroughLinks("\(Files.directory(of: path))/\(bundle.file)")
            return facts?.size == bundle.size ? (0, bundle.size) : nil
        }
        return plan.origin == nil ? nil : (try Downloads(layout).place(of: bundle).missing(), bundle.size)
    }

    /// Adds the bundle, and checks its size before any of it is read.
    private func addBundle(
        _ bundle: Manifest.Bundle, of incoming: Incoming, to plan: inout Plan, _ view: RecordingView
    ) throws {
        if plan.manifestPath == nil, plan.origin != nil {
            let place = Downloads(layout).place(of: bundle)
            plan.bundle = Plan.Bundle(path: place.path, size: bundle.size, missing: try place.missing())
            return
        }
        guard let manifestPath = plan.manifestPath else {
            throw MoultError(
                .refused, .refused, what: "missing database files: \(plan.bundled.joined(separator: ", "))",
                why: "the kept generation does not have them, and the store does not keep bundles",
                now: "Install the release from its manifest: \(moult: "apply", "RELEASE")")
        }
        let path = "\(Files.directory(of: manifestPath))/\(bundle.file)"
        guard let facts = try Files.factsThroughLinks(path) else {
            throw MoultError(
                .refused, what: "the bundle \(path) is missing",
                why: "the manifest refers to this file, but it does not exist",
                now: "Put the bundle next to its manifest.")
        }
        if facts.size != bundle.size {
            throw MoultError(
                .refused, what: "the bundle \(path) does not match its manifest",
                why: "the file has \(facts.size) bytes, and the manifest says \(bundle.size)",
                now: facts.size < bundle.size
                    ? "Copy or download it again: it may be truncated." : "Use the bundle of this release.")
        }
        plan.bundle = Plan.Bundle(path: path, size: bundle.size, unpacked: incoming.unpacked)
        view.note(try .read(path, "size"))
        view.note(try .read(path, "modified"))
    }
}
