internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// `moult completions`: prints shell completions and writes manual pages, generated from the table of verbs.
enum CompletionsVerb {
    static let kind = Argument(
        .choice(
            "KIND",
            of: CompletionShell.allCases.map(\.rawValue) + ["man"] + ArgumentType.StoreNames.allCases.map(\.rawValue)),
        "bash, zsh, fish or man; the scripts also use databases, releases, holds and quarantine, which print the "
            + "store's names")
    static let directory = Argument(
        .directory(), presence: .optional, "The directory for manual pages; only for man, created if missing")

    static let command = Command(
        "completions", .other, "print completions for a shell, or write the manual pages",
        discussion: [
            """
            A completion script goes to stdout. Manual pages, one for each verb and topic, go into a directory. The \
            scripts run this command to complete the names of databases and releases in the current store.
            """
        ], arguments: [kind, directory],
        examples: [
            "For the current bash session:": "source <(moult completions bash)",
            "For all bash sessions of this user:":
                "moult completions bash > ~/.local/share/bash-completion/completions/moult",
            "For zsh, in a directory in its fpath:": "moult completions zsh > ~/.zfunc/_moult",
            "For fish:": "moult completions fish > ~/.config/fish/completions/moult.fish",
            "Write the manual pages:": "moult completions man ~/.local/share/man",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let name = try call.required(kind)
        let place = call.value(directory)
        if let names = ArgumentType.StoreNames(rawValue: name) {
            if let place {
                throw call.wrongUsage("only man takes a directory", why: "unexpected argument \"\(place)\"")
            }
            // Shells split the output into lines, and another user may have chosen a name with a line break, so such names are
            // left out.
            let names = Set(try call.snapshot().names(names)).sorted().filter { name in
                name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            }
            call.output.print(json: .record(["names": names])) { page in for name in names { page.line("\(name)") } }
            return .done
        }
        if let shell = CompletionShell(rawValue: name) {
            if let place {
                throw call.wrongUsage("only man takes a directory", why: "unexpected argument \"\(place)\"")
            }
            let script = shell.script(for: Command.all)
            call.output.print(json: .record(["shell": shell.rawValue, "script": script])) { $0.raw(script) }
        } else {
            guard let place else { throw call.wrongUsage("man needs the argument \(directory.name)") }
            let written = try writeManPages(to: place)
            call.output.print(json: .record(["written": written])) { page in
                for path in written { page.line("\("+", .added) \(path)") }
            }
        }
        return .done
    }

    private static func writeManPages(to directory: String) throws -> [String] {
        let output = try PinnedDirectory.output(directory, creating: true)
        defer { withExtendedLifetime(output) {} }
        var written: [String] = []
        for page in ManPage.all(for: Command.all) {
            let sectionDirectory = "\(directory)/man\(page.section)"
            let section = try PinnedDirectory.output(sectionDirectory, creating: true)
            let path = "\(sectionDirectory)/\(page.fileName)"
            try withExtendedLifetime(section) { try Files.replace(path, with: Array(page.text.utf8)) }
            written.append(path)
        }
        return written
    }
}

extension StoreSnapshot {
    fileprivate func names(_ kind: ArgumentType.StoreNames) throws -> [String] {
        switch kind {
        case .databases: try installed?.manifest.databases.map(\.name) ?? []
        case .releases: try Generation.names(layout).map(Generation.version(of:)) + Generation.names(layout)
        case .holds: try holds.all.map(\.release)
        case .quarantine:
            try QuarantineShelf(layout: layout, settings: settings).sets().flatMap {
                [$0.record?.database, $0.id].compactMap(\.self)
            }
        }
    }
}
