@testable import MoultCommand

/// Verbs with every feature that a verb can have.
enum SampleCommands {
    static let out = Option("out", letter: "o", value: .file(), "Write it to FILE")
    static let keep = Option("keep", value: .number(in: 1...100), "How many to keep")
    static let only = Option("only", value: .text("NAME"), repeats: true, "Only this database")
    static let kind = Option("kind", value: .choice("KIND", of: ["user", "cache"]), "Only this [kind]: user or cache")
    static let force = Option("force", letter: "f", "Do it all the same")

    static let manifest = Argument(.file("MANIFEST"), "The manifest")
    static let files = Argument(.file(), presence: .repeated, "Files to look at")
    static let name = Argument(.text("NAME"), presence: .optional, "A name")
    static let shell = Argument(.choice("SHELL", of: ["bash", "zsh"]), "The shell")

    static let apply = command("apply", [manifest, name], [out, keep, only, kind, force])
    static let look = command("look", [files])
    static let status = command("status")
    static let shells = command("shells", [shell], usesStore: false)
    static let commands = [apply, look, status, shells]

    private static func command(
        _ name: String, _ arguments: [Argument] = [], _ options: [Option] = [], usesStore: Bool = true
    ) -> Command {
        Command(
            name, .operators, "do \(name)", arguments: arguments, options: options, usesStore: usesStore,
            examples: ["Do it:": "moult \(name)"], run: { _ in .done })
    }
}
