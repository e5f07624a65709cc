import MoultBasics
import Testing

@Suite struct MoultErrorTests {
    @Test func `the description of an error has its problem, reason and advice on one line`() {
        let error = MoultError(.system, what: "cannot open a.db", why: "no such file", now: "Check the path.")
        #expect("\(error)" == "cannot open a.db: no such file. Check the path.")
    }
}
