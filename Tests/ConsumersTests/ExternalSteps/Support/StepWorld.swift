import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport

/// A store whose second release is installed with a step.
struct StepWorld {
    let world: World
    /// A directory that the step may write to.
    let granted: String
    let name: String

    /// Creates a store whose settings run the step after a phase, and trust its program unless `trusted` is false.
    init(
        _ program: String, name: String = "test.step", after phase: Phase = .copy, with: JSON = .object([]),
        timeout: Int = 20, releases: Releases? = nil, trusted: Bool = true
    ) throws {
        world = try World(releases ?? Releases())
        self.name = name
        granted = try world.scratch.directory("granted")
        try settings { settings in
            settings
                .setting("executable", to: .string(program))
                .setting("sha256", to: trusted ? .string(try StepExecutable(program).sha256) : nil)
                .setting("after", to: .string(phase.rawValue))
                .setting("with", to: with)
                .setting("writable", to: [.string(granted)])
                .setting("timeout", to: .size(timeout))
        }
    }

    var store: String { world.store }

    /// Changes the step's settings in moult.json.
    func settings(_ edit: (JSON) throws -> JSON) throws {
        let path = "\(store)/moult.json"
        let json = try JSON(parsing: Files.read(path, limit: 1 << 20) ?? [], as: .draft, source: path)
        let steps = json["steps"] ?? .object([])
        let step = try edit(steps[name] ?? .object([]))
        try Files.replace(path, with: Array(json.setting("steps", to: steps.setting(name, to: step)).pretty.utf8))
    }

    func plan() throws -> Plan { try world.orchestrator().plan(ReleaseFile(world.second)) }

    @discardableResult
    func update(_ watcher: Watcher = Watcher()) throws -> Orchestrator.Result {
        try world.orchestrator(watcher: watcher).update(ReleaseFile(world.second))
    }

    /// Runs the update and returns its error; nil if the update succeeds.
    func failure() throws -> MoultError? {
        do { try update() } catch let error as MoultError { return error }
        return nil
    }
}
