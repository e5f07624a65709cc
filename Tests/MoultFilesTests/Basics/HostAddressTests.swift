import MoultBasics
import Testing

@Suite struct HostAddressTests {
    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "::", "::1", "fc00::1",
        "fdff::1",
        "fe80::1", "febf::1", "fec0::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::127.0.0.1", "64:ff9b::10.0.0.1",
        "2002:7f00:1::", "2002:c0a8:101::1", "[::1]", "[fe80::1]", "[::ffff:169.254.1.1]",
    ])
    func `an address of this machine or its network is local`(text: String) throws {
        #expect(try #require(HostAddress(text)).isLocal)
    }

    @Test(arguments: [
        "1.0.0.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "203.0.113.7", "8.8.8.8",
        "::2:0:0",
        "2001:db8::1", "fbff::1", "fe00::1", "fe7f::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
        "2a00::1",
    ])
    func `an address on the internet is not local`(text: String) throws {
        #expect(try !#require(HostAddress(text)).isLocal)
    }

    @Test(arguments: [
        "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "example.org", "[1.2.3.4", "::g", "0x7f.0.0.1",
    ])
    func `a name is not an address`(text: String) { #expect(HostAddress(text) == nil) }

    @Test func `an address is shown in its usual form`() throws {
        for text in ["192.0.2.1", "2001:db8::1", "::ffff:1.2.3.4"] {
            #expect(try #require(HostAddress(text)).description == text)
        }
        #expect(HostAddress([1, 2, 3]) == nil)
    }
}
