internal import Moult
internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import StepKit

/// `moult pack`: builds a release from a draft.
enum PackVerb {
    static let draft = Argument(
        .file("DRAFT|DATABASE", orDirectory: true), presence: .several,
        "A draft, or database files, or a directory with them")
    static let product = Option(
        "product", value: .text("NAME"), "For database files: the product (default: as in the previous release)")
    static let version = Option(
        "version", value: .text("VERSION"),
        "For database files: the version (default: the next minor version, or 1.0.0)")
    static let kind = Option(
        "kind", value: .text("DATABASE=KIND"), repeats: true,
        "For database files: reference, shared, user or cache (default: as in the previous release, or reference)")
    static let writeDraft = Option(
        "write-draft", value: .file(), "For database files: also save a draft for later changes")
    static let output = Option(
        "output", letter: "o", value: .directory(), "The directory for manifest and bundle (default ./releases)")
    static let name = Option(
        "name", value: .text("NAME"),
        "Write NAME.json and a bundle of the same name, replacing older ones (default: product and version)")
    static let level = Option("level", value: .number("N", in: 1...19), "The compression level of zstd (default 12)")
    static let format = Option(
        "format", value: .choice("FORMAT", of: ["tar.zst", "tar.xz", "tar.gz", "zip"]),
        "The format of the bundle: tar.zst (default), tar.xz, tar.gz or zip")
    static let patches = Option(
        "patches", value: .number("N", in: 0...50),
        "Make patches from the newest N releases in the output directory, of each channel if it has a feed (default \(PatchBases.defaultCount))"
    )
    static let deltaFrom = Option(
        "delta-from", value: .file("MANIFEST"), repeats: true, "Make patches from this older release, too")
    static let previous = Option(
        "previous", value: .file("MANIFEST"), repeats: true,
        "Test the release as an update of this older one, and show the changes (default: the newest in the output directory; the newest three are always tested)"
    )
    static let step = Option(
        "step", value: .text("NAME=PROGRAM"), repeats: true,
        "The program of a step of the release, which checks the step's parameters in the test")
    static let checkTimeout = Option(
        "check-timeout", value: .number("SECONDS", in: CheckTime.range),
        "CPU seconds that stores allow for checking a database (default: 60 per GB, at least 30); this command "
            + "allows a quarter of that")
    static let allowDirty = Option("allow-dirty", "Pack even if files have uncommitted changes")
    static let define = Option(
        "define", value: .text("NAME=VALUE"), repeats: true, "Set ${NAME} in the draft and its scripts")

    static let command = Command(
        "pack", .publishers, "make a release from a draft or from database files",
        discussion: [
            """
            The command builds or copies every database of the draft, checks integrity and foreign keys, and writes the \
            bundle and the manifest. The same inputs produce the same bytes, unless a warning says otherwise. The \
            databases may be in use, and no input file is changed.
            """,
            """
            Then moult installs the release as a test, into an empty store and over earlier releases. It refuses \
            a release that stores would refuse: if a check fails, a migration does not produce the new schema, or \
            databases do not open together. It names the steps of the release that the test could not run: programs that only \
            stores have.
            """,
            """
            For stores with one of the newest releases in the output directory, moult also makes patches, which are much smaller \
            than a bundle of more than 16 KiB (moult help patches). If the directory has a feed, only its releases count, without the withdrawn ones.
            """,
            """
            Without a draft, specify the database files. Product and kinds are those of the newest release in the \
            output directory, and version and sequence are the next ones. A new database gets the kind "reference": only \
            releases change it (moult help kinds). A draft without a sequence also gets the next one.
            """,
        ], arguments: [draft],
        options: [
            product, version, kind, writeDraft, output, name, level, format, patches, deltaFrom, previous, step,
            checkTimeout, allowDirty, define,
        ], usesStore: false,
        examples: [
            "Pack into ./releases:": "moult pack draft.json",
            "Make the first release from a database file:": "moult pack food.db --product org.example.food",
            "Make the next release:": "moult pack food.db",
            "Pack all databases of a directory:": "moult pack build/ --product org.example.maps",
            "Compress more, into another directory:": "moult pack draft.json -o public --level 19",
            "Add patches for stores with a release in another directory:":
                "moult pack draft.json --delta-from old/food-2.0.0.json",
        ], exits: [.failure(.refused): "stores could not install the release, or files have uncommitted changes"],
        run: run)

    private static let stopped = "stopped before anything was packed"

    static func run(_ call: Call) throws -> ExitCode {
        var options = PackOptions()
        options.output = call.value(output) ?? "releases"
        if let kind = try Files.factsThroughLinks(options.output)?.kind, kind != .directory {
            throw call.wrongUsage("--output needs a directory", why: "\(options.output) is not a directory")
        }
        options.name = call.value(name)
        options.level = call.number(level) ?? 12
        options.patches = call.number(patches) ?? options.patches
        options.deltaFrom = call.values(deltaFrom)
        options.previous = call.values(previous)
        options.checkTime = call.trialTime
        let trial = TrialInstall(
            checkTime: call.trialTime, hasProofs: true, steps: call.steps, programs: try call.defines(step)
        ) { Interruption.isRequested }
        options.tryInstall = { try trial.run($0, over: $1, unpacked: $2) }
        options.whyNotRun = { name in
            switch trial.conduct(name) {
            case .run: nil
            case .checked: "its program accepts the parameters"
            case .unknown: "only stores have it; to check its parameters: --step \(name)=PROGRAM"
            }
        }
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
            bar.show(Progress($0.what, done: $0.done, of: $0.total))
        }
        let report = try Interruption.reporting(stopped) {
            try advising { try call.withDraft(for: options.output) { try Packer(options).pack(draft: $0) } }
        }
        bar.end()
        call.output.print(report)
        return .done
    }

    private static func advising<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch var error as MoultError
            where error.now == nil && [.failed, .refused].contains(error.outcome)
            && ![.interrupted, .system].contains(error.code)
        {
            error.now = "Correct the draft or the file that it names, then run the command again."
            throw error
        }
    }
}

extension Call {
    /// Calls `body` with the path of the given draft, or of one generated for the given databases.
    fileprivate func withDraft<R>(for output: String, _ body: (String) throws -> R) throws -> R {
        let files = try values(PackVerb.draft).flatMap(ReleaseDraft.databases)
        let first = try required(PackVerb.draft)
        for file in files {
            if let why = try ReleaseDraft.misfit(file) {
                throw MoultError(
                    .packing, what: "cannot pack \(file)", why: why,
                    now: "Specify a database file, or the draft of a release: \(moult: "help", "draft")")
            }
        }
        let isDatabase = try files.map(ReleaseDraft.isDatabase)
        guard isDatabase.contains(true) else {
            let forDatabases = [PackVerb.product, PackVerb.version, PackVerb.kind, PackVerb.writeDraft]
            if let option = forDatabases.first(where: has) {
                throw wrongUsage(
                    "--\(option.name) is for database files", why: "\(first) is a draft, which has fields for this")
            }
            if files.count > 1 { throw wrongUsage("several drafts cannot be packed at once", why: "specify one draft") }
            return try body(first)
        }
        if let other = zip(files, isDatabase).first(where: { !$0.1 })?.0 {
            throw wrongUsage("\(other) is not a database", why: "specify either a draft or database files")
        }
        var draft = ReleaseDraft(of: files, for: output)
        (draft.product, draft.version, draft.kinds) = (
            try product(PackVerb.product), try version(PackVerb.version), try kinds()
        )
        return try Files.withScratchDirectory { scratch in
            let path = try value(PackVerb.writeDraft).map(Files.absolute) ?? "\(scratch)/draft.json"
            let json = try draft.json(in: Files.directory(of: path))
            if !has(PackVerb.writeDraft) { try draft.requirePreserve(in: json, advice: savingDraft) }
            let text = ReleaseDraft.commented(json, named: value(PackVerb.writeDraft) ?? path)
            guard try Files.facts(path) == nil else {
                throw wrongUsage("--write-draft does not overwrite a file", why: "\(path) already exists")
            }
            let directory = try OutputFile.directory(of: path)
            try withExtendedLifetime(directory) { try Files.writeNew(Array(text.utf8), to: path) }
            try draft.requirePreserve(in: json, advice: completingDraft)
            do { return try body(path) } catch var error as MoultError {
                if has(PackVerb.writeDraft) {
                    error.now = error.now?.replacing(
                        text: "Nothing was written.", with: "Only \(path) was written, and no release.")
                    throw error
                }
                // The message must not name the generated draft, which the user does not know and which is about to be removed.
                if error.what.hasPrefix("\(path): ") { error.what.removeFirst("\(path): ".count) }
                throw error
            }
        }
    }

    /// Returns the advice for a draft that lacks a line and was not saved.
    private func savingDraft(_ database: String, _ line: String) -> Advice {
        let words =
            ["moult", "pack"] + values(PackVerb.draft) + words(of: command.ownOptions)
            + ["--write-draft", "\(database).draft.json"]
        return
            "Nothing was written. The draft needs this line in \"\(database)\", with the tables whose rows belong to the app "
            + "(or []): \(line) To save the draft: \(run: words)"
    }

    /// Returns the advice for a saved draft that lacks a line.
    private func completingDraft(_ database: String, _ line: String) -> Advice {
        let draft = value(PackVerb.writeDraft) ?? ""
        let output = words(of: [PackVerb.output])
        return
            "The draft was saved, and no release was made. Add this line to \"\(database)\" in \(draft), with the tables whose "
            + "rows belong to the app (or []): \(line) Then run: " + "\(moult: ["pack", draft] + output)"
    }

    private func kinds() throws -> [String: Database.Kind] {
        try defines(PackVerb.kind).mapValues { word in
            if let kind = Database.Kind(rawValue: word) { return kind }
            let all = Database.Kind.allCases.map(\.rawValue)
            throw wrongUsage("--kind must be one of \(all.joined(separator: ", ")), not \"\(word)\"")
        }
    }

    func trial() -> TrialInstall { TrialInstall(checkTime: trialTime) { Interruption.isRequested } }

    /// The time limit for checking a database when a release is built.
    var trialTime: CheckTime { CheckTime(fixed: number(PackVerb.checkTimeout), isTrial: true) }

    func defines(_ option: Option) throws -> [String: String] {
        var defines: [String: String] = [:]
        for text in values(option) {
            guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
                throw wrongUsage(
                    "--\(option.name) has the value \"\(text)\" without \"=\"", why: "write \(option.usage)")
            }
            defines[String(text[..<sign])] = String(text[text.index(after: sign)...])
        }
        return defines
    }
}

extension PackReport: Report {
    func write(to page: inout Page) {
        var table = Table(.left(gap: 1), .left, .right, .left)
        for database in databases {
            table.row(
                "\("+", .added)", "\(database.name)", "\(ByteCount(database.size))",
                "sha256 \(database.sha256.prefix(8))\(page.terminal.symbols.ellipsis)")
        }
        page.table(table)
        if let bundle = bundle {
            page.line(
                "\("+", .added) \(bundle)  \(ByteCount(bundleSize).description) for \(ByteCount(contentSize).description)"
            )
        }
        for patch in patches {
            page.line(
                "\("+", .added) \(patch.file)  \(ByteCount(patch.size).description) from \(patch.from.description)")
        }
        page.line("\("+", .added) \(manifest)")
        for database in databases {
            guard let reason = database.taken?.reason else { continue }
            page.wrapped(
                "\(database.name): not the bytes of the file, because \(reason): SQLite has copied the content")
        }
        if let reason = reasonForSequence { page.wrapped("sequence \("\(sequence)"): \(reason)") }
        if let own = databases.first(where: { $0.group == $0.name })?.name {
            page.wrapped(
                "too many databases for one connection: those with a group of their own open alone, for example with \(run: ["moult", "sql", "--group", own])"
            )
        }
        page.wrapped(trials.text(page.terminal))
        for (step, why) in trials.stepsNotRun {
            page.wrapped("\("!", .warning) trial: the step \(step) was not run: \(why)")
        }
        changes?.write(to: &page, bundleSize: bundleSize)
        page.line("apply it with: \(run: ["moult", "apply", manifest])")
    }

    var json: JSON {
        .record([
            "manifest": manifest, "version": version, "sequence": sequence,
            "bundle": bundle, "bundleSize": bundleSize, "contentSize": contentSize,
            "patches": patches.map {
                JSON.record(["file": $0.file, "member": $0.member, "from": $0.from.description, "size": $0.size])
            }.unlessEmpty,
            "databases": databases.map {
                JSON.record([
                    "name": $0.name, "size": $0.size, "sha256": $0.sha256, "group": $0.group,
                    "sameBytes": $0.taken.map { $0.reason == nil }, "why": $0.taken?.reason,
                    "freeBytes": $0.taken.flatMap { $0.freeBytes > 0 ? $0.freeBytes : nil },
                ])
            }, "trials": trials.json,
            "stepsNotRun": trials.stepsNotRun.map { JSON.record(["step": $0.step, "why": $0.why]) }.unlessEmpty,
            "trialMilliseconds": trials.milliseconds, "changes": changes?.json,
        ])
    }
}

extension Trials {
    func text(_ terminal: Terminal) -> StyledText {
        let done = all.filter { $0.skipped == nil }.map { $0.previous.map { "over \($0)" } ?? "into an empty store" }
        let skipped = all.compactMap { trial in
            trial.skipped.map { "; not tried \(trial.previous.map { "over \($0)" } ?? "in an empty store"): \($0)" }
        }
        let what = done.isEmpty ? "trial: nothing was installed" : "trial: installed \(done.joined(separator: ", "))"
        return
            "\(done.isEmpty ? "!" : terminal.symbols.tick, done.isEmpty ? .warning : .good) \(what + skipped.joined())"
    }

    var json: JSON {
        .array(
            all.map { trial in
                JSON.record([
                    "previous": trial.previous?.description, "installed": trial.skipped == nil, "why": trial.skipped,
                ])
            })
    }
}
