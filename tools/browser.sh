#!/bin/sh
# Install what the tests of pages and samples need: Chromium with its driver, Node.js, curl, PHP and axe-core. If that is
# impossible, say so: their tests are skipped, but never where CI is set.
set -eu
folder=$(dirname "$0")/../tests/browser

give_up() {
    echo "Tests of pages in a browser and of samples are skipped: $1" >&2
    [ -z "${CI:-}" ]
    exit
}

missing=""
for pair in chromium:chromium chromedriver:chromium-driver node:nodejs npm:npm curl:curl; do
    command -v "${pair%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
if command -v php >/dev/null; then
    php -m | grep -qx curl || missing="$missing php-curl"
else
    missing="$missing php-cli php-curl"
fi
if [ -n "$missing" ]; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || give_up "install$missing."
    # shellcheck disable=SC2086  # several packages
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing; } \
        >/dev/null || give_up "apt-get could not install$missing."
fi
if [ ! -f "$folder/node_modules/axe-core/axe.min.js" ]; then
    npm ci --prefix "$folder" --silent --no-audit --no-fund || give_up "npm could not install axe-core."
fi
