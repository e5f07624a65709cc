// Runs one reader with the inputs that libFuzzer generates: Fuzz READER [options of libFuzzer] CORPUS...
// Fuzz READER --slow SECONDS DIRECTORY CORPUS looks for inputs that take a reader longer than in proportion to their size.
//
// Errors are the expected result of invalid input. An input that ends the process is a bug: turn it into a test.

import MoultLibc

@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

guard CommandLine.argc > 1, Reader.choose(CommandLine.arguments[1]) else {
    print("usage: Fuzz READER [options] CORPUS...\nreaders: \(Reader.all.keys.sorted().joined(separator: " "))")
    exit(64)
}
let words = CommandLine.arguments
if words.count == 6, words[2] == "--slow", let seconds = Int(words[3]) {
    exit(try Growth(words[1], corpus: words[5]).search(seconds: seconds, keepingIn: words[4]))
}
// The first argument is only for this program, so libFuzzer must not see it.
var count = CommandLine.argc - 1
var arguments = CommandLine.unsafeArgv
for index in 1..<Int(CommandLine.argc) { arguments[index] = arguments[index + 1] }
exit(runFuzzer(&count, &arguments) { fuzzOne($0, $1) })
