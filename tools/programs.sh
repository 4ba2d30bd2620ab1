#!/bin/sh
# Install the programs that tests run but Python packages do not bring: "browser" for pages and samples (Chromium with its driver,
# Node.js, curl, PHP and axe-core), "deploy" for the files in deploy/ (nginx, Caddy, promtool, systemd-analyze), PgBouncer,
# OpenSSL, strace and pdftotext. Fail if that is impossible, unless RETAINER_TEST_WITHOUT names what is to be left out.
set -eu
folder=$(dirname "$0")/../tests/browser

give_up() {
    echo "$1 To leave out the tests that need them, set RETAINER_TEST_WITHOUT=$kind." >&2
    exit 1
}

install() {
    missing=""
    for pair; do
        PATH="$PATH:/usr/sbin" command -v "${pair%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    [ "$kind" != browser ] || php -m 2>/dev/null | grep -qx curl || missing="$missing php-curl"
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] && sudo="" || sudo="sudo --non-interactive"
    command -v apt-get >/dev/null && $sudo true 2>/dev/null || give_up "Tests need these programs: install$missing."
    # Installed services would start; only the programs are needed.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
        trap '$sudo rm -f "$policy"' EXIT
        $sudo chmod +x "$policy"
    fi
    # shellcheck disable=SC2086  # several packages
    { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing; } \
        >/dev/null || give_up "apt-get could not install$missing, which tests need."
}

kind=$1
case ",${RETAINER_TEST_WITHOUT:-}," in
*",$kind,"*)
    echo "RETAINER_TEST_WITHOUT leaves out the tests of $kind." >&2
    exit
    ;;
esac
case $kind in
browser)
    install chromium:chromium chromedriver:chromium-driver node:nodejs npm:npm curl:curl php:php-cli
    if [ ! -f "$folder/node_modules/axe-core/axe.min.js" ]; then
        npm ci --prefix "$folder" --silent --no-audit --no-fund || give_up "npm could not install axe-core, which tests of pages need."
    fi
    ;;
deploy)
    install nginx:nginx-light caddy:caddy promtool:prometheus pgbouncer:pgbouncer systemd-analyze:systemd openssl:openssl \
        strace:strace pdftotext:poppler-utils
    ;;
esac
