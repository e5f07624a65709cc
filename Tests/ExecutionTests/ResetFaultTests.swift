import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

#if DEBUG
    /// A reset in which the first, second, … system call fails: only this call, or all calls from then on.
    @Suite(.tags(.thorough)) struct ResetFaultTests {
        @Test(arguments: [(false, EIO), (true, ENOSPC)])
        func `a reset survives a failure of any system call`(keepsFailing: Bool, code: Int32) throws {
            let releases = try Scratch()
            let manifest = try BrokenStore.release(in: releases.path)
            var (number, failed) = (1, 0)
            var fired = true
            let broken = try BrokenStore(manifest)
            let orchestrator = try Orchestrator(root: broken.root, steps: .builtIn)
            while fired {
                try broken.breakAgain()
                let faults = Faults(failAt: number, code: code, keepsFailing: keepsFailing)
                var failure: (any Error)?
                do {
                    try Faults.$current.withValue(faults) { try broken.store.reset("user", settingUserDataAside: true) }
                } catch { failure = error }
                fired = faults.failedCall != nil
                failed += fired ? 1 : 0
                let note = Comment(
                    "call \(number) (\(faults.failedCall ?? "none")), error \(failure.map { "\($0)" } ?? "none")")
                try inspect(broken, note)
                if failure != nil, (failure as? MoultError)?.outcome != .stuck {
                    // The error says that nothing has changed.
                    #expect(try BrokenStore.set("\(broken.root)/user.db") == broken.original, note)
                    if !keepsFailing {
                        // An app may have used the file that the reset has created, so the undo keeps it.
                        let sets = try orchestrator.quarantine().map(\.record?.reason)
                        #expect(sets.allSatisfy { $0 == .undone }, note)
                    }
                }
                // In any case, the next command that writes recovers, and resetting again succeeds.
                _ = try orchestrator.recover()
                try inspect(broken, note)
                if try !broken.isFresh() { try broken.store.reset("user", settingUserDataAside: true) }
                #expect(try broken.isFresh(), note)
                #expect(try !orchestrator.isUnfinished(), note)
                try inspect(broken, note)
                number += FaultPoints.step
            }
            #expect(failed * FaultPoints.step > FaultPoints.leastCalls)
        }

        /// Expects that no file of the user is lost.
        private func inspect(_ broken: BrokenStore, _ note: Comment) throws {
            for (suffix, places) in try broken.places() {
                #expect(!places.isEmpty, "user.db\(suffix) is lost: \(note)")
            }
        }
    }
#endif
