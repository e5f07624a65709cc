import StepKit
import Testing

@Suite struct AdoptedGenerationTests {
    @Test(arguments: [("0+adopted", 1), ("0+adopted.2", 2), ("0+adopted.10", 10)])
    func `the generations of adopted files are numbered`(_ name: String, _ number: Int) {
        #expect(AdoptedGeneration.number(of: name) == number)
        #expect(AdoptedGeneration.name(number) == name)
        #expect(AdoptedGeneration.isName(name))
    }

    @Test(arguments: [
        nil, "", "1.0.0+12345678", "0+adopted.", "0+adopted.0", "0+adopted.1", "0+adopted.02", "0+adopted.-2",
        "0+adopted.old", "0+adoptedx",
    ])
    func `other names are not those of adopted files`(_ name: String?) {
        #expect(!AdoptedGeneration.isName(name))
    }
}
