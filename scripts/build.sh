#!/usr/bin/env bash
# Builds the release binary. The last line of stdout is its path.
set -euo pipefail
cd "$(dirname "$0")/.."
# cargo itself says where the binary went: a target folder may come from the environment or from a configuration file.
binary=$(scripts/cargo.sh build --release --bin relatch --message-format=json-render-diagnostics "$@" |
  sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -x "$binary" ] || { printf 'the build ended without a binary\n' >&2; exit 1; }
printf '%s\n' "$binary"
