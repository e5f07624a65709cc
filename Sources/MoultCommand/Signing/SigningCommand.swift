internal import MoultBasics
internal import MoultFiles

/// A shell command that signs with a key that moult cannot read, such as one in a hardware token or a signing service.
struct SigningCommand: Sendable {
    static let option = Option(
        "sign-with", value: .text("COMMAND"),
        "For each public key given with --key: the shell command that prints the Ed25519 signature of $MOULT_FILE")

    let command: String

    func sign(_ bytes: [UInt8], keyID: String) throws -> [UInt8] {
        try Files.withScratchDirectory { scratch in
            let file = "\(scratch)/message"
            try Files.writeNew(bytes, to: file)
            let ended = try Subprocess.shell(command, environment: ["MOULT_FILE": file, "MOULT_KEY_ID": keyID])
            if ended.succeeded { return ended.output }
            throw MoultError(
                .badSignature, what: "cannot sign with key \(keyID)", why: "the command failed: \(ended.complaint)")
        }
    }
}
