import MoultBasics
import MoultFiles
import MoultLibc
import MoultTrust
import TestSupport
import Testing

/// Calls the module of the Ansible collection as Ansible does, but without Ansible; `make ansible-test` tests the whole
/// collection.
@Suite struct AnsibleModuleTests {
    private let bench: Bench
    private let key: String

    init() throws {
        bench = try Bench()
        key = try bench.key("a")
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult sign -q rel/test-1.0.0.json -k a.key")
        let ansible = bench.path("ansible/module_utils")
        try bench.must("mkdir -p ansible/module_utils")
        for package in ["", "module_utils/"] { try bench.scratch.write("ansible/\(package)__init__.py", "") }
        try Files.writeNew(Array(Self.basic.utf8), to: "\(ansible)/basic.py")
        try bench.must(
            "mkdir -p ansible_collections/moult && ln -s \(Self.collection) ansible_collections/moult/store")
    }

    private static let collection = "\(Project.root)/integrations/ansible"

    /// The parts of Ansible that the module uses: parameters as input, one line of JSON as output.
    private static let basic = """
        import json, subprocess, sys
        class AnsibleModule:
            def __init__(self, argument_spec, supports_check_mode):
                given = json.loads(sys.argv[1])
                self.check_mode, self._diff = given.pop("check", False), False
                assert not set(given) - set(argument_spec), given
                self.params = {name: given.get(name, rule.get("default")) for name, rule in argument_spec.items()}
            def run_command(self, words):
                ended = subprocess.run(words, capture_output=True, text=True)
                return ended.returncode, ended.stdout, ended.stderr
            def exit_json(self, **result): self.end(0, result)
            def fail_json(self, **result): self.end(1, result)
            def end(self, status, result):
                print(json.dumps(result))
                sys.exit(status)
        """

    /// Runs the module with these parameters, and with the parameters store, product and manifest.
    private func run(_ more: JSON) throws -> (status: Int32, result: JSON) {
        var parameters = more
        for (name, value) in [
            ("store", bench.path("store")), ("product", "org.example.test"),
            ("manifest", bench.path("rel/test-1.0.0.json")),
        ] { parameters = parameters.setting(name, to: .string(value)) }
        let module = "\(Self.collection)/plugins/modules/moult_release.py"
        let ended = try bench.run(
            "python3 -B \(module) '\(parameters.line)'", environment: ["PYTHONPATH": bench.scratch.path])
        return (ended.status, try JSON(parsing: Array(ended.output.utf8), source: ended.errors))
    }

    @Test func `the Ansible module requires either keys or allow_unsigned`() throws {
        for (parameters, end) in [([:], "."), (["keys": [.string(key)], "allow_unsigned": true], ". Both are given.")]
            as [(JSON, String)]
        {
            let (status, result) = try run(parameters)
            #expect(status == 1)
            #expect(
                result["msg"]?.string
                    == "Specify the keys that sign the releases (keys), or accept unsigned releases (allow_unsigned: true)\(end)"
            )
        }
        #expect(try Files.facts(bench.path("store")) == nil)
    }

    @Test func `a store created by the module accepts only files signed by its keys`() throws {
        let (status, result) = try run(["keys": [.string(key)]])
        #expect(status == 0 && result["changed"]?.bool == true)
        #expect(try bench.installed() == "1.0.0")
        #expect(try run(["keys": [.string(key)]]).result["changed"]?.bool == false)
        try bench.release("2.0.0", sequence: 2)
        #expect(try bench.run("moult apply -q rel/test-2.0.0.json").status == 3)
    }

    @Test func `the module refuses a release that a different key signed`() throws {
        let (status, result) = try run(["keys": [.string(try bench.key("b"))]])
        #expect(status == 1)
        #expect(result["rc"]?.integer == 3 && result["outcome"]?.string == "refused")
    }

    @Test func `the module refuses a store that trusts no key or a different key`() throws {
        try bench.must("moult init -q --product org.example.test")
        let (status, result) = try run(["keys": [.string(key)]])
        #expect(status == 1)
        #expect(
            result["msg"]?.string
                == "\(bench.path("store")) trusts no key, but the given keys are \(try bench.id("a")). Change \"keys\" in \(bench.path("store"))/moult.json."
        )
        #expect(try Files.factsThroughLinks(bench.path("store/food.db")) == nil)
    }

    /// The ID of a key is only a number.
    @Test func `the module compares whole keys`() throws {
        try bench.must("moult init -q store --product org.example.test --key a.pub")
        var bytes = try #require(Base64.decode(try bench.key("b").utf8))
        bytes.replaceSubrange(2..<10, with: try #require(Base64.decode(key.utf8))[2..<10])
        let (status, result) = try run(["keys": [.string(Base64.encode(bytes))]])
        #expect(status == 1)
        let id = try bench.id("a")
        #expect(
            result["msg"]?.string?.contains(
                "trusts \(id), but the given keys are \(id) (the keys differ, although their IDs are equal)")
                == true, "\(result)")
        #expect(try run(["keys": [.string(key)]]).status == 0)
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root may change owners"),
        arguments: [
            ("chown 65534 rel/test-1.0.0.json", "read"), ("chmod o+w rel/test-1.0.0.json", "read"),
            ("chown 65534 rel", "read"),
            ("chmod g+w rel", "read"), ("mv rel other; ln -s other rel; chown -h 65534 rel", "read"),
            ("mkfifo f; mv f rel/test-1.0.0.json", "read"), ("cp $(which moult) own; chown 65534 own", "run"),
            ("cp $(which moult) own; chmod 777 own", "run"),
            ("mkdir d; cp $(which moult) d; ln -s d/moult own; chown 65534 d", "run"),
        ])
    func `the module runs and reads nothing that another user can change`(change: String, verb: String) throws {
        try bench.must(change)
        let own = bench.path("own")
        let (status, result) = try run(
            verb == "run" ? ["keys": [.string(key)], "executable": .string(own)] : ["keys": [.string(key)]])
        #expect(status == 1)
        #expect(result["msg"]?.string?.contains("must not be \(verb) by root: ") == true, "\(result)")
        #expect(try Files.facts(bench.path("store")) == nil)
    }

    @Test func `the module reports that the command is missing`() throws {
        let result = try run(["keys": [.string(key)], "executable": "no-such-moult"]).result
        #expect(result["msg"]?.string?.hasPrefix("no-such-moult is not an executable program.") == true)
    }

    @Test func `the module accepts unsigned releases with allow_unsigned`() throws {
        try bench.must("rm rel/test-1.0.0.json.minisig")
        let (status, result) = try run(["allow_unsigned": true])
        #expect(status == 0 && result["changed"]?.bool == true)
    }

    @Test func `the module refuses an invalid key`() throws {
        let (status, result) = try run(["keys": ["RWQ="]])
        #expect(status == 1)
        #expect(try Files.facts(bench.path("store")) == nil, "\(result)")
    }
}
