#!/usr/bin/env bash
# Measures relatch on this machine and writes docs/benchmarks.md: scripts/bench.sh [arguments of relatch bench]
#
# The disk that is measured is that of cargo's target folder, unless --dir names another. Leave the machine alone
# meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

# Both at once: alone, cargo would compile the crate for each of them.
built=$(scripts/cargo.sh build --release --bin relatch --bench ledger --message-format=json-render-diagnostics)
executable() { # kind
  sed -n "/\"kind\":\[\"$1\"\]/s/.*\"executable\":\"\([^\"]*\)\".*/\1/p" <<< "$built" | tail -n 1
}
binary=$(executable bin)
ledger=$(executable bench)
if [ ! -x "$binary" ] || [ ! -x "$ledger" ]; then
  printf 'the build ended without its programs\n' >&2
  exit 1
fi
target=$(dirname "$(dirname "$binary")")

# The ledger alone first: criterion keeps what it found, and the page takes it from there.
CRITERION_HOME="$target/criterion" "$ledger" --bench --noplot >&2
commit=$(git describe --always --dirty --exclude '*' 2> /dev/null || printf 'unknown commit')
"$binary" bench --dir "$target" --page docs/benchmarks.md --criterion "$target/criterion" --commit "$commit" "$@"
