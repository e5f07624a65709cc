internal import MoultBasics
internal import MoultFiles

extension CommandConsumer: ConsumerChannel {
    var summary: String { "command" }
    func canRelease(_ call: ConsumerCall) throws -> Bool { release != nil }
    func release(_ call: ConsumerCall) throws { if let release { try Self.run(release, call) } }
    func reload(_ call: ConsumerCall) throws { if let reload { try Self.run(reload, call) } }

    /// Throws if another user can change a program of the consumer.
    func check(in directory: String) throws {
        for words in [release, reload].compactMap(\.self) { try PathCustody.check(program: words, in: directory) }
    }

    static func run(_ words: [String], _ call: ConsumerCall) throws {
        let ended = try Subprocess.run(
            words, in: call.directory, environment: call.message.environment,
            input: call.message.json.message, within: call.time, stop: call.stop)
        if ended.succeeded { return }
        let command = words.joined(separator: " ")
        switch ended.ending {
        case .timedOut: throw ConsumerFault("pid \(ended.pid) (\(command)) did not exit in time, and was killed")
        case .exited(let status):
            let complaint = ended.errors.isEmpty ? "" : ": \(ended.complaint)"
            throw ConsumerFault("\(command) exited with status \(status)\(complaint)")
        case .signalled(let signal): throw ConsumerFault("\(command) was killed by signal \(signal)")
        }
    }
}

struct ConsumerFault: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
