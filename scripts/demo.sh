#!/usr/bin/env bash
# Builds relatch and runs its demo; arguments are passed on (--docker: over a real engine).
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/cargo.sh run --bin relatch -- demo "$@"
