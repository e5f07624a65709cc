internal import MoultBasics
internal import MoultSQLite

/// Replaces commands in the advice of errors with functions of this library, because an app has no shell.
enum Advice {
    /// Runs the body and replaces each command that an error advises with the matching function of this library. Every function
    /// that an app calls runs here.
    static func forApps<R>(_ body: () throws -> R) throws -> R {
        try AppProcess.prepare()
        do { return try body() } catch var error as MoultError {
            error.now = error.now.map(translated)
            throw error
        }
    }

    /// The functions, by the verb of the command that each replaces. The code that creates an error does not know whether the
    /// command or an app will report it, so its advice names a command, which `AdvisedCommands` finds by its form.
    private static let functions = [
        "apply": "Store.update(to:follow:)", "plan": "Store.plan(_:)",
        "rollback": "Store.rollback(to:reason:)",
        "recover": "Store.recover(undo:)", "reset": "Store.reset(NAME)", "hold": "Store.hold(_:reason:)",
        "unhold": "Store.unhold(NAME)", "status": "Store.status()", "verify": "Store.verify(deep:)",
        "history": "Store.history(_:)", "clean": "Store.clean(keep:)", "quarantine": "Store.quarantine()",
        "check": "Store.newest(app:)",
    ]

    static func translated(_ advice: String) -> String {
        var advice = advice
        // In an app, installing the first release creates the store.
        if let command = advice.firstRange(of: "moult init "),
            let end = advice.firstRange(of: "or with the first release: ")
        {
            advice.removeSubrange(command.lowerBound..<end.upperBound)
        }
        return AdvisedCommands.replaced(in: advice) { command in
            let verb = String(command.prefix { $0 != " " })
            guard var function = functions[verb] else { return "moult \(command)" }
            let words = command.split(separator: " ").dropFirst()
            var name = words.first { !$0.hasPrefix("-") }.map { "\"\($0)\"" } ?? "_:"
            if words.contains("--set-user-data-aside") { name += ", settingUserDataAside: true" }
            function.replace("NAME", with: name)
            if words.contains("--undo") { function.replace("undo:", with: "undo: true") }
            if words.contains("--allow-downgrade") { function.replace("follow:", with: "follow: .match") }
            return function
        }
        .replacing("wait for the other process: --wait SECONDS", with: "wait longer: waiting:")
        .replacing("with --allow-downgrade", with: "with follow: .match")
        // An app kills no other process.
        .replacing(", or let moult kill it: --force-after SECONDS", with: ".")
        .replacing(
            ", or continue without it and kill the processes that block the update: --force-after SECONDS", with: ".")
    }
}
