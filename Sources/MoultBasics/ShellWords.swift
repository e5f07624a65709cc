/// A command line that a shell reads as these words.
package func shellLine(_ words: [String]) -> String {
    words.map { word in
        let isPlain = word.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-_./+:=@%,".utf8.contains(byte)
        }
        return isPlain && !word.isEmpty ? word : "'\(word.replacing("'", with: "'\\''"))'"
    }
    .joined(separator: " ")
}
