internal import Moult
internal import MoultEngine
internal import MoultLibc
internal import MoultSandbox
public import StepKit

/// The `moult` command. Adding steps takes one line:
///
///     MoultCommand.run(steps: [Reindex()])
public enum MoultCommand {
    /// Runs the process's command line, then exits with the resulting status. `steps` are added to the built-in ones; manifests
    /// refer to them by name.
    public static func run(steps: [any Step] = []) -> Never {
        StandardDescriptors.secure()
        WorkerService.offer(ProcessArguments.all)
        let words = SandboxedReexec.enter(ProcessArguments.all)
        // In a sandboxed process, SIGXFSZ must end the process, and so tell its parent that it wrote too much.
        if !SandboxedReexec.isEntered { InheritedSignals.reset() }
        let environment = Environment.process
        let runner = Runner(
            commands: Command.all, environment: environment, console: Console(environment: environment),
            steps: StepSet.builtIn.adding(steps))
        exit(runner.run(words).rawValue)
    }
}
