internal import MoultBasics

extension ScriptRunner {
    /// A dot command that a build script may use.
    private enum Command: String, CaseIterable {
        case bail, echo, exit, headers
        case `import`
        case mode, nullvalue, print, quit, read, separator
    }

    /// Runs one line that starts with a dot.
    func run(_ line: DotCommand) throws {
        try options.progress(.running(line.place))
        guard let command = Self.command(line.name) else { throw unknown(line) }
        switch command {
        case .bail: settings.bails = try flag(line)
        case .echo: settings.echoes = try flag(line)
        case .headers: settings.showsHeaders = try flag(line)
        case .import: try importRows(line)
        case .mode: try setMode(line)
        case .nullvalue: settings.nullValue = try only(line, "STRING")
        case .print: options.output(Array(line.arguments.joined(separator: [0x20])) + [0x0A])
        case .read:
            let names = try line.names
            guard names.count == 1 else { throw usage(line, ".read FILE") }
            let name = names[0]
            let path = try rule.resolve(name, at: line.place)
            try run(path: path, file: rule.shown(name), from: line.place)
        case .separator:
            let words = try line.texts
            guard (1...2).contains(words.count) else { throw usage(line, ".separator COL [ROW]") }
            settings.column = line.arguments[0]
            if words.count == 2 { settings.row = line.arguments[1] }
        case .exit, .quit:
            guard line.arguments.isEmpty else {
                throw usage(line, ".\(command.rawValue), without a status")
            }
            finish()
        }
    }

    /// Returns the command with this name or prefix: three letters are enough, as in the shell. Nil if no command matches.
    private static func command(_ name: String) -> Command? {
        Command(rawValue: name) ?? (name.count < 3 ? nil : Command.allCases.first { $0.rawValue.hasPrefix(name) })
    }

    private func setMode(_ line: DotCommand) throws {
        let name = String(decoding: try only(line, "ascii|csv|list|tabs"), as: UTF8.self)
        if settings.setMode(name) { return }
        throw MoultError(
            .script, what: "\(line.place): .mode \(name) is not supported",
            why: "the supported modes are \(ScriptSettings.modes.joined(separator: ", "))",
            now: didYouMean(name, among: ScriptSettings.modes))
    }

    private func flag(_ line: DotCommand) throws -> Bool {
        let word = String(decoding: try only(line, "on|off"), as: UTF8.self).lowercased()
        switch word {
        case "on", "yes", "1": return true
        case "off", "no", "0": return false
        default: throw usage(line, ".\(line.name) on|off")
        }
    }

    private func only(_ line: DotCommand, _ form: String) throws -> [UInt8] {
        guard try line.texts.count == 1 else { throw usage(line, ".\(line.name) \(form)") }
        return line.arguments[0]
    }

    private func usage(_ line: DotCommand, _ form: String) -> MoultError {
        MoultError(.script, what: "\(line.place): invalid .\(line.name) command", now: "Usage: \(form)")
    }

    private func unknown(_ line: DotCommand) -> MoultError {
        let known = Command.allCases.map(\.rawValue)
        let list = known.map { ".\($0)" }.joined(separator: ", ")
        let hint: Advice? =
            switch line.name {
            case "open", "save", "backup", "clone", "restore": "The option -o specifies the database; remove this line."
            case "once", "output", "excel": "A build prints to standard output; remove this line."
            case "shell", "system": "A script that runs other programs is not repeatable; run them before the build."
            case "cd": "Paths are relative to the script; include the directory in each path."
            case "load": "moult cannot build a database that needs an extension. Remove this line."
            default: didYouMean(line.name, among: known)
            }
        return MoultError(
            .script, what: "\(line.place): unknown command .\(line.name)", why: "a build supports only \(list)",
            now: hint)
    }
}
