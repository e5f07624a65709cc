internal import MoultBasics
internal import MoultSQLite

/// An app has no shell: the errors that it gets name functions of this library instead of commands.
extension Advice {
    /// Runs the body; the advice of an error is the one for apps. Every function that an app calls runs here.
    static func forApps<R>(_ body: () throws -> R) throws -> R {
        try AppProcess.prepare()
        do { return try body() } catch var error as MoultError {
            error.now = error.now?.forApps
            throw error
        }
    }

    /// The advice with the matching function of this library in place of each command that has one.
    var forApps: Advice {
        mapping(isForApp: true) { command in Self.function(for: command).map { .text($0) } ?? .command(command) }
    }

    /// The functions, by the verb of the command that each replaces.
    private static let functions = [
        "apply": "Store.update(to:follow:)", "plan": "Store.plan(_:)", "rollback": "Store.rollback(to:reason:)",
        "recover": "Store.recover(undo:)", "reset": "Store.reset(NAME)", "hold": "Store.hold(_:reason:)",
        "unhold": "Store.unhold(NAME)", "status": "Store.status()", "verify": "Store.verify(deep:)",
        "history": "Store.history(_:)", "clean": "Store.clean(keep:)", "quarantine": "Store.quarantine()",
        "check": "Store.newest(app:)",
    ]

    private static func function(for command: Command) -> String? {
        guard var function = command.verb.flatMap({ functions[$0] }) else { return nil }
        let words = command.words.dropFirst(2)
        var name = words.first { !$0.hasPrefix("-") }.map { "\"\($0)\"" } ?? "_:"
        if words.contains("--set-user-data-aside") { name += ", settingUserDataAside: true" }
        function.replace("NAME", with: name)
        if words.contains("--undo") { function.replace("undo:", with: "undo: true") }
        if words.contains("--allow-downgrade") { function.replace("follow:", with: "follow: .match") }
        return function
    }
}
