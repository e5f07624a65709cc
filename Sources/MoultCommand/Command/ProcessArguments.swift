/// The words of the command line after the program's name.
enum ProcessArguments {
    /// Nil stands for a word that is not UTF-8: repaired, it would name another file.
    static var all: [String?] {
        (1..<max(1, Int(CommandLine.argc))).map { index in
            CommandLine.unsafeArgv[index].flatMap { String(validatingCString: $0) }
        }
    }
}
