#!/usr/bin/env bash
# Opens each hole of tests/holes.txt and expects its test to fail: a guard whose absence no test notices is
# not known to hold anything. A hole sync-… leaves out the one call of that name that makes something durable.
set -euo pipefail
cd "$(dirname "$0")/.."

caught=0
missed=0
while read -r hole target name; do
  case "$hole" in ''|'#'*) continue ;; esac
  case "$target" in lib) which=(--lib) ;; *) which=(--test "$target") ;; esac
  log=$(mktemp)
  status=0
  case "$hole" in sync-*) open=RELATCH_TEST_LOST_SYNC ;; *) open=RELATCH_HOLE ;; esac
  env "$open=$hole" scripts/cargo.sh test --features failpoints "${which[@]}" -- --exact "$name" > "$log" 2>&1 < /dev/null || status=$?
  if [ "$status" -ne 0 ] && grep -q '^test result: FAILED. 0 passed; 1 failed' "$log"; then
    printf 'hole %-24s caught by %s\n' "$hole" "$name"
    caught=$((caught + 1))
  else
    printf 'hole %-24s NOT CAUGHT by %s\n' "$hole" "$name"
    tail -n 30 "$log"
    missed=$((missed + 1))
  fi
  rm -f "$log"
done < tests/holes.txt
printf '\n%d holes: %d caught, %d not caught\n' "$((caught + missed))" "$caught" "$missed"
[ "$missed" -eq 0 ] && [ "$caught" -gt 0 ]
