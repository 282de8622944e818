#!/usr/bin/env bash
# cargo, with all that the package needs to build: scripts/cargo.sh build --release
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
exports=$("$here/env.sh")
eval "$exports"
exec cargo "$@"
