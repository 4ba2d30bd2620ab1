"""Backups of PostgreSQL: the commands of its own tools for a database, without the password."""

import shlex
from urllib.parse import parse_qsl, urlencode, urlsplit

RESTORED = "retainer_restored"
"""The name of the database into which the commands restore."""
ADVICE = """\
Back up and restore PostgreSQL with its own tools. They ask for the password or read it from ~/.pgpass. Back up:
  pg_dump --format=custom --file={file} --dbname={url}
Restore into a new database, pause the monitor and the webhooks, and end sessions in the console:
  psql {url} -c 'CREATE DATABASE {name}'
  pg_restore --exit-on-error --single-transaction --no-owner --dbname={restored} {file}
  psql {restored} -c ANALYZE
  RETAINER_DATABASE_URL={restored} retainer monitor --pause
  RETAINER_DATABASE_URL={restored} retainer deliver --pause
  psql {restored} -c 'DELETE FROM sessions' -c 'DELETE FROM password_links'
Then stop the server, and start it with RETAINER_DATABASE_URL={restored}"""


def advice(url: str, file: str) -> str:
    parts = urlsplit(url)
    user, host = parts.username, parts.netloc.rpartition("@")[2]
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if "password" not in name])

    def address(path: str) -> str:
        plain = f"postgresql://{user}@{host}{path}" if user else f"postgresql://{host}{path}"
        return shlex.quote(plain + (f"?{query}" if query else ""))

    urls = {"url": address(parts.path), "restored": address(f"/{RESTORED}")}
    return ADVICE.format(**urls, file=shlex.quote(file), name=RESTORED)
