internal import Moult
internal import MoultLibc
internal import MoultSQLite
internal import MoultSandbox
public import StepKit

/// The `moult` command. To add steps:
///
///     MoultCommand.run(steps: [Reindex()])
public enum MoultCommand {
    /// Runs the process's command line, then exits with the resulting status. `steps` are added to the built-in ones; manifests
    /// refer to them by name.
    public static func run(steps: [any Step] = []) -> Never {
        StandardDescriptors.secure()
        WorkerService.offer(ProcessArguments.all)
        let words = SandboxedReexec.enter(ProcessArguments.all)
        // SIGXFSZ must end a sandboxed process, because this tells the parent process that the output was too large.
        if !SandboxedReexec.isEntered { InheritedSignals.reset() }
        ValueLimit.limitHeap()
        let environment = Environment.process
        let runner = Runner(
            commands: Command.all, environment: environment, console: Console(environment: environment),
            steps: StepSet.builtIn.adding(steps), endsStuckSQL: true)
        exit(runner.run(words).rawValue)
    }
}
