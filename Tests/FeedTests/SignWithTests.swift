import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `--sign-with`: a command signs with a key that moult does not read.
@Suite struct SignWithTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.must(
            """
            openssl genpkey -algorithm ed25519 -out token.pem 2>/dev/null
            openssl pkey -in token.pem -pubout -outform DER | tail -c 32 > raw
            { echo 'untrusted comment: key in a token'; { printf 'Ed'; sha256sum raw | xxd -r -p | head -c 8; cat raw; } | base64 -w 0; echo; } > token.pub
            echo text > file
            """)
    }

    private let command = #"--sign-with 'openssl pkeyutl -sign -rawin -inkey token.pem -in "$MOULT_FILE"'"#

    @Test func `a key elsewhere signs files, releases and key lists, and minisign verifies them`() throws {
        try bench.must("moult sign file -k token.pub \(command) -q; minisign -V -q -p token.pub -m file")
        try bench.release("1.0.0", sequence: 1)
        try bench.must(
            """
            moult publish public rel/test-1.0.0.json -k token.pub \(command) -q
            moult publish public --check --trust token.pub -q
            moult init --product org.example.test --key token.pub --feed public/feed.json -q
            moult apply -q
            moult keygen -q --no-password release
            moult trust keys -q --product org.example.test --root token.pub --release release.pub -k token.pub \(command)
            """)
    }

    @Test(.tags(.thorough)) func `a key in a token signs through PKCS#11`() throws {
        let module = "/usr/lib/softhsm/libsofthsm2.so"
        let tool = "pkcs11-tool --module \(module) --login --pin 1234"
        try bench.must(
            """
            export SOFTHSM2_CONF=$PWD/softhsm.conf
            mkdir tokens; echo "directories.tokendir = $PWD/tokens" > softhsm.conf
            softhsm2-util --init-token --free --label moult --pin 1234 --so-pin 1234
            \(tool) --keypairgen --key-type EC:edwards25519 --id 01
            \(tool) --read-object --type pubkey --id 01 -o public.pem
            openssl pkey -pubin -in public.pem -outform DER | tail -c 32 > raw
            { head -n 1 token.pub; { printf 'Ed'; sha256sum raw | xxd -r -p | head -c 8; cat raw; } | base64 -w 0; echo; } > hsm.pub
            moult sign file -k hsm.pub --sign-with '\(tool) --sign -m EDDSA --id 01 -i "$MOULT_FILE" -o /dev/stdout' -q
            minisign -V -q -p hsm.pub -m file
            """)
    }

    @Test func `a command that fails or has another key signs nothing`() throws {
        func refusal(_ options: String) throws -> String {
            let ended = try bench.run("moult sign file -k token.pub \(options)")
            #expect(ended.status == 1)
            return ended.errors
        }
        #expect(try refusal("").contains("For a key elsewhere: --sign-with COMMAND"))
        #expect(try refusal("--sign-with 'echo no token >&2; exit 3'").contains("the command failed: no token"))
        #expect(try refusal("--sign-with 'echo short'").contains("it printed 6 bytes"))
        #expect(try refusal("--sign-with 'head -c 64 /dev/zero'").contains("the public key does not verify"))
        #expect(try Files.facts(bench.path("file.minisig")) == nil)
    }
}
