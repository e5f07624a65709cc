internal import MoultBasics
internal import StepKit

extension CrashRecovery {
    /// The result of recovering one interrupted update.
    package struct Result: Sendable, Equatable {
        package enum Ending: String, Sendable {
            /// No decision had been recorded: the staged files were removed.
            case cleaned
            /// The decision had been recorded: the update was finished.
            case finished
            /// An undo that had begun was finished.
            case undone
        }
        package let transaction: String
        package let ending: Ending
        /// A description of the update.
        package let update: String
        package let from: Generation.Reference?
        package let to: Generation.Reference?
        /// The plan, if the update was finished.
        package let finished: Plan?
        /// The essential consumer that did not reload after the update was finished; nil if all did.
        package var failed: ConsumerCalls.Failure?
        /// The databases that stay as they are, because their present content does not allow the change.
        package var left: [LeftDatabase] = []
        /// The old content that went to quarantine.
        package var kept: [QuarantineShelf.Set] = []

        package var text: String {
            switch ending {
            case .cleaned: "\(update) was interrupted before it changed anything; its staged files were removed"
            case .finished: "\(update) was interrupted halfway, and is now finished"
            case .undone: "\(update) was interrupted halfway, and is now undone"
            }
        }

        /// The rows that only the old content has. Other counts of the update were lost in the crash.
        var rows: [RowFate] {
            kept.compactMap(\.record).flatMap { record in
                (record.rows ?? [:]).filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { table, count in
                    var fate = RowFate(table: table.text, kept: count)
                    fate.database = record.database
                    return fate
                }
            }
        }
    }
}
