internal import MoultBasics

extension ManifestReader {
    mutating func bundle(_ fields: Fields) throws -> Manifest.Bundle? {
        guard let part = try fields.optionalObject("bundle") else { return nil }
        let bundle = Manifest.Bundle(
            file: try plainName(part, "file"),
            size: try sealed(part, "size", orDraft: 0, size),
            sha256: try sealed(part, "sha256", orDraft: "", sha256))
        try done(part)
        return bundle
    }

    mutating func patches(_ fields: Fields) throws -> [Manifest.Patch] {
        let parts = try fields.objects("patches")
        guard parts.count <= Manifest.mostPatches else {
            throw fields.fail("patches", "must have at most \(Manifest.mostPatches) patches, but has \(parts.count)")
        }
        return try parts.map { part in
            let patch = Manifest.Patch(
                member: try part.string("member"), from: try version(part, "from"), base: try content(part, "base"),
                result: try content(part, "result"), file: try plainName(part, "file"), size: try size(part, "size"),
                sha256: try sha256(part, "sha256"))
            try done(part)
            return patch
        }
    }

    private mutating func content(_ fields: Fields, _ name: String) throws -> Manifest.Content? {
        guard let part = try fields.optionalObject(name) else { return nil }
        let content = Manifest.Content(size: try size(part, "size"), sha256: try sha256(part, "sha256"))
        try done(part)
        return content
    }
}
