import Moult
import MoultLibc

// An app that embeds the library and installs the release of a manifest in a store. Arguments: MANIFEST STORE.
do {
    print(try Store(at: CommandLine.arguments[2]).updateBlocking(to: CommandLine.arguments[1]))
} catch {
    print(error)
    exit(1)
}
