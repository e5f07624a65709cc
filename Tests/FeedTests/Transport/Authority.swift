import MoultBasics
import MoultFiles
import TestSupport

/// A certificate authority for the servers of the tests.
struct Authority {
    let directory: String
    var certificate: String { "\(directory)/ca.pem" }

    init(in directory: String) throws {
        self.directory = directory
        try Files.ensureDirectory(directory)
        try Shell.must(
            [
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=feather authority", "-days", "2",
            ], in: directory)
    }

    /// Creates `NAME.pem` and `NAME.key` for a server with this name, such as `IP:127.0.0.1`; returns the path without
    /// its extension. With -1 days, the certificate expired yesterday.
    func certify(_ subject: String, as name: String, days: Int = 2) throws -> String {
        try Shell.must(
            [
                "sh", "-ec",
                """
                openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout \(name).key -subj /CN=server -out \(name).csr
                echo 'subjectAltName=\(subject)' > \(name).ext
                openssl x509 -req -in \(name).csr -CA ca.pem -CAkey ca.key -CAcreateserial -days \(days) -extfile \(name).ext -out \(name).pem
                """,
            ], in: directory)
        return "\(directory)/\(name)"
    }
}
