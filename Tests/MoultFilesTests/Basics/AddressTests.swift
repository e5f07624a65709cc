import MoultBasics
import Testing

@Suite struct AddressTests {
    @Test(arguments: [
        ("https://a.org/x/feed.json?token=secret", "https://a.org/x/feed.json?***"),
        ("https://a.org/feed.json#secret", "https://a.org/feed.json#***"),
        ("https://a.org/feed.json?#secret", "https://a.org/feed.json?***"),
        ("https://me:secret@a.org:8443/npm@1.2/f?secret", "https://***@a.org:8443/npm@1.2/f?***"),
        ("https://secret@a.org", "https://***@a.org"), ("https://me:se@cret@a.org/", "https://***@a.org/"),
        // The password has an unescaped slash or question mark.
        ("https://me:sec/ret@a.org/", "https://***"), ("https://me:sec?ret@a.org/", "https://***?***"),
        ("HTTPS://a.org?secret", "HTTPS://a.org?***"), ("ftp://me:secret@a.org/", "ftp://***@a.org/"),
        ("https:/a.org/f?secret", "https:/a.org/f?***"), ("https:/me:secret@a.org/f", "https:/***@a.org/f"),
        ("https://[::1]:80/f?secret", "https://[::1]:80/f?***"),
    ])
    func `a URL with secrets is shown without them`(_ text: String, _ shown: String) {
        let address = Address(text)
        #expect(address.description == shown)
        #expect("\(address) \(String(reflecting: address)) \(Optional(address) as Any)".contains("secret") == false)
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains("secret"))
        #expect(Address(shown).description == shown && Address(shown).isRedacted && !address.isRedacted)
        #expect(!address.redacted("no answer from \(text)").contains("secret"))
    }

    @Test(arguments: ["/srv/what?.json", "file:///srv/what?.json", "https://a.org/feed.json", "releases/feed#1.json"])
    func `a URL without secrets is shown unchanged`(_ text: String) {
        #expect(Address(text).description == text && !Address(text).hasSecrets && !Address(text).isRedacted)
    }

    /// A library may quote only a part of the address.
    @Test(arguments: [
        ("cannot get https://a.org/f?token=secret: timeout", "cannot get https://a.org/f?***: timeout"),
        ("bad parameter token=secret", "bad parameter ***"), ("no connection to a.org", "no connection to a.org"),
    ])
    func `a message that quotes an address or its query is shown without the secret`(_ text: String, _ shown: String) {
        #expect(Address("https://a.org/f?token=secret").redacted(text) == shown)
    }

    @Test func `a message about a file or a URL without secrets is shown unchanged`() {
        #expect(Address("/srv/f?x").redacted("cannot read /srv/f?x") == "cannot read /srv/f?x")
        #expect(
            Address("https://a.org/f").redacted("no answer from https://a.org/f") == "no answer from https://a.org/f")
    }
}
