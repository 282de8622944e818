#!/usr/bin/env bash
# Prints what cargo needs to link this machine's one RocksDB, as shell exports, and compiles that
# first if it must. For people who call cargo themselves:
#
#   eval "$(scripts/env.sh)"
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
"$here/setup.sh" build
folder=$("$here/rocksdb.sh")
printf 'export ROCKSDB_LIB_DIR=%q\nexport ROCKSDB_STATIC=1\n' "$folder"
