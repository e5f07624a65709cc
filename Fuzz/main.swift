// Runs one reader with the inputs that libFuzzer generates: Fuzz READER [options of libFuzzer] CORPUS...
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
// The first argument is only for this program, so libFuzzer must not see it.
var count = CommandLine.argc - 1
var arguments = CommandLine.unsafeArgv
for index in 1..<Int(CommandLine.argc) { arguments[index] = arguments[index + 1] }
exit(runFuzzer(&count, &arguments) { fuzzOne($0, $1) })
