"""aiosqlite: each connection has a thread of its own; the writable databases stay open."""
import asyncio

import aiosqlite
from common import App, FOODS, NOTE, PRICE, PRICES, TIMEOUT
from moult_store import Store

app = App()
store = Store(app.store)


class Connection:
    @staticmethod
    async def open():
        self = Connection()
        self.attachments = store.attachments()
        uris = dict(self.attachments)
        self.db = await aiosqlite.connect(uris["main"], uri=True, timeout=TIMEOUT, isolation_level=None)
        await self.db.execute("ATTACH ? AS prices", [uris["prices"]])
        await self.db.execute("ATTACH ? AS food", [uris["food"]])
        return self

    async def follow(self):
        """Replaces the read-only database, if a release was announced; returns whether it was."""
        if not self.attachments.lease.is_outdated:
            return False
        await self.db.execute("DETACH food")
        self.attachments.close()
        self.attachments = store.attachments()
        await self.db.execute("ATTACH ? AS food", [dict(self.attachments)["food"]])
        return True

    async def value(self, sql):
        async with self.db.execute(sql) as cursor:
            return (await cursor.fetchall())[0][0]


async def write():
    connection = await Connection.open()
    for number in app.numbers(pause=0):
        await connection.db.execute(NOTE, ("aiosqlite", number))
        app.acknowledge("note", "aiosqlite", number)
        await connection.db.execute(PRICE, (f"aiosqlite {number}", number))
        app.acknowledge("price", "aiosqlite", number)
        await asyncio.sleep(0.03)
    await connection.db.close()


async def redraw():
    connection, is_first = await Connection.open(), True
    for _ in app.numbers(pause=0):
        if await connection.follow() or is_first:
            is_first = False
            app.show(await connection.value(FOODS), await connection.value(PRICES))
        await asyncio.sleep(0.01)
    await connection.db.close()


async def main():
    await asyncio.gather(write(), redraw())


app.run(lambda: asyncio.run(main()))
