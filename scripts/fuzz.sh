#!/usr/bin/env bash
# Runs the checks of tests/fuzz, led by coverage: scripts/fuzz.sh [subject ...]
#
#   SECONDS_EACH=120  how long each subject is run
#   KEEP=1            what reaches further than every seed is added to the seeds, KEEP_MOST=12 for each subject
#
# Needs Rust's nightly compiler. The instrumented build has a target folder of its own and links the machine's one
# RocksDB. What fails is minimised, and left in tests/fuzz/corpus, where `make test T=fuzz` finds it too.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

seconds="${SECONDS_EACH:-120}"
tools="${RELATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/relatch}/tools"
fuzz_version=0.13.2

if [ "$#" -gt 0 ]; then
  subjects=("$@")
else
  subjects=()
  for folder in tests/fuzz/corpus/*/; do subjects+=("$(basename "$folder")"); done
fi
for subject in "${subjects[@]}"; do
  [ -d "tests/fuzz/corpus/$subject" ] || {
    say "there is no subject '$subject'. There are: $(cd tests/fuzz/corpus && echo *)"
    exit 2
  }
done

exports=$(scripts/env.sh)
eval "$exports"
if ! command -v rustup > /dev/null || ! rustup run nightly rustc --version > /dev/null 2>&1; then
  say "missing: Rust's nightly compiler, which alone instruments for coverage. Type: rustup toolchain install nightly --profile minimal"
  exit 1
fi
export PATH="$PATH:$tools/bin"
if ! command -v cargo-fuzz > /dev/null; then
  say "missing: cargo-fuzz $fuzz_version: builds and runs the instrumented target; compiling it takes a minute, once"
  env -u CARGO_TARGET_DIR -u RUSTFLAGS nice cargo install --quiet --locked --root "$tools" --version "$fuzz_version" cargo-fuzz >&2 < /dev/null
fi

target="$(rustc -vV | sed -n 's/^host: //p')"
CARGO_TARGET_DIR="${FUZZ_TARGET_DIR:-$PWD/target/fuzz}"
export CARGO_TARGET_DIR
# The versions that the package itself is built with.
cp Cargo.lock fuzz/Cargo.lock
# No sanitizer: the package forbids unsafe code, and a foreign library would not be instrumented anyway.
say "fuzz: building with coverage"
cargo +nightly fuzz build --sanitizer none subject
binary="$CARGO_TARGET_DIR/$target/release/subject"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
printf '%-12s %10s %10s %9s %9s  %s\n' subject runs 'runs/s' coverage seeds ended
for subject in "${subjects[@]}"; do
  seeds="tests/fuzz/corpus/$subject"
  found="$work/$subject"
  mkdir -p "$found"
  status=0
  # New seeds are written into the first folder. An input that takes 10 s, or a process of 2 GiB, is a failure too.
  FUZZ_SUBJECT="$subject" "$binary" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
    -artifact_prefix="$work/$subject-" -print_final_stats=1 -use_value_profile=1 -dict=fuzz/words.dict \
    "$found" "$seeds" > "$work/$subject.log" 2>&1 || status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$subject.log")
  speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$work/$subject.log")
  coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/$subject.log" | tail -n 1)
  ended=passed
  if [ "$status" -ne 0 ]; then
    ended="FAILED ($status)"
    failed+=("$subject")
    tail -n 25 "$work/$subject.log" >&2
    for artifact in "$work/$subject"-*; do
      [ -f "$artifact" ] || continue
      FUZZ_SUBJECT="$subject" "$binary" -minimize_crash=1 -max_total_time=20 -timeout=10 \
        -exact_artifact_path="$work/smaller" "$artifact" > /dev/null 2>&1 || true
      [ -s "$work/smaller" ] && mv "$work/smaller" "$artifact"
      kept="$seeds/failed-$(sha256sum "$artifact" | cut -c1-12)"
      cp "$artifact" "$kept"
      say "fuzz: kept $kept"
    done
  fi
  if [ "${KEEP:-0}" = 1 ]; then
    # Those that reach what no seed does; of these the smallest, so that the seeds stay few.
    cp -r "$seeds" "$work/merged"
    FUZZ_SUBJECT="$subject" "$binary" -merge=1 -timeout=10 -rss_limit_mb=2048 "$work/merged" "$found" \
      > "$work/merge.log" 2>&1 || say "fuzz: minimising the seeds of $subject failed"
    mapfile -t new < <(cd "$work/merged" && find . -type f -size -4k -printf '%s %f\n' | sort -n | cut -d' ' -f2)
    kept=0
    for name in "${new[@]}"; do
      [ "$kept" -lt "${KEEP_MOST:-12}" ] || break
      [ -e "$seeds/$name" ] && continue
      cp "$work/merged/$name" "$seeds/$name"
      kept=$((kept + 1))
    done
    rm -rf "$work/merged"
  fi
  printf '%-12s %10s %10s %9s %9s  %s\n' "$subject" "${runs:-?}" "${speed:-?}" "${coverage:-?}" \
    "$(find "$seeds" -type f | wc -l)" "$ended"
done
if [ "${#failed[@]}" -gt 0 ]; then
  say "fuzz: failed: ${failed[*]}; mend it, then make test T=fuzz"
  exit 1
fi
