import Moult

let store = Store(at: "store")
try await store.update(to: "releases/phrasebook-2.0.0.json")
let connection = try store.connect()
for row in try connection.rows("SELECT danish, english FROM phrases.phrase WHERE topic = 'shop'") {
    print(row[0], "-", row[1])
}
try connection.execute("INSERT INTO note (text) VALUES (?)", ["ask for rye bread"])
try connection.close()
