"""Backups of PostgreSQL: the commands of its own tools for a database, without the password."""

import shlex
from urllib.parse import parse_qsl, urlencode, urlsplit

DUMP = "pg_dump --format=custom --file={file} --dbname={url}"
RESTORE = "pg_restore --exit-on-error --single-transaction --no-owner --dbname={url} {file}"
ADVICE = """\
Back up and restore PostgreSQL with its own tools. They ask for the password or read it from ~/.pgpass. Back up:
  {dump}
Restore into an empty database, pause the monitor, and end sessions in the console:
  {restore}
  retainer monitor --pause
  psql {url} -c 'DELETE FROM sessions' -c 'DELETE FROM password_links'"""


def advice(url: str, file: str) -> str:
    """Return the commands that back up and restore a PostgreSQL database."""
    parts = urlsplit(url)
    user, host = parts.username, parts.netloc.rpartition("@")[2]
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if "password" not in name])
    plain = f"postgresql://{user}@{host}{parts.path}" if user else f"postgresql://{host}{parts.path}"
    plain += f"?{query}" if query else ""
    quoted = {"url": shlex.quote(plain), "file": shlex.quote(file)}
    return ADVICE.format(dump=DUMP.format(**quoted), restore=RESTORE.format(**quoted), url=quoted["url"])
