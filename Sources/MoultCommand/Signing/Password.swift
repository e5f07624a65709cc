internal import CLinux
internal import MoultBasics
internal import MoultLibc
internal import MoultTrust

/// The password of a secret key, typed at the terminal without echo, or read from the next line of piped input.
enum Password {
    static func ask(_ prompt: String, orElse other: String = "") throws -> [UInt8] {
        guard StandardInput.isTerminal else {
            if let line = try StandardInput.lineIfAny() { return line }
            throw MoultError(
                .password, .refused, what: "no password was given",
                why: "standard input has no line, and is not a terminal",
                now: "Write the password to the standard input of the command, on one line\(other).")
        }
        while true {
            let typed = try PromptSignals.postponing { try askHidden(prompt) }
            try Interruption.check()
            if let typed { return typed }
        }
    }

    private static func askHidden(_ prompt: String) throws -> [UInt8] {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { throw error("cannot ask for the password") }
        var silent = settings
        silent.c_lflag &= ~tcflag_t(ECHO)
        guard tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0 else { throw error("cannot hide the password") }
        defer {
            // Restores the terminal. This cannot fail, because the calls above have succeeded.
            _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
            say("\n")
        }
        say(prompt)
        return try StandardInput.line { PromptSignals.isPending }
    }

    /// Returns the password for a new key. Asks twice on a terminal, because a typo would make the key permanently unusable.
    static func choose() throws -> [UInt8] {
        let password = try ask("Password for the new key: ", orElse: ", or use --no-password")
        guard !password.isEmpty else {
            throw MoultError(
                .password, .usage, what: "the password is empty", why: "the password protects the secret key",
                now: "Enter one, or use --no-password.")
        }
        if StandardInput.isTerminal, try ask("Repeat the password: ") != password {
            throw MoultError(
                .password, .usage, what: "the two passwords differ", why: "both entries must match", now: "Try again.")
        }
        return password
    }

    /// Writes to stderr, to keep prompts out of the results. A prompt that cannot be shown does not stop the command.
    private static func say(_ text: String) { _ = write(STDERR_FILENO, text, text.utf8.count) }

    private static func error(_ what: String) -> MoultError {
        MoultError(.password, what: what, why: String(cString: strerror(moult_errno())))
    }
}
