// A program that tries system calls one after the other and prints the results, for the tests of the guard.
//
//     GuardProbe CONFINED SCRATCH FILE CALL...
//
// CONFINED is `no`, `alone` (it confines itself) or `reads` (the same, but it may only read SCRATCH).

import CLinux
import MoultFiles
import MoultLibc

let words = CommandLine.arguments
let (scratch, file) = (words[2], words[3])

switch words[1] {
case "alone": try Guard(.examiner, writing: [scratch]).confineThisProcess()
case "reads": try Guard(.examiner, reading: .only([scratch]), writing: [scratch]).confineThisProcess()
default: break
}
for name in words[4...] {
    let answer = Probe(scratch: scratch, file: file).ask(name)
    print(name, answer < 0 ? String(cString: strerror(moult_errno())) : "done", separator: ": ")
}
