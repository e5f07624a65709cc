// Reads a store of moult: takes a lease, opens the files of one release, and opens them again after each update.
const fs = require('fs'), path = require('path'), { spawn } = require('child_process'), { pathToFileURL } = require('url')
const sqlite3 = require('sqlite3')
const [store, directory] = process.argv.slice(2)
const current = () => path.join(store, '.moult', fs.readlinkSync(`${store}/.moult/current`))
const pause = () => new Promise(done => setTimeout(done, 5))
const announced = () => fs.readFileSync(`${store}/.moult/announced`, 'utf8')
const uri = (file, more) => pathToFileURL(file).href + more

/** Keeps the installed release in place until `end` is called. Node has no file locks, so a child process holds it, and ends with this one. */
async function lease() {
  for (;;) {
    const release = current()
    const child = spawn('flock', ['-s', '-w', '60', release, 'sh', '-c', 'echo held; exec cat'])
    await new Promise((done, fail) => { child.stdout.once('data', done); child.once('exit', code => fail(new Error(`flock: ${code}`))) })
    child.removeAllListeners('exit')
    if (current() === release) return { release, end: () => child.stdin.end() }
    child.stdin.end()
  }
}

const open = (address, mode) => new Promise((done, fail) => { const db = new sqlite3.Database(address, mode | sqlite3.OPEN_URI, error => error ? fail(error) : done(db)) })
const text = (db, sql) => new Promise((done, fail) => db.get(sql, (error, row) => error ? fail(error) : done(Object.values(row)[0])))

async function main() {
  const prices = await open(uri(`${store}/prices.db`, ''), sqlite3.OPEN_READWRITE)
  prices.configure('busyTimeout', 60000)
  while (!fs.existsSync(`${directory}/stop`)) {
    const held = await lease(), seen = announced()
    const food = await open(uri(`${held.release}/food.db`, '?mode=ro&immutable=1'), sqlite3.OPEN_READONLY)
    const view = [await text(food, 'SELECT group_concat(DISTINCT release) FROM food'), await text(prices, 'SELECT group_concat(DISTINCT cents) FROM price WHERE own = 0')]
    fs.writeFileSync(`${directory}/node.new`, view.join(' '))
    fs.renameSync(`${directory}/node.new`, `${directory}/node.view`)
    while (announced() === seen && !fs.existsSync(`${directory}/stop`)) await pause()
    await new Promise(done => food.close(done))
    held.end()
  }
}
main().catch(error => { console.error(error); process.exit(1) })
