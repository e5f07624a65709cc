package import MoultEngine
package import StepKit

/// What somebody asks of a feed, and how it may be taken.
package struct FeedRequest: Sendable {
    /// Another feed than the settings name.
    package var place: String?
    package var follow: Policy.Follow?
    package var allowDowngrade: Bool
    package var allowUnsigned: Bool
    package var app: Version?
    package var consent: Consent

    package init(
        place: String? = nil, follow: Policy.Follow? = nil, allowDowngrade: Bool = false, allowUnsigned: Bool = false,
        app: Version? = nil, consent: Consent = Consent()
    ) {
        self.consent = consent
        (self.place, self.follow, self.app) = (place, follow, app)
        (self.allowDowngrade, self.allowUnsigned) = (allowDowngrade, allowUnsigned)
    }
}
