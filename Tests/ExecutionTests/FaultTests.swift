import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

#if DEBUG
    /// A complete update in which the first, second, … system call fails: only this call, or all calls from then on.
    @Suite(.tags(.thorough)) struct FaultTests {
        @Test(arguments: [(false, EIO), (true, ENOSPC)])
        func `an update survives a failure of any system call`(keepsFailing: Bool, code: Int32) throws {
            for releases in [try Releases(inPlace: true), try Releases()] {
                var (number, failed) = (1, 0)
                var fired = true
                while fired {
                    let world = try World(releases)
                    let faults = Faults(failAt: number, code: code, keepsFailing: keepsFailing)
                    // If no file can be removed from then on, the staged files stay until the next command.
                    let staged: Set<String> = keepsFailing ? [".moult/transactions"] : []
                    let before = try world.visible(skipping: staged)
                    var failure: (any Error)?
                    do {
                        try Faults.$current.withValue(faults) {
                            _ = try world.orchestrator().update(ReleaseFile(world.second))
                        }
                    } catch { failure = error }
                    fired = faults.failedCall != nil
                    failed += fired ? 1 : 0
                    let note = Comment(
                        "call \(number) (\(faults.failedCall ?? "none")), error \(failure.map { "\($0)" } ?? "none")")
                    let versions = try world.versions()
                    #expect(versions.count == 1, note)
                    if failure != nil, (failure as? MoultError)?.outcome != .stuck {
                        #expect(try world.visible(skipping: staged) == before, note)
                    }
                    // In any case, the next command that writes recovers, and applying again succeeds.
                    _ = try world.orchestrator().recover()
                    #expect(try world.versions().count == 1, note)
                    _ = try world.orchestrator().update(ReleaseFile(world.second))
                    #expect(try world.versions() == ["2.0.0"], note)
                    #expect(try !world.orchestrator().isUnfinished(), note)
                    number += FaultPoints.step
                }
                #expect(failed * FaultPoints.step > FaultPoints.leastCalls)
            }
        }
    }
#endif
