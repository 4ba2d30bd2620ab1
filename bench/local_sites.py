"""Sites to be checked: they answer every request and write down when it came. python -m bench.local_sites PORT FILE."""

import asyncio
import sys
import time
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nHello"


async def main(port: int, file: Path) -> None:
    with file.open("w", buffering=1, encoding="utf-8") as seen:

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came = time.time()
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
            await writer.drain()
            writer.close()
            seen.write(f"{came:.6f} {head.split(b' ')[1].decode()}\n")

        server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=2048)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
