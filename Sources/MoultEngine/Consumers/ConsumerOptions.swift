package import MoultStore

/// How an update deals with those who have databases open.
package struct ConsumerOptions: Sendable {
    /// The consumers inside of this very process; they come after those of `moult.json`.
    package var inProcess: [Consumer]
    /// After so many seconds nobody is waited for any more, and who still keeps a file from being replaced is ended.
    package var forceAfter: Int?
    /// For so many seconds a finished update waits for readers to leave the generation before; nil: as `moult.json` says.
    package var waitForReaders: Int?

    package init(inProcess: [Consumer] = [], forceAfter: Int? = nil, waitForReaders: Int? = nil) {
        (self.inProcess, self.forceAfter, self.waitForReaders) = (inProcess, forceAfter, waitForReaders)
    }
}
