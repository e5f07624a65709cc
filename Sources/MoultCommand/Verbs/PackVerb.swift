internal import Moult
internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import StepKit

/// `moult pack`: makes a release of a draft.
enum PackVerb {
    static let draft = Argument(
        .file("DRAFT|DATABASE"), presence: .repeated,
        "The draft of the manifest, as a person writes it; or one or several database files, without a draft")
    static let product = Option(
        "product", value: .text("NAME"), "For database files: what they belong to; else as in the release before")
    static let version = Option(
        "version", value: .text("VERSION"),
        "For database files: the version of the release; else the next minor version after the release before, or 1.0.0"
    )
    static let kind = Option(
        "kind", value: .text("DATABASE=KIND"), repeats: true,
        "For database files: reference, shared, user or cache; else as in the release before, or reference")
    static let writeDraft = Option(
        "write-draft", value: .file(), "For database files: also save the draft that was used, to go on from")
    static let output = Option(
        "output", letter: "o", value: .directory(), "Where manifest and bundle go; else ./releases")
    static let name = Option(
        "name", value: .text("NAME"),
        "Call them NAME.json and NAME.tar.zst, over older ones; else by product and version, which never change")
    static let level = Option("level", value: .number("N", in: 1...19), "How hard zstd tries, 12 if not said")
    static let format = Option(
        "format", value: .choice("KIND", of: ["tar.zst", "tar.xz", "tar.gz", "zip"]),
        "The kind of bundle, tar.zst if not said")
    static let deltaFrom = Option(
        "delta-from", value: .file("MANIFEST"), repeats: true,
        "Also make patches from this older release; may be given several times")
    static let previous = Option(
        "previous", value: .file("MANIFEST"), repeats: true,
        "Also try the release over this older one, and show what changes from it; else from the newest in the output directory, of which the newest three are tried anyway"
    )
    static let checkTimeout = Option(
        "check-timeout", value: .number("SECONDS", in: CheckTime.range),
        "Seconds of the processor that stores allow for the check of a database (else 60 for each GB, and 30 at "
            + "least); here a quarter of that must be enough")
    static let allowDirty = Option("allow-dirty", "Pack although files differ from what is committed")
    static let define = Option(
        "define", value: .text("NAME=VALUE"), repeats: true, "The value of ${NAME} in the draft and its scripts")

    static let command = Command(
        "pack", .publishers, "make a release of a draft: build, prove, seal, pack",
        discussion: [
            """
            Builds or takes in every database of the draft, checks integrity and foreign keys, and writes the bundle \
            and the sealed manifest. The same inputs give the same bytes. The bundle is a tar in zstd that every tar \
            opens. A database that is in use is taken in as it is committed; no input is changed.
            """,
            """
            Then it installs the release for trial: into an empty store, and over the releases before. So whatever a \
            store would refuse is refused here, before the release is public: a check that fails, a migration that \
            does not lead to the new schema, databases that do not open together.
            """,
            """
            Without a draft, name the database files: the release is made like the newest one in the output directory, \
            with the next version and sequence. A new database is of the kind reference, which only releases change: \
            see moult help kinds. A draft without a sequence gets the next one in the same way.
            """,
        ],
        arguments: [draft],
        options: [
            product, version, kind, writeDraft, output, name, level, format, deltaFrom, previous, checkTimeout,
            allowDirty, define,
        ],
        usesStore: false,
        examples: [
            .init("Pack into ./releases:", "moult pack draft.json"),
            .init("The first release of a database file:", "moult pack food.db --product org.example.food"),
            .init("The next one:", "moult pack food.db"),
            .init("As small as zstd can, elsewhere:", "moult pack draft.json -o public --level 19"),
            .init(
                "With patches for stores that have the release before:",
                "moult pack draft.json --delta-from releases/food-2.0.0.json"),
        ],
        exits: [.init(.failure(.refused), "a store could not install it, or files are not committed")],
        run: run)

    private static let stopped = "stopped before anything was packed"

    static func run(_ call: Call) throws -> ExitCode {
        var options = PackOptions()
        options.output = call.value(output) ?? "releases"
        options.name = call.value(name)
        options.level = call.number(level) ?? 12
        options.deltaFrom = call.values(deltaFrom)
        options.previous = call.values(previous)
        options.checkTime = call.trialTime
        options.tryInstall = { try call.trial(in: $2).run($0, over: $1) }
        options.compare = { try call.compare($0, $1) }
        options.allowDirty = call.has(allowDirty)
        options.defines = try call.defines(define)
        if let kind = call.value(format) { options.format = try ArchiveKind(fileName: "x.\(kind)") }
        let bar = call.progressBar()
        options.warn = { call.output.warn("\($0)") }
        defer { bar.end() }
        Interruption.watch()
        options.shouldStop = { Interruption.isRequested }
        options.progress = {
            try Interruption.check(stopped)
            bar.show(Progress($0.what, done: $0.done, of: $0.total > 0 ? $0.total : nil))
        }
        let report = try Interruption.telling(stopped) {
            try call.withDraft(for: options.output) { try Packer(options).pack(draft: $0) }
        }
        bar.end()
        call.output.print(PackedReport(packed: report))
        return .done
    }
}

extension Call {
    /// The draft that was named, or one that is made for the databases that were named.
    fileprivate func withDraft<R>(for output: String, _ body: (String) throws -> R) throws -> R {
        let files = values(PackVerb.draft)
        guard let first = files.first else { throw UsageErrors(verb: command.name).missing(PackVerb.draft) }
        let isDatabase = try files.map(ReleaseDraft.isDatabase)
        guard isDatabase.contains(true) else {
            let forDatabases = [PackVerb.product, PackVerb.version, PackVerb.kind, PackVerb.writeDraft]
            if let option = forDatabases.first(where: has) {
                throw wrongUsage(
                    "--\(option.name) is for database files",
                    why: "\(first) is not a database, and a draft has these in it")
            }
            if files.count > 1 { throw wrongUsage("several drafts cannot be packed at once", why: "name one") }
            return try body(first)
        }
        if let other = zip(files, isDatabase).first(where: { !$0.1 })?.0 {
            throw wrongUsage("\(other) is not a database", why: "name either a draft, or database files")
        }
        var draft = ReleaseDraft(of: files, for: output)
        (draft.product, draft.version, draft.kinds) = (
            value(PackVerb.product), try version(PackVerb.version), try kinds()
        )
        return try Files.withScratchDirectory { scratch in
            let path = try value(PackVerb.writeDraft).map(Files.absolute) ?? "\(scratch)/draft.json"
            let text =
                "// Every field that a draft may have: moult help draft\n"
                + (try draft.json(in: Files.directory(of: path))).pretty
            guard try Files.facts(path) == nil else {
                throw wrongUsage("--write-draft does not overwrite a file", why: "\(path) is there")
            }
            try Files.writeNew(Array(text.utf8), to: path)
            return try body(path)
        }
    }

    private func kinds() throws -> [String: Database.Kind] {
        try defines(PackVerb.kind).mapValues { word in
            if let kind = Database.Kind(rawValue: word) { return kind }
            let all = Database.Kind.allCases.map(\.rawValue)
            throw wrongUsage("--kind must be one of \(all.joined(separator: ", ")), not \"\(word)\"")
        }
    }

    /// A store for the trial of a release.
    func trial(in directory: String) -> TrialInstall {
        TrialInstall(in: directory, checkTime: trialTime) { Interruption.isRequested }
    }

    /// How long the check of a database may take where a release is made.
    var trialTime: CheckTime { CheckTime(fixed: number(PackVerb.checkTimeout), isTrial: true) }

    /// `NAME=VALUE`, as often as it is given.
    func defines(_ option: Option) throws -> [String: String] {
        var defines: [String: String] = [:]
        for text in values(option) {
            guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
                throw wrongUsage("--\(option.name) needs NAME=VALUE, not \"\(text)\"")
            }
            defines[String(text[..<sign])] = String(text[text.index(after: sign)...])
        }
        return defines
    }
}

private struct PackedReport: Report {
    let packed: PackReport

    func write(to page: inout Page) {
        var table = Table(.left(gap: 1), .left, .right, .left)
        for database in packed.databases {
            table.row(
                "\("+", .added)", "\(database.name)", "\(ByteCount(database.size))",
                "sha256 \(database.sha256.prefix(8))\(page.terminal.symbols.ellipsis)")
        }
        page.table(table)
        if let bundle = packed.bundle {
            page.line(
                "\("+", .added) \(bundle)  \(ByteCount(packed.bundleSize).description) for \(ByteCount(packed.contentSize).description)"
            )
        }
        for patch in packed.patches {
            page.line(
                "\("+", .added) \(patch.file)  \(ByteCount(patch.size).description) from \(patch.from.description)")
        }
        page.line("\("+", .added) \(packed.manifest)")
        if let before = packed.counted {
            let after = before.isEmpty ? "the first release there" : "one more than \(before)"
            page.wrapped("sequence \("\(packed.sequence)"): \(after)")
        }
        page.wrapped(packed.trials.text(page.terminal))
        packed.changes?.write(to: &page, bundleSize: packed.bundleSize)
        page.line("apply it with: \(shellLine(["moult", "apply", packed.manifest]))")
    }

    var json: JSON {
        .compact([
            "manifest": .string(packed.manifest), "version": .string(packed.version),
            "sequence": .size(packed.sequence),
            "bundle": .optional(packed.bundle),
            "bundleSize": .size(packed.bundleSize), "contentSize": .size(packed.contentSize),
            "patches": packed.patches.isEmpty
                ? nil
                : .array(
                    packed.patches.map {
                        [
                            "file": .string($0.file), "member": .string($0.member),
                            "from": .string($0.from.description), "size": .size($0.size),
                        ]
                    }),
            "databases": .array(
                packed.databases.map {
                    ["name": .string($0.name), "size": .size($0.size), "sha256": .string($0.sha256)]
                }),
            "trials": packed.trials.json, "trialMilliseconds": .size(packed.trials.milliseconds),
            "changes": packed.changes?.json,
        ])
    }
}

extension Trials {
    /// The trial installs, in one line.
    func text(_ terminal: Terminal) -> StyledText {
        let done = all.filter { $0.skipped == nil }.map { $0.previous.map { "over \($0)" } ?? "into an empty store" }
        let skipped = all.compactMap { trial in
            trial.skipped.map { "; not tried \(trial.previous.map { "over \($0)" } ?? "at all"): \($0)" }
        }
        let what = done.isEmpty ? "not tried" : "tried: it installs \(done.joined(separator: ", "))"
        return
            "\(done.isEmpty ? "!" : terminal.symbols.tick, done.isEmpty ? .warning : .good) \(what + skipped.joined())"
    }

    var json: JSON {
        .array(
            all.map { trial in
                .compact([
                    "previous": .optional(trial.previous?.description), "installed": .bool(trial.skipped == nil),
                    "why": .optional(trial.skipped),
                ])
            })
    }
}
