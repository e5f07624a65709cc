internal import MoultBasics

extension ManifestReader {
    mutating func bundle(_ fields: Fields) throws -> Manifest.Bundle? {
        guard let part = try fields.optionalObject("bundle") else { return nil }
        let bundle = Manifest.Bundle(
            file: try plainName(part, "file"),
            size: try sealed(part, "size", orDraft: 0, size),
            sha256: try sealed(part, "sha256", orDraft: "", sha256),
            frames: try frames(part))
        try done(part)
        return bundle
    }

    private mutating func frames(_ fields: Fields) throws -> Manifest.Frames? {
        guard let part = try fields.optionalObject("frames") else { return nil }
        func sizes(_ name: String) throws -> [Int] {
            guard let json = part.json(name) else { throw part.fail(name, "is missing") }
            guard let list = json.array else { throw part.fail(name, "must be a list, but is \(json.kind)") }
            return try list.enumerated().map { index, json in
                let place = "\(name)[\(index)]"
                guard let size = json.integer else {
                    throw part.fail(place, "must be a whole number, but is \(json.kind)")
                }
                guard (1...1 << 40).contains(size) else {
                    throw part.fail(place, "must be from 1 to \(1 << 40), but is \(size)")
                }
                return Int(size)
            }
        }
        let frames = Manifest.Frames(
            packed: try sizes("packed"), content: try sizes("content"), sha256: try part.string("sha256"))
        guard frames.sha256.utf8.count % 64 == 0, frames.sha256.utf8.allSatisfy(Self.isHex) else {
            throw part.fail("sha256", "must be digests of 64 hexadecimal digits in lower case, one after the other")
        }
        guard frames.packed.count == frames.content.count, frames.sha256.utf8.count == 64 * frames.packed.count else {
            throw fields.fail("frames", "must have as many packed and content sizes as digests")
        }
        try done(part)
        return frames
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
