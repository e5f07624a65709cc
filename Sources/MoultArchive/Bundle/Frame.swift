/// One independently compressed piece of a bundle: how large it is in the file, and how large its content is.
package struct Frame: Hashable, Sendable {
    package let packedSize: Int
    package let contentSize: Int

    package init(packedSize: Int, contentSize: Int) {
        self.packedSize = packedSize
        self.contentSize = contentSize
    }
}
