import MoultBasics
import MoultCommand
import MoultLibc
import TestSupport
import Testing

@Suite struct StoreLocationTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func find(option: String? = nil, variables: [String: String] = [:]) throws -> String {
        try StoreLocation.find(option: option, environment: Environment(variables), from: scratch.path)
    }

    @Test func `the option comes first`() throws {
        try scratch.write("moult.json", "{}")
        #expect(try find(option: "a", variables: ["MOULT_STORE": "b"]) == "a")
    }

    @Test func `then the variable`() throws {
        try scratch.write("moult.json", "{}")
        #expect(try find(variables: ["MOULT_STORE": "b"]) == "b")
        #expect(try find(variables: ["MOULT_STORE": ""]) == scratch.path)
    }

    @Test func `then the current directory and then the one called store`() throws {
        try #require(mkdir(scratch.path("store"), 0o755) == 0)
        try scratch.write("store/moult.json", "{}")
        #expect(try find() == scratch.path("store"))
        try scratch.write("moult.json", "{}")
        #expect(try find() == scratch.path)
    }

    @Test func `no store is an error with advice`() throws {
        let error = try #require(throws: MoultError.self) { try find() }
        #expect(error.code == .noStore)
        #expect(error.what == "no store is named, and this directory is not a store")
        let here = scratch.path
        #expect(error.why == "neither \(here)/moult.json nor \(here)/store/moult.json is there")
        #expect(
            error.now
                == "Name one with --store DIR or MOULT_STORE. To create one with a release: moult apply --create RELEASE"
        )
    }
}
