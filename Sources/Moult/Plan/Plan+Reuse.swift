package import MoultBasics
internal import StepKit

extension Plan {
    /// A member made without the bundle: from a file that the store already has, from patches, or both.
    package struct Reuse: Sendable, Equatable {
        package var member: String
        /// The base file; nil if a patch needs none.
        package var base: Base?
        /// The patches to apply in order; empty if the base has the same content.
        package var patches: [PatchFile]

        package struct Base: Sendable, Equatable {
            package var generation: String
            package var member: String
        }
    }

    /// A patch next to the manifest, or in the store's downloads.
    package struct PatchFile: Sendable, Equatable {
        package var file: String
        package var path: String
        package var size: Int
        package var sha256: String
        /// How many bytes of the patch must be downloaded first.
        package var missing: Int
        /// The content that the patch produces.
        package var result: Manifest.Content
    }

    /// The total size of all patches in bytes.
    package var patchBytes: Int { patches.reduce(0) { $0 + $1.size } }
    package var patches: [PatchFile] { reuse.flatMap(\.patches) }

    /// How many bytes must be downloaded first.
    package var missing: Int { (bundle?.missing ?? 0) + patches.reduce(0) { $0 + $1.missing } }

    /// The members that must be unpacked from the bundle.
    var bundled: [String] { members.filter { member in !reuse.contains { $0.member == member } } }
}

extension Plan.Reuse {
    package var json: JSON {
        .record([
            "member": member, "base": base.map { JSON.record(["generation": $0.generation, "member": $0.member]) },
            "patches": patches.map {
                JSON.record([
                    "file": $0.file, "path": $0.path, "size": $0.size, "sha256": $0.sha256,
                    "missing": $0.missing > 0 ? $0.missing : nil, "result": $0.result.json,
                ])
            },
        ])
    }

    init(_ fields: Fields) throws {
        self.init(
            member: try fields.string("member"),
            base: try fields.optionalObject("base").map {
                Base(generation: try $0.string("generation"), member: try $0.string("member"))
            },
            patches: try fields.objects("patches").map { part in
                let result = try part.object("result")
                return Plan.PatchFile(
                    file: try part.string("file"), path: try part.string("path"), size: try part.count("size"),
                    sha256: try part.string("sha256"), missing: try part.optionalCount("missing") ?? 0,
                    result: .init(size: try result.count("size"), sha256: try result.string("sha256")))
            })
    }
}

extension Plan.Reuse {
    /// Returns whether the member becomes a hard link to the base file or shares its blocks; smaller files are copied.
    func isLinked(in release: Manifest) -> Bool {
        patches.isEmpty && (release.content(of: member)?.size ?? 0) >= SourceSelection.minLinkedSize
    }
}
