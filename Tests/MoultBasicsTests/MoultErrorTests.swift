import MoultBasics
import Testing

@Suite struct MoultErrorTests {
    @Test func `a single line has what, why and now`() {
        let error = MoultError(.system, what: "cannot open a.db", why: "no such file", now: "Check the path.")
        #expect("\(error)" == "cannot open a.db: no such file. Check the path.")
    }
}
