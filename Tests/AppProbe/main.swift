import Moult
import MoultLibc

// An app that embeds the library.
//   AppProbe MANIFEST STORE                     installs a release
//   AppProbe threads UPDATES STORE MANIFEST...  installs the releases in turn, while threads of the same process write and read
//   AppProbe write STORE NAME                     writes until its input ends, and prints the number of rows
let words = CommandLine.arguments
do {
    switch words[1] {
    case "threads": try ThreadedApp(store: Store(at: words[3]), manifests: Array(words[4...])).run(Int(words[2]) ?? 0)
    case "write":
        let writer = try Writer(Store(at: words[2]), words[3])
        print("ready")
        fflush(nil)
        while !isInputClosed() { try writer.write() }
        print("\(writer.name) \(writer.rows)")
    default: print(try Store(at: words[2]).updateBlocking(to: words[1]))
    }
} catch {
    print(error)
    exit(1)
}

/// Returns whether the standard input has ended, without waiting for it.
func isInputClosed() -> Bool {
    var input = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
    return poll(&input, 1, 0) > 0
}
