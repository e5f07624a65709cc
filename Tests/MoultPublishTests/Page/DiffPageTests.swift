import MoultBasics
import MoultFiles
import MoultPublish
import TestSupport
import Testing

/// The HTML page of a comparison, read with an independent parser.
@Suite struct DiffPageTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func page(_ old: String, _ new: String, samples: Int = 10) throws -> String {
        var options = DiffOptions()
        (options.samples, options.pages) = (samples, true)
        let sides = (try scratch.database("old.db", old), try scratch.database("new.db", new))
        let diff = try ReleaseDiff(from: Subject.open(sides.0), to: Subject.open(sides.1), options: options)
        return DiffPage(diff).html
    }

    /// Returns the tags of the page, and the texts of all cells in order, as Python's parser finds them.
    private func parsed(_ html: String) throws -> (tags: Set<String>, texts: [String]) {
        let program = """
            import html.parser, json, sys
            tags, texts = set(), []
            class P(html.parser.HTMLParser):
                def handle_starttag(self, tag, attributes): tags.add(tag)
                def handle_data(self, data): texts.append(data.strip())
            P().feed(open(sys.argv[1], encoding='utf-8').read())
            print(json.dumps([sorted(tags), texts]))
            """
        let output = try Shell.must(["python3", "-c", program, scratch.file("page.html", html)])
        let lists = try #require(try JSON(parsing: output, source: "python3").array)
        return (Set(lists[0].array?.compactMap(\.string) ?? []), lists[1].array?.compactMap(\.string) ?? [])
    }

    @Test func `names and values in a page are not interpreted as markup`() throws {
        let old = """
            CREATE TABLE "<script>" (id INTEGER PRIMARY KEY, "a<b>&""'" TEXT);
            INSERT INTO "<script>" VALUES (1, 'x'), (2, 'gone');
            """
        let new = """
            CREATE TABLE "<script>" (id INTEGER PRIMARY KEY, "a<b>&""'" TEXT);
            INSERT INTO "<script>" VALUES (1, '</td><img src=x onerror=alert(1)>'), (3, 'left' || char(0x202E) || 'right');
            CREATE INDEX "<i>" ON "<script>" ("a<b>&""'");
            """
        let (tags, texts) = try parsed(page(old, new))
        #expect(tags.isDisjoint(with: ["script", "img", "b>&"]))
        for text in ["<script>", "a<b>&\"'", "</td><img src=x onerror=alert(1)>", "left\\u{202E}right", "<i>", "gone"] {
            #expect(texts.contains(text), "\(text)")
        }
    }

    @Test func `the page loads no other file`() throws {
        let page = try page("CREATE TABLE t (a)", "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)")
        for outside in ["http://", "https://", "src=", "href=", "url(", "@import", "<script"] {
            #expect(!page.contains(outside), "\(outside)")
        }
        #expect(page.contains("default-src 'none'"))
    }

    @Test func `the page has the counts of the comparison`() throws {
        func rows(_ count: Int, from first: Int, _ note: String) -> String {
            """
            CREATE TABLE food (id INTEGER PRIMARY KEY, note TEXT);
            WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + count - 1))
            INSERT INTO food SELECT i, CASE WHEN i > 2500 THEN '\(note)' ELSE 'same' END FROM n;
            """
        }
        // The old database has the rows 1 to 3000, and the new one has the rows 1001 to 4500: 1000 rows were removed,
        // 1500 were added, and the rows 2501 to 3000 were changed.
        let texts = try parsed(page(rows(3000, from: 1, "old"), rows(3500, from: 1001, "new"), samples: 3)).texts
        for text in ["+1,500", "−1,000", "~500"] { #expect(texts.contains(text), "\(text)") }
        let line = try #require(texts.firstIndex(of: "food"))
        #expect(texts[line...].filter { !$0.isEmpty }.prefix(6) == ["food", "3,000", "3,500", "1,500", "1,000", "500"])
        #expect(texts.contains("in 500"))
        // No markup is visible as text.
        #expect(!texts.contains { $0.contains("</") })
        #expect(texts.filter { $0 == ", 3 of them shown" }.count == 3)
    }

    @Test func `the map has a square for each page`() throws {
        let old = """
            CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
            INSERT INTO t SELECT i, printf('%.3000c', 'x') FROM n;
            """
        let page = try page(old, "\(old) UPDATE t SET note = printf('%.3000c', 'y') WHERE id = 50;")
        let pages = try #require(try Files.facts(scratch.path("new.db"))).size / 4096
        #expect(page.components(of: "h9v9h-9z") == pages)
        // Two pages differ: the page with the row, and the first page, which has a change counter.
        #expect(page.contains("2 of \(pages) pages changed"), "\(page)")
    }

    @Test func `the page says that two databases are the same file`() throws {
        let texts = try parsed(page("CREATE TABLE t (a)", "CREATE TABLE t (a)")).texts
        #expect(texts.contains("the same file, byte for byte"))
    }
}

extension String {
    fileprivate func components(of piece: String) -> Int {
        split(separator: piece, omittingEmptySubsequences: false).count - 1
    }
}
