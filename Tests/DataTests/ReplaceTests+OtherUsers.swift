import MoultLibc
import TestSupport
import Testing

/// `moult replace` in a directory in which other users can create files.
extension ReplaceTests {
    @Test(.enabled(if: geteuid() == 0, "needs a second user"))
    func `a file that the caller may not write to is refused, and the error says how to proceed`() throws {
        try scratch.must("chmod 777 . && chmod +t . && chown 65534 new1.db && chmod 444 new1.db")
        for (file, advice) in [("app.db", "Run the command as user root"), ("new1.db", "Allow it: chmod u+rw ")] {
            let text = try refusal(
                "setpriv --reuid=65534 --regid=65534 --clear-groups $(which moult) replace \(file) new2.db")
            #expect(text.contains("\(file) cannot be replaced: user "), "\(text)")
            #expect(text.contains(advice), "\(text)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "needs a second user"), arguments: ["a store", "an empty directory", "a link"])
    func `replace does not use another user's store next to the file`(planted: String) throws {
        try scratch.must("chmod 1777 . && chown 4711 app.db && mkdir own && chmod 777 own")
        let other = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        switch planted {
        case "a store":
            try scratch.must(
                "cd own && cp ../new3.db app.db && chown 65534:65534 app.db && \(other) $(which moult) replace -q app.db ../new1.db"
            )
            try scratch.must("mv own/.app.db.moult . && chmod -R a+rwX .app.db.moult")
        case "a link": try scratch.must("\(other) ln -s own .app.db.moult")
        default: try scratch.must("\(other) mkdir -m 777 .app.db.moult")
        }
        for line in ["replace app.db new2.db", "replace --undo app.db"] {
            let text = try refusal("setpriv --reuid=4711 --regid=4711 --clear-groups $(which moult) \(line)")
            #expect(
                text.contains(".app.db.moult \(planted == "a link" ? "is a symbolic link" : "belongs to user ")"),
                "\(text)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "needs a second user"))
    func `replace and cache do not follow another user's link to a directory`() throws {
        try scratch.must(
            """
            chmod 1777 .; mkdir mine; cp app.db mine; chown -R 4711 mine; ln -s mine link; chown -h 65534 link
            echo 'CREATE TABLE other(x);' > other.sql
            """)
        for line in ["replace link/app.db new2.db", "cache link/app.db --schema other.sql"] {
            let text = try refusal("setpriv --reuid=4711 --regid=4711 --clear-groups $(which moult) \(line)")
            #expect(text.contains("the symbolic link \(scratch.path("link")) belongs to user "), "\(line): \(text)")
        }
    }

    /// Any user may create files in a directory like /tmp.
    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `a store of another user in a directory above does not prevent a replacement`() throws {
        try scratch.must("mkdir -m 1777 shared && mkdir shared/mine && mv app.db new1.db shared/mine")
        try scratch.must(
            "moult init -q shared --product org.example.planted && ln -s generations/x shared/.moult/current")
        try scratch.must("chown -hR 65534 shared/moult.json shared/.moult && chmod -R a+rX shared/.moult")
        try scratch.must("cd shared/mine && moult replace -q app.db new1.db && echo 'CREATE TABLE t(x);' > t.sql")
        let cache: Shell.Ended = try scratch.run("cd shared/mine && moult cache -q c.db --schema t.sql")
        #expect(cache.status == 2, "\(cache)")
    }
}
