#!/usr/bin/env bash
# Formatting, clippy, rustdoc, dependencies and shell scripts. Warnings are errors.
#
# cargo-deny checks bans, licences and sources. It does not check for known vulnerabilities here: the
# advisory database may be out of reach, and a check that may not have run is not claimed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

scripts/setup.sh lint
exports=$(scripts/env.sh)
eval "$exports"
export PATH="$PATH:${RELATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/relatch}/tools/bin"

say "lint: formatting"
cargo fmt --all --check
say "lint: shell scripts"
shellcheck scripts/*.sh .ci/run tests/support/*.sh
say "lint: dependencies (bans, licences, sources)"
cargo deny --log-level warn check bans licenses sources
say "lint: clippy"
cargo clippy --all-targets --all-features -- -D warnings
say "lint: rustdoc"
RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" cargo doc --no-deps --document-private-items --all-features
say "lint: clean"
