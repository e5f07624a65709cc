import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultCommand

@Suite struct StoreLocationTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func find(option: String? = nil, variables: [String: String] = [:]) throws -> String {
        try StoreLocation.find(option: option, environment: Environment(variables), from: scratch.path)
    }

    @Test func `--store takes precedence`() throws {
        try scratch.write("moult.json", "{}")
        #expect(try find(option: "a", variables: ["MOULT_STORE": "b"]) == "a")
    }

    @Test func `without --store, MOULT_STORE specifies the store`() throws {
        try scratch.write("moult.json", "{}")
        #expect(try find(variables: ["MOULT_STORE": "b"]) == "b")
        #expect(try find(variables: ["MOULT_STORE": ""]) == scratch.path)
    }

    @Test
    func `without --store and MOULT_STORE, the store is the current directory or its subdirectory store`() throws {
        try #require(mkdir(scratch.path("store"), 0o755) == 0)
        try scratch.write("store/moult.json", "{}")
        #expect(try find() == scratch.path("store"))
        try scratch.write("moult.json", "{}")
        #expect(try find() == scratch.path)
    }

    @Test func `a missing store is an error with advice`() throws {
        let error = try #require(throws: MoultError.self) { try find() }
        #expect(error.code == .noStore)
        #expect(error.what == "no store is specified, and this directory is not a store")
        let here = scratch.path
        #expect(error.why == "neither \(here)/moult.json nor \(here)/store/moult.json exists")
        #expect(
            error.now?.description
                == "Specify one with --store DIR or MOULT_STORE. To create one with a release: moult apply --create RELEASE"
        )
    }
}
