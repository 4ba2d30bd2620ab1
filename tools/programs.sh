#!/bin/sh
# Install the programs that tests run but Python packages do not bring: "browser" for pages and samples (Chromium with its driver,
# Node.js, curl, PHP and axe-core), "deploy" for the files in deploy/ (nginx, Caddy, promtool, systemd-analyze) and PgBouncer. If
# that is impossible, say so: their tests are skipped, but never where CI is set.
set -eu
folder=$(dirname "$0")/../tests/browser

give_up() {
    echo "The tests of $kind are skipped: $1" >&2
    [ -z "${CI:-}" ]
    exit
}

install() {
    missing=""
    for pair; do
        PATH="$PATH:/usr/sbin" command -v "${pair%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    [ "$kind" != browser ] || php -m 2>/dev/null | grep -qx curl || missing="$missing php-curl"
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] && sudo="" || sudo="sudo --non-interactive"
    command -v apt-get >/dev/null && $sudo true 2>/dev/null || give_up "install$missing."
    # Installed services would start; only the programs are needed.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
        trap '$sudo rm -f "$policy"' EXIT
        $sudo chmod +x "$policy"
    fi
    # shellcheck disable=SC2086  # several packages
    { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing; } \
        >/dev/null || give_up "apt-get could not install$missing."
}

kind=$1
case $kind in
browser)
    install chromium:chromium chromedriver:chromium-driver node:nodejs npm:npm curl:curl php:php-cli
    if [ ! -f "$folder/node_modules/axe-core/axe.min.js" ]; then
        npm ci --prefix "$folder" --silent --no-audit --no-fund || give_up "npm could not install axe-core."
    fi
    ;;
deploy)
    install nginx:nginx-light caddy:caddy promtool:prometheus pgbouncer:pgbouncer systemd-analyze:systemd openssl:openssl
    ;;
esac
