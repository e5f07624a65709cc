internal import MoultFiles
internal import StepKit

/// The store's directory of downloaded bundles and patches: complete files under their digests, and partial ones to
/// resume.
package struct Downloads {
    package let layout: StoreLayout

    package init(_ layout: StoreLayout) { self.layout = layout }

    package struct Place {
        /// The name of the file next to its manifest.
        package let name: String
        /// The path of the file. Its extension is that of the file name, which determines the format.
        package let path: String
        package let size: Int
        package let sha256: String
        package var partial: String { "\(path).part" }

        package func missing() throws -> Int {
            if let facts = try Files.facts(path), facts.size == size { return 0 }
            return size - min(size, try Files.facts(partial)?.size ?? 0)
        }
    }

    package func place(of bundle: Manifest.Bundle) -> Place { place(bundle.file, bundle.size, bundle.sha256) }
    package func place(of patch: Manifest.Patch) -> Place { place(patch.file, patch.size, patch.sha256) }

    private func place(_ file: String, _ size: Int, _ sha256: String) -> Place {
        Place(name: file, path: "\(layout.downloads)/\(sha256.prefix(16))-\(file)", size: size, sha256: sha256)
    }
}
