#!/usr/bin/env bash
# Compiles RocksDB once per machine and prints the folder of the static library.
#
# RocksDB takes about half an hour on two cores, and cargo would repeat that for every profile,
# clone and target folder. So the archive is built here once, from the very source that Cargo.lock
# names, and every build links it through ROCKSDB_LIB_DIR. The folder's name is a hash of all that
# shapes the archive: crate version, features, compiler and flags. Nothing else may be linked.
#
# stdout: the folder, and nothing else. stderr: progress.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${RELATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/relatch}/rocksdb"
features='bindgen-runtime'
optimisation=2
cxx="${CXX:-c++}"

say() { printf '%s\n' "$*" >&2; }

version=$(awk '/^name = "librocksdb-sys"$/ { getline; gsub(/version = |"/, ""); print }' Cargo.lock)
[ -n "$version" ] || { say "Cargo.lock names no librocksdb-sys: restore it with 'git checkout Cargo.lock'"; exit 1; }
recipe="librocksdb-sys $version
features $features
compiler $("$cxx" --version | head -n 1) $("$cxx" -dumpmachine)
flags -O$optimisation, no debug information, no CXXFLAGS, no RUSTFLAGS"
key=$(printf '%s' "$recipe" | sha256sum | cut -c1-16)
folder="$cache/$key"

if [ -s "$folder/librocksdb.a" ]; then
  printf '%s\n' "$folder"
  exit 0
fi

mkdir -p "$cache"
exec 9>"$cache/.$key.lock"
flock --nonblock 9 || { say "another build of RocksDB is under way: waiting for it"; flock 9; }
if [ -s "$folder/librocksdb.a" ]; then
  printf '%s\n' "$folder"
  exit 0
fi

work="$cache/.$key.build"
rm -rf "$work"
mkdir -p "$work/src"
: > "$work/src/lib.rs"
cat > "$work/Cargo.toml" <<TOML
[package]
name = "rocksdb-once"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
librocksdb-sys = { version = "=$version", default-features = false, features = ["$features"] }

[profile.release]
debug = false

[profile.release.package."*"]
opt-level = $optimisation
TOML

say "RocksDB $version is compiled once for this machine: about 30 minutes on two cores."
started=$SECONDS
# In a process group of its own (set -m), so that an interruption ends the compilers too: cargo alone
# would leave its build script behind, compiling for nobody.
set -m
env -u CXXFLAGS -u CFLAGS -u RUSTFLAGS -u ROCKSDB_LIB_DIR -u ROCKSDB_STATIC -u ROCKSDB_COMPILE -u CARGO_BUILD_TARGET \
  CARGO_TARGET_DIR="$work/target" \
  cargo build --release --manifest-path "$work/Cargo.toml" > "$work/log" 2>&1 9>&- &
build=$!
set +m
trap 'kill -- -"$build" 2>/dev/null || true' EXIT
trap 'say "interrupted: RocksDB is not compiled, and the next call begins anew"; exit 130' INT TERM HUP

total=0
first_at=0
while kill -0 "$build" 2>/dev/null; do
  sleep 5
  if [ "$total" -eq 0 ]; then
    list=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -maxdepth 3 -path "*/librocksdb-sys-$version/rocksdb_lib_sources.txt" 2>/dev/null | head -n 1)
    [ -n "$list" ] && total=$(wc -l < "$list")
  fi
  done_count=$(find "$work/target" -path '*librocksdb-sys-*/out/*.o' 2>/dev/null | wc -l)
  elapsed=$((SECONDS - started))
  [ "$first_at" -ne 0 ] || [ "$done_count" -eq 0 ] || first_at=$elapsed
  if [ "$total" -gt 0 ] && [ $((elapsed % 60)) -lt 5 ]; then
    [ "$done_count" -le "$total" ] || done_count=$total
    # The files differ in size, and the bindings come before the first of them: a rate means
    # something only after a while, and only from there.
    estimate=''
    if [ "$done_count" -gt 30 ]; then
      estimate=", about $(((elapsed - first_at) * (total - done_count) / done_count / 60 + 1)) min left"
    fi
    say "RocksDB: $done_count of $total files after $((elapsed / 60)) min$estimate"
  fi
done
trap - EXIT INT TERM HUP
if ! wait "$build"; then
  tail -n 40 "$work/log" >&2
  say "compiling RocksDB failed; the whole log is $work/log"
  exit 1
fi

archive=$(find "$work/target/release/build" -path '*librocksdb-sys-*/out/librocksdb.a' | head -n 1)
[ -s "$archive" ] || { say "the build ended without librocksdb.a; its log is $work/log"; exit 1; }
mkdir -p "$work/done"
cp "$archive" "$work/done/librocksdb.a"
printf '%s\n' "$recipe" > "$work/done/RECIPE"
rm -rf "$folder"
mv "$work/done" "$folder"
rm -rf "$work"
say "RocksDB: compiled in $(((SECONDS - started) / 60)) min, kept in $folder"
printf '%s\n' "$folder"
