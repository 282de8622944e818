#!/usr/bin/env bash
# One siege alone, with what it says: scripts/siege.sh NAME (docs/testing.md).
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/cargo.sh test --features failpoints --test crash -- "siege::$1" --nocapture
