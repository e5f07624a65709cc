import MoultBasics

extension Salvage {
    /// The readable objects of a damaged schema.
    struct Schema {
        struct Object {
            let type: String
            let name: String
            let table: String
            let sql: String
        }

        /// A virtual table, and the tables in which its module keeps the content.
        struct Virtual {
            enum Content: Equatable {
                /// In one of the module's tables, with one row for each row of the virtual table.
                case own(table: String)
                /// Only in the virtual table, which must be queried.
                case inside
                /// In another table, from which the index is rebuilt.
                case elsewhere
                /// Nowhere: only the index was kept.
                case nowhere
                /// Nowhere: the table only presents content of other tables.
                case derived
            }

            let object: Object
            let module: String
            let content: Content
        }

        /// Ordinary tables.
        var tables: [Object] = []
        var virtual: [Virtual] = []
        /// Indexes, views and triggers, in an order in which they can be created.
        var others: [Object] = []
        /// Why the schema may be incomplete.
        var note: String?

        init(of connection: Connection) throws {
            var objects: [Object] = []
            do {
                try connection.withStatement("SELECT type, name, tbl_name, sql FROM sqlite_schema") { rows in
                    while try rows.step() {
                        // An index of a UNIQUE or PRIMARY KEY constraint has no text, and is created with its table.
                        if rows.isNull(3) { continue }
                        let object = Object(
                            type: try rows.text(0), name: try rows.text(1), table: try rows.text(2),
                            sql: try rows.text(3))
                        if !SQLName(object.name).isInternal { objects.append(object) }
                    }
                }
            } catch {
                if objects.isEmpty { throw error }
                note = (error as? MoultError)?.why
            }
            let tables = objects.filter { $0.type == "table" }
            virtual = tables.compactMap { Self.virtual($0) }
            let made = Dictionary(virtual.map { (SQLName($0.object.name), $0.object.sql) }) { first, _ in first }
            self.tables = tables.filter { table in
                if made[SQLName(table.name)] != nil { return false }
                let owner = ModuleTables.owner(of: table.name).flatMap { made[SQLName($0)] }
                return owner.flatMap { ModuleTables.isPart(table.name, madeBy: table.sql, ofTableMadeBy: $0) } != true
            }
            // A trigger may be on a view.
            for type in ["view", "index", "trigger"] { others += objects.filter { $0.type == type } }
        }

        /// Parses `CREATE VIRTUAL TABLE name USING module(arguments)`; nil for an ordinary table.
        private static func virtual(_ object: Object) -> Virtual? {
            let tokens = sqlTokens(object.sql)
            guard tokens.count > 4, tokens[0].isWord("create"), tokens[1].isWord("virtual"),
                let using = tokens.firstIndex(where: { $0.isWord("using") }), using + 1 < tokens.count
            else { return nil }
            let module = asciiLowercased(tokens[using + 1].text)
            return Virtual(
                object: object, module: module,
                content: content(module, object.name, Array(tokens[(using + 2)...])))
        }

        private static func content(
            _ module: String, _ name: String, _ arguments: [SQLToken]
        ) -> Virtual.Content {
            switch module {
            case "fts3", "fts4", "fts5":
                // `content=x`, `content='x'`, `content=''`.
                let option = arguments.indices.first {
                    arguments[$0].isWord("content") && $0 + 2 < arguments.count && arguments[$0 + 1].isSymbol("=")
                }
                guard let option else { return .own(table: "\(name)_content") }
                let value = arguments[option + 2].text.trimmingQuotes
                return value.isEmpty ? .nowhere : .elsewhere
            case "rtree", "rtree_i32", "geopoly": return .inside
            // These modules show the index of another table.
            case "fts5vocab", "fts4aux": return .derived
            default: return .nowhere
            }
        }
    }
}

extension String {
    fileprivate var trimmingQuotes: String {
        guard let first = utf8.first, utf8.count >= 2, first == utf8.last, [39, 34, 96].contains(first) else {
            return self
        }
        return String(dropFirst().dropLast())
    }
}
