#!/bin/sh
# Install the programs that check the files in deploy/ (nginx, Caddy, promtool, systemd-analyze), and PgBouncer. If that
# is impossible, say so: their tests are skipped, but never where CI is set.
set -eu

missing=""
for pair in nginx:nginx-light caddy:caddy promtool:prometheus pgbouncer:pgbouncer systemd-analyze:systemd openssl:openssl; do
    PATH="$PATH:/usr/sbin" command -v "${pair%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
[ -n "$missing" ] || exit 0

give_up() {
    echo "Tests of deploy/ are skipped: $1" >&2
    [ -z "${CI:-}" ]
    exit
}

[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || give_up "install$missing."
# Installed services would start; only the programs are needed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
# shellcheck disable=SC2086  # several packages
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing; } \
    >/dev/null || give_up "apt-get could not install$missing."
