#!/usr/bin/env bash
# Runs the tests, with failpoints and holes compiled in: scripts/test.sh [group]
#
# Without a group: everything. A group is a folder of tests/, "unit" for the tests inside src/, or "holes" for
# the guards that are taken out one by one (scripts/holes.sh).
# Ends with a table of how many tests each group ran, and fails if any was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

group="${1:-}"
[ "$#" -le 1 ] || { say "one group at a time: make test T=$1"; exit 2; }
case "$group" in
  '') which=() ;;
  unit) which=(--lib --bins) ;;
  holes) exec scripts/holes.sh ;;
  *)
    if [ ! -f "tests/$group/main.rs" ]; then
      say "there is no group of tests called '$group'. There are: unit holes $(cd tests && for main in */main.rs; do printf '%s ' "${main%/main.rs}"; done)"
      exit 2
    fi
    which=(--test "$group")
    ;;
esac

# Docker is asked for only where a test starts one.
if grep -rqs 'support::dockerd' "tests/$group"; then
  scripts/setup.sh test
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
scripts/cargo.sh test --features failpoints --no-fail-fast "${which[@]}" 2>&1 | tee "$log" || status=$?

# cargo names each group before it runs it ("Running tests/engine/main.rs (...)"), and the group ends with its counts.
awk '
  { gsub(/\033\[[0-9;]*m/, "") }
  /^ *Running .*tests\/[a-z_]+\/main\.rs/ { match($0, /tests\/[a-z_]+\/main/); name = substr($0, RSTART + 6, RLENGTH - 11) }
  /^ *Running unittests/ { name = "unit" }
  /^ *Doc-tests/ { name = "doc" }
  /^test result:/ {
    if (!(name in passed)) order[++groups] = name
    for (i = 1; i < NF; i++) {
      if ($(i + 1) ~ /^passed/) { passed[name] += $i; all_passed += $i }
      if ($(i + 1) ~ /^failed/) { failed[name] += $i; all_failed += $i }
      if ($(i + 1) ~ /^ignored/) { ignored[name] += $i; all_ignored += $i }
    }
  }
  END {
    printf "\n%-12s %7s %7s %7s\n", "group", "passed", "failed", "ignored"
    for (g = 1; g <= groups; g++) printf "%-12s %7d %7d %7d\n", order[g], passed[order[g]], failed[order[g]], ignored[order[g]]
    printf "%-12s %7d %7d %7d\n", "all", all_passed, all_failed, all_ignored
    if (all_ignored > 0) { print "a skipped test proves nothing: this counts as a failure"; exit 1 }
    if (all_passed == 0) { print "no test ran: this counts as a failure"; exit 1 }
  }
' "$log" || status=1
if [ -z "$group" ]; then
  printf '\n'
  scripts/holes.sh || status=1
fi
exit "$status"
