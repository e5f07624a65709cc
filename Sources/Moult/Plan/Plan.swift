package import MoultBasics
internal import MoultFiles
package import StepKit

/// A planned update: pure data, printed by `plan` and executed by `apply`.
package struct Plan: Sendable, Equatable {
    package static let format = 1

    package var id: String
    package var created: Timestamp
    package var purpose: PlanContext.Purpose
    package var store: String
    package var product: String
    package var from: Generation.Reference?
    package var to: Generation.Reference
    package var manifestPath: String?
    /// Where the release is downloaded from; nil if the operator specified a manifest on this machine.
    package var origin: Origin?
    /// The bundle, if something must be unpacked from it.
    package var bundle: Bundle?
    package var reuse: [Reuse] = []
    package var trust: String
    package var request: Request
    package var effects: [Effect]
    package var calls: [Call] = []
    /// How each external step was prevented from changing anything during planning.
    package var steps: [Enforcement] = []
    /// The bytes that staging needs on the store's file system.
    package var needs: Int
    /// The facts that the plan relies on; if any of them has changed, the plan is stale.
    package var facts: [Fact]
    package var warnings: [Advice]
    package var hold: Hold?
    /// The earlier hold on the same release, which `hold` replaces; restored if the rollback is undone.
    var replacedHold: Hold?

    package struct Enforcement: Sendable, Equatable {
        package var step: String
        package var text: String
    }

    package struct Bundle: Sendable, Equatable {
        package var path: String
        package var size: Int
        /// How many bytes of the bundle must be downloaded first.
        package var missing = 0
        /// A directory with its verified files; nil if the bundle must be unpacked.
        var unpacked: String?
    }

    /// Where a release that is not on this machine was found.
    package struct Origin: Sendable, Equatable {
        /// The address of the feed, or of the manifest itself if the operator specified that.
        package var place: Address
        /// The feed's serial; nil without a feed.
        package var serial: Int?
        /// The manifest's name next to the feed, with its size and digest.
        package var manifest: String
        package var size: Int
        package var sha256: String
        /// The releases that follow this one on the path to the newest.
        package var then: [Version] = []
        /// Remarks for the operator on the choice of the release.
        package var notes: [String] = []
        /// The addresses at which a plan has found the files to download.
        package var found: [Address] = []
    }

    package struct Request: Sendable, Equatable {
        package var follow: Policy.Follow
        package var allowDowngrade: Bool
        package var app: Version?
        package var cacheRoot: String?
        package var takeOver: Set<String> = []
        package var acceptUnpreserved = false
        package var checkTimeout: Int?
        /// Whether a rollback may return to a release on hold.
        package var force = false
    }

    /// An observation: a path, the inspected field, and its value.
    package struct Fact: Sendable, Equatable {
        package var path: String
        package var field: String
        package var value: String
    }

    package var changesStore: Bool { effects.contains(where: \.changesStore) }

    /// The database that a reset is for, and the reason.
    package var reset: (database: String, why: String)? {
        for effect in effects where purpose == .reset {
            guard let database = effect.database else { continue }
            switch effect.change {
            case .quarantine(_, let why, _), .displace(_, let why, _): return (database, why)
            case .restoreRows(_, let table, let set, _, _): return (database, "rows of \(table) from \(set)")
            default: continue
            }
        }
        return nil
    }

    var rollbackReason: String? { hold.flatMap { $0.reason == Hold.rolledBack ? nil : $0.reason } }

    /// Whether the plan restores content from quarantine, instead of starting with an empty database.
    private var restores: Bool {
        effects.contains { effect in
            switch effect.change {
            case .restoreRows: true
            case .quarantine(_, _, let reason), .displace(_, _, let reason): reason == .restored
            default: false
            }
        }
    }

    private var verb: String { restores ? "restore" : purpose.rawValue }
    package var action: String { reset.map { "\(verb) \($0.database)" } ?? purpose.rawValue }

    /// A short description: `update to 2.0.0`.
    package var title: String {
        if let reset { return "\(verb) of \(reset.database)" }
        return "\(verb) to \(to.version)"
    }

    /// The state that an undone update leaves: `1.0.0 is unchanged`.
    var stateAfterUndo: String { from.map { "\($0.version) is unchanged" } ?? "nothing is installed" }
    /// The paths at which writable files are created, or get new content.
    var stagedPaths: [String] { effects.map(\.change.traits).filter(\.isStaged).compactMap(\.paths.last) }
    package func effects(of phase: Phase) -> [Effect] { effects.filter { $0.phase == phase } }

    package var members: [String] {
        var members: [String] = []
        for member in effects.flatMap(\.members) where !members.contains(member) { members.append(member) }
        return members
    }

    /// The number of databases for each kind of change; each database counts once.
    package struct Counts: Sendable, Equatable {
        package var replaced = 0
        package var added = 0
        package var changed = 0
        package var removed = 0
        package var unchanged = 0
    }

    /// An outdated cache that stays for now, because other processes are using it; a later update recreates it.
    package struct Pending: Sendable, Equatable {
        package let database: String
        package let why: String

        package var text: Advice {
            "the cache \(database) is not up to date: \(why). The next update recreates it. "
                + "To recreate it now: \(moult: "reset", database)"
        }
        package var json: JSON { .record(["database": database, "why": why]) }
    }

    package var counts: Counts {
        func names(_ count: ChangeTraits.Count) -> Set<String> {
            Set(effects.filter { $0.change.traits.counts.contains(count) }.compactMap(\.database))
        }
        let (outgoing, incoming, changed, kept) = (names(.leaves), names(.arrives), names(.changes), names(.stays))
        let replaced = incoming.intersection(outgoing)
        return Counts(
            replaced: replaced.count, added: incoming.subtracting(outgoing).count, changed: changed.count,
            removed: outgoing.subtracting(incoming).subtracting(kept).count, unchanged: kept.count)
    }
}

extension Plan {
    package var json: JSON {
        .record([
            "format": Self.format, "plan": id, "created": created.description, "purpose": purpose.rawValue,
            "store": store, "product": product, "from": from?.json, "to": to.json, "manifest": manifestPath,
            "origin": origin?.json, "bundle": bundle?.json, "reuse": reuse.map(\.json).unlessEmpty, "trust": trust,
            "request": JSON.record([
                "follow": request.follow.rawValue, "allowDowngrade": request.allowDowngrade,
                "app": request.app?.description, "cacheRoot": request.cacheRoot,
                "takeOver": request.takeOver.isEmpty ? nil : request.takeOver.sorted(),
                "acceptUnpreserved": request.acceptUnpreserved ? true : nil, "checkTimeout": request.checkTimeout,
                "force": request.force ? true : nil,
            ]), "changes": changesStore, "effects": effects.map(\.json), "consumers": calls.map(\.json),
            "steps": steps.map { JSON.record(["step": $0.step, "enforced": $0.text]) }.unlessEmpty, "needs": needs,
            "facts": facts.map { JSON.record(["path": $0.path, "field": $0.field, "value": $0.value]) },
            "warnings": warnings.map(\.description), "hold": hold?.json, "replacedHold": replacedHold?.json,
        ])
    }

    package init(json: JSON, source: String) throws {
        let fields = try Fields(json) { place, why, now in
            MoultError(
                .stale, .refused, what: "\(source) is not a plan: \(place) \(why)",
                now: now ?? "Create a new plan with: \(moult: "plan", "--output", "FILE", "RELEASE")")
        }
        let format = try fields.integer("format")
        guard format == Self.format else {
            throw fields.fail("format", "is \(format), and this version of moult reads \(Self.format)")
        }
        func valid<Value>(_ part: Fields, _ name: String, _ fault: String, _ read: (String) -> Value?) throws -> Value {
            guard let value = read(try part.string(name)) else { throw part.fail(name, fault) }
            return value
        }
        func side(_ part: Fields) throws -> Generation.Reference {
            let version = try valid(part, "version", "is not a version") { Version($0) }
            let generation = try valid(part, "generation", "is not the name of a generation") {
                Generation.isName($0) ? $0 : nil
            }
            return Generation.Reference(version: version, generation: generation)
        }
        let created = try valid(fields, "created", "is not a time") { Timestamp($0) }
        guard let purpose = try fields.word("purpose", PlanContext.Purpose.self) else {
            throw fields.fail("purpose", "is missing")
        }
        // The identifier becomes the name of a directory.
        let id = try valid(fields, "plan", "is not a plan ID") { Transaction.isID($0) ? $0 : nil }
        let bundle = try fields.optionalObject("bundle")
        let request = try fields.object("request")
        self.init(
            id: id, created: created, purpose: purpose, store: try fields.string("store"),
            product: try fields.string("product"), from: try fields.optionalObject("from").map(side),
            to: try side(fields.object("to")), manifestPath: try fields.optionalString("manifest"),
            origin: try fields.optionalObject("origin").map { try Origin($0) },
            bundle: try bundle.map {
                Bundle(
                    path: try $0.string("path"), size: try $0.count("size"),
                    missing: try $0.optionalCount("missing") ?? 0)
            }, reuse: try fields.objects("reuse").map { try Reuse($0) }, trust: try fields.string("trust"),
            request: Request(
                follow: try request.word("follow", Policy.Follow.self) ?? .newer,
                allowDowngrade: try request.optionalBool("allowDowngrade") ?? false,
                app: try request.optionalString("app").flatMap { Version($0) },
                cacheRoot: try request.optionalString("cacheRoot"),
                takeOver: Set(try request.optionalStrings("takeOver") ?? []),
                acceptUnpreserved: try request.optionalBool("acceptUnpreserved") ?? false,
                checkTimeout: try request.optionalNumber("checkTimeout", in: CheckTime.range),
                force: try request.optionalBool("force") ?? false),
            effects: try (fields.json("effects")?.array ?? []).map { try Effect(json: $0, source: source) },
            calls: try fields.objects("consumers").map { try Call($0) },
            steps: try fields.objects("steps").map {
                Enforcement(step: try $0.string("step"), text: try $0.string("enforced"))
            }, needs: try fields.count("needs"),
            facts: try fields.objects("facts").map {
                Fact(path: try $0.string("path"), field: try $0.string("field"), value: try $0.string("value"))
            }, warnings: (try fields.optionalStrings("warnings") ?? []).map { Advice($0) },
            hold: try fields.optionalObject("hold").map { try Hold($0) },
            replacedHold: try fields.optionalObject("replacedHold").map { try Hold($0) })
    }
}

extension Plan.Bundle {
    fileprivate var json: JSON { .record(["path": path, "size": size, "missing": missing > 0 ? missing : nil]) }
}

extension Plan.Origin {
    fileprivate var json: JSON {
        .compact([
            serial == nil ? "url" : "feed": .string("\(place)"), "serial": serial.map { .size($0) },
            "manifest": .string(manifest), "size": .size(size), "sha256": .string(sha256),
            "then": then.isEmpty ? nil : .array(then.map { .string($0.description) }),
            "notes": notes.isEmpty ? nil : .array(notes.map { .string($0) }),
            "found": found.isEmpty ? nil : .array(found.map { .string("\($0)") }),
        ])
    }

    fileprivate init(_ fields: Fields) throws {
        let url = try fields.optionalString("url")
        self.init(
            place: Address(try url ?? fields.string("feed")), serial: url == nil ? try fields.count("serial") : nil,
            manifest: try fields.string("manifest"), size: try fields.count("size"),
            sha256: try fields.string("sha256"),
            then: (try fields.optionalStrings("then") ?? []).compactMap { Version($0) },
            notes: try fields.optionalStrings("notes") ?? [])
        found = (try fields.optionalStrings("found") ?? []).map { Address($0) }
        if let fault = PlainName.fault(manifest) { throw fields.fail("manifest", "\"\(manifest)\" \(fault)") }
    }
}

extension Plan {
    /// A member made without the bundle: from a file that the store already has, from patches, or both.
    package struct Reuse: Sendable, Equatable {
        package var member: String
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
        package var result: Manifest.Content
    }

    package var patchBytes: Int { patches.reduce(0) { $0 + $1.size } }
    package var patches: [PatchFile] { reuse.flatMap(\.patches) }
    package var missing: Int { (bundle?.missing ?? 0) + patches.reduce(0) { $0 + $1.missing } }
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

    /// Returns whether the member becomes a hard link to the base file or shares its blocks; smaller files are copied.
    func isLinked(in release: Manifest) -> Bool {
        patches.isEmpty && (release.content(of: member)?.size ?? 0) >= SourceSelection.minLinkedSize
    }
}
