package import StepKit

package struct UpdateRequest: Sendable {
    package var follow: Policy.Follow?
    package var allowDowngrade: Bool
    package var app: Version?
    package var consent: Consent
    package var checkTime = CheckTime()
    /// Whether the proofs in the manifest count without a signature, because the caller has made them.
    package var hasProofs = false
    /// A directory with the verified files of the bundle, which then is not unpacked.
    package var unpacked: String?

    package init(
        follow: Policy.Follow? = nil, allowDowngrade: Bool = false, app: Version? = nil, consent: Consent = Consent()
    ) { (self.follow, self.allowDowngrade, self.app, self.consent) = (follow, allowDowngrade, app, consent) }
}

/// Effects on the app's data that need the operator's permission.
package struct Consent: Sendable, Equatable {
    package var takeOver: Set<String>
    /// Whether rows that the installed release preserves may stay behind in quarantine.
    package var acceptsUnpreserved: Bool

    package init(takeOver: Set<String> = [], acceptsUnpreserved: Bool = false) {
        (self.takeOver, self.acceptsUnpreserved) = (takeOver, acceptsUnpreserved)
    }
}
