internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite

// The verbs of stores for a file that `moult replace` has replaced.

extension Call {
    /// Returns the file that an argument names, if `moult replace` has replaced it, and no store is given.
    func replacedFile(_ word: String?) throws -> ReplacedFile? {
        guard let word, !has(.store) else { return nil }
        return try ReplacedFile.replaced(word)
    }

    /// The error for a file that was not replaced.
    func notReplaced(_ word: String) throws -> MoultError {
        if StoreLocation.isStore(word) {
            return UsageErrors(verb: command.name).tooMany(word, arguments: [], store: word)
        }
        return MoultError(
            .notReplaceable, .refused, what: "\(word) is not a file that `moult replace` has replaced",
            why: "no old content of it is kept", now: "For a store, use --store DIR.")
    }

    func replacement(of file: ReplacedFile, isDry: Bool = false, wait: Int? = nil) -> FileReplacement {
        FileReplacement(file, wait: wait ?? self.wait, isDry: isDry, watcher())
    }

    /// Throws if an option was given that concerns only stores.
    func refuse(_ options: [Option], with file: ReplacedFile) throws {
        guard let option = options.first(where: has) else { return }
        throw wrongUsage(
            "--\(option.name) cannot be used with \(file.name)",
            why: "the option is for stores, and \(file.name) has none")
    }
}

// MARK: status and verify

extension StatusVerb {
    static func show(_ file: ReplacedFile, _ call: Call) throws {
        call.output.print(
            FileStatus(
                check: try file.check(.glance),
                kept: KeptReport(file: file, sets: try file.sets.all(), next: try file.sets.undoable().last)))
    }
}

private struct FileStatus: Report {
    let check: Verifier.Check
    let kept: KeptReport

    func write(to page: inout Page) {
        let finding = check.finding
        page.wrapped("\(check.subject): \(finding?.what ?? "opens", finding == nil ? nil : .bad)")
        page.advice(of: [finding].compactMap(\.self))
        kept.write(to: &page)
    }

    var json: JSON { kept.json.setting("check", to: check.json) }
}

// MARK: quarantine and reset

extension QuarantineVerb {
    static func run(_ call: Call, on file: ReplacedFile) throws -> ExitCode {
        try call.refuse([table], with: file)
        let sets = try file.sets.all()
        let chosen = try call.value(member).map { name in
            guard let set = sets.first(where: { $0.id == name || "\($0.number)" == name }) else {
                throw MoultError(
                    .quarantine, .refused, what: "no old content of \(file.name) is named \"\(name)\"",
                    why: "kept are \(sets.map(\.id).joined(separator: ", "))",
                    now: "To list them: \(moult: "quarantine", file.name)")
            }
            return set
        }
        if call.has(remove) { return try remove(chosen, of: sets, file, call) }
        guard let action = [export, restore].first(where: call.has) else {
            if let chosen {
                show(chosen, call)
            } else {
                call.output.print(KeptReport(file: file, sets: sets, next: try file.sets.undoable().last))
            }
            return .done
        }
        guard let set = chosen, let path = set.file else {
            throw call.wrongUsage("--\(action.name) needs a SET of \(file.name)")
        }
        if let target = call.value(export) {
            try OutputFile.requireDirectory(of: target)
            guard try Files.facts(target) == nil, try Sidecars.of(target).isEmpty else {
                throw MoultError(
                    .quarantine, .refused, what: "\(target), or a sidecar of it, exists",
                    why: "an export never overwrites a file", now: "Choose another file name.")
            }
            try Files.copy(path, to: target, mode: 0o600)
            try Files.syncFile(target)
            showExported(set.id, to: target, call)
            return .done
        }
        Interruption.watch()
        let result = try call.replacement(of: file).restore(set)
        call.output.print(json: .record(["set": set.id, "kept": result.kept.map { [$0.json] } ?? []])) { page in
            page.line(
                result.isChanged ? "\(file.name) was restored from \(set.id)" : "\(file.name) already has this content")
            if let kept = result.kept { page.line("  the replaced content is in \(kept.directory)") }
        }
        return .done
    }

    private static func remove(
        _ chosen: KeptSets.Set?, of sets: [KeptSets.Set], _ file: ReplacedFile, _ call: Call
    ) throws -> ExitCode {
        if let days = call.number(olderThan) {
            let limit = Timestamp.now.seconds - days * 86_400
            let old = (chosen.map { [$0] } ?? sets).filter { $0.since.seconds <= limit }
            // All of them may have data of users.
            let removed = call.has(userData) ? old : []
            try call.replacement(of: file).remove(removed)
            showRemoved(removed, staying: call.has(userData) ? [] : old.map { ($0, "it contains user data") }, call)
            return .done
        }
        guard let set = chosen else { throw call.wrongUsage("--remove needs a SET of \(file.name)") }
        try call.replacement(of: file).remove([set])
        showRemoved([set], call)
        return .done
    }
}

extension ResetVerb {
    static func run(_ call: Call, on file: ReplacedFile) throws -> ExitCode {
        try call.refuse([again], with: file)
        let isDry = call.has(UpdateOptions.dryRun)
        if !call.has(userData), !isDry {
            let words = ["moult", "reset", "--\(userData.name)", file.name]
            throw MoultError(
                .notReplaceable, .refused, what: "\(file.name) was not reset", why: "it may have data of users",
                now: "To keep it aside, and restore the content from before the last replacement: \(run: words)")
        }
        Interruption.watch()
        let result = try call.replacement(of: file, isDry: isDry)
            .reset(why: call.value(reason) ?? "reset by the operator")
        let set = result.restored?.id ?? ""
        call.output.print(
            json: .record([
                "file": file.name, "changed": result.isChanged, "restored": set, "setAside": result.kept?.directory,
            ])
        ) { page in
            guard result.isChanged else { return page.line("\(file.name) already has the content of \(set)") }
            page.line("\("~", .changed) \(file.name) \(isDry ? "gets" : "has") the content of \(set)")
            if let kept = result.kept { page.line("  the content that it had is in \(kept.directory)") }
        }
        return isDry && result.isChanged ? .changes : .done
    }
}
