#!/bin/sh
# Checks the slugs of some titles. Ends with 1 when one of them is wrong.
set -u
cd "$(dirname "$0")/.." || exit 2
. ./src/slug.sh

failed=0
check() {
    got=$(slug "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    $1"
    else
        echo "FAIL  $1: expected $2, got $got"
        failed=$((failed + 1))
    fi
}

check 'Hello World' 'hello-world'
check 'Release 1.2' 'release-1-2'
check 'Salt & Pepper' 'salt-pepper'
check '  Spaces   everywhere  ' 'spaces-everywhere'
check 'What now?!' 'what-now'

if [ "$failed" -ne 0 ]; then
    echo "$failed of 5 titles have the wrong slug"
    exit 1
fi
echo 'all 5 titles have the right slug'
