import MoultBasics
import StepKit
import TestSupport

/// The example steps, each with a suitable store.
enum ExampleSteps: String, CaseIterable, Sendable {
    case notify, reindex

    /// Makes a private copy of the program and returns its path, because other users may be able to write to the
    /// project's directory.
    func program(in scratch: Scratch) throws -> String {
        try Shell.must(["install", "-m", "755", "\(Project.root)/Examples/steps/\(rawValue)", scratch.path(rawValue)])
        return scratch.path(rawValue)
    }

    static let articles = """
        CREATE TABLE article(id INTEGER PRIMARY KEY, body TEXT);
        CREATE VIRTUAL TABLE article_fts USING fts5(body, content='article', content_rowid='id');
        INSERT INTO article(body) VALUES('swifts moult'), ('one feather at a time');
        """

    func world(in scratch: Scratch) throws -> StepWorld {
        switch self {
        case .notify:
            let world = try StepWorld(try program(in: scratch), name: "example.notify", after: .verify)
            try world.settings { $0.setting("with", to: ["directory": .string(world.granted)]) }
            return world
        case .reindex:
            return try StepWorld(
                try program(in: scratch), name: "example.reindex",
                with: ["database": "food", "table": "article_fts"], releases: Releases(more: Self.articles))
        }
    }

    /// Returns the problem with the result of the step; nil if the result matches the installed release.
    func fault(in world: StepWorld, installed: String) throws -> String? {
        switch self {
        case .notify:
            let messages = try Shell.must(["ls", "-A", world.granted]).split(separator: "\n")
            let wanted = installed == "2.0.0" ? 1 : 0
            return messages.count == wanted && messages.allSatisfy { !$0.hasPrefix(".") }
                ? nil : "\(installed) is installed, and there is \(messages)"
        case .reindex:
            guard installed == "2.0.0" else { return nil }
            let found = try Shell.must([
                "sqlite3", "\(world.store)/food.db", "SELECT rowid FROM article_fts WHERE article_fts MATCH 'feather'",
            ])
            return found == "2\n" ? nil : "a search finds \(found)"
        }
    }
}
