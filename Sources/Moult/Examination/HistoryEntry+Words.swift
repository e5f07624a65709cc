internal import MoultBasics
internal import StepKit

extension History.Entry {
    /// The action and its outcome in a few words: `update 2.0.0 -> 2.1.0 done in 1.2 s`.
    package var sentence: String { "\(what) \(ending)" }

    /// The action: `update 2.0.0 -> 2.1.0`.
    package var what: String {
        let from = self.from.map { Generation.version(of: $0) } ?? "nothing"
        return action + (self.from == to ? "" : " \(from) -> \(Generation.version(of: to))")
    }

    /// The outcome and the duration: `done in 1.2 s`.
    package var ending: String {
        let time = milliseconds.map { durationText(seconds: Double($0) / 1000) }
        func after(_ words: String) -> String { words + (time.map { " after \($0)" } ?? "") }
        return switch outcome {
        case .done: "done" + (time.map { " in \($0)" } ?? "")
        case .failed: after("failed")
        case .undone: after("failed and undone")
        case .stuck: "failed, and not undone" + (time.map { ", after \($0)" } ?? "")
        case .finished: "finished after an interruption"
        case .cleaned: "interrupted"
        }
    }
}
