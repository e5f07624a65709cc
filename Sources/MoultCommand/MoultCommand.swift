internal import Glibc

/// The command `moult`.
public enum MoultCommand {
    /// Does what the process's command line says, and ends the process with the status of that.
    public static func run() -> Never {
        StandardDescriptors.secure()
        let environment = Environment.process
        let runner = Runner(commands: Command.all, environment: environment, console: Console(environment: environment))
        exit(runner.run(ProcessArguments.all).rawValue)
    }
}
