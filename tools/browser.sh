#!/bin/sh
# Install what the tests of pages need: Chromium with its driver, node, and axe-core. Where that cannot be, say so: those
# tests are skipped then, but never where CI is set.
set -eu
folder=$(dirname "$0")/../tests/browser

give_up() {
    echo "The tests of pages in a browser are skipped: $1" >&2
    [ -z "${CI:-}" ]
    exit
}

if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null || ! command -v npm >/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || give_up "install chromium, chromium-driver, nodejs and npm."
    needed="chromium chromium-driver curl"
    command -v npm >/dev/null || needed="$needed nodejs npm"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # several packages
    apt-get update -qq && apt-get install -qq --no-install-recommends $needed >/dev/null || give_up "apt-get failed."
fi
if [ ! -f "$folder/node_modules/axe-core/axe.min.js" ]; then
    npm ci --prefix "$folder" --silent --no-audit --no-fund || give_up "npm could not install axe-core."
fi
