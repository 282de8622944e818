#!/usr/bin/env bash
# Looks for what this machine lacks and installs it: scripts/setup.sh build|test|lint
#
#   build   a C++ compiler and libclang, for RocksDB and its bindings
#   test    that, and Docker Engine and a static busybox, for the engine tests alone
#   lint    what build needs, and clippy, rustfmt, cargo-deny and shellcheck
#
# As root, or where sudo asks for no password, it installs by apt-get. Elsewhere it prints the command
# to type, and fails. Nothing is asked of the network when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose="${1:-build}"
tools="${RELATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/relatch}/tools"
deny_version=0.20.2

say() { printf '%s\n' "$*" >&2; }
# Debian keeps dockerd and others in sbin, which is not on every user's PATH.
have() { PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1" > /dev/null 2>&1; }

packages=()
missing() { # package, why
  packages+=("$1")
  say "missing: $1: $2"
}

have_libclang() {
  local folder library
  for folder in ${LIBCLANG_PATH:+"$LIBCLANG_PATH"} /usr/lib/llvm-*/lib /usr/lib/*-linux-gnu* /usr/lib /usr/lib64 /usr/local/lib; do
    for library in "$folder"/libclang.so* "$folder"/libclang-*.so*; do
      [ -e "$library" ] && return 0
    done
  done
  return 1
}

have_static_busybox() {
  have busybox || return 1
  # ldd fails, or says so, when there is nothing to load.
  ! ldd "$(command -v busybox)" 2> /dev/null | grep -q '=>'
}

look_for_packages() {
  have c++ || missing g++ "a C++ compiler, to compile RocksDB once for this machine"
  have_libclang || missing libclang-dev "libclang, from which the Rust bindings to RocksDB are made"
  case "$purpose" in
    test)
      if ! have dockerd || ! have containerd || ! have docker; then
        missing docker.io "Docker Engine: the engine tests start a dockerd of their own (installing it also starts Docker's service, as Debian does)"
      fi
      have_static_busybox || missing busybox-static "a static busybox, from which the engine tests make their only image"
      # dockerd refuses to run containers where the kernel has AppArmor and its parser is absent.
      if [ "$(cat /sys/module/apparmor/parameters/enabled 2> /dev/null)" = Y ] && ! have apparmor_parser; then
        missing apparmor "apparmor_parser, which dockerd needs on a kernel with AppArmor"
      fi
      ;;
    lint)
      have shellcheck || missing shellcheck "checks the shell scripts"
      ;;
  esac
}

install_packages() {
  local root=() command="apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
  if ! have apt-get; then
    say "This machine has no apt-get. Install what serves as: ${packages[*]} (Debian's names), then try again."
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo || ! sudo -n true 2> /dev/null; then
      say "These may not be installed without a password. Type this, then try again:"
      say "  sudo sh -c '$command'"
      say "(Debian 12's package names. Ubuntu's are the same; untried there.)"
      exit 1
    fi
    root=(sudo -n)
  fi
  say "installing: ${packages[*]}"
  "${root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update >&2
  # Newer releases have the docker command in a package of its own.
  if [[ " ${packages[*]} " == *" docker.io "* ]] && ! have docker && apt-cache show docker-cli > /dev/null 2>&1; then
    packages+=(docker-cli)
  fi
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${packages[@]}" < /dev/null >&2
}

require_rust() {
  if ! have cargo || ! have rustc; then
    say "Rust is missing, and this script does not choose a toolchain for you. Install one (rustup.rs), then try again."
    exit 1
  fi
  local wanted found
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  found=$(rustc --version | cut -d' ' -f2)
  if [ "$(printf '%s\n%s\n' "$wanted" "${found%%-*}" | sort -V | head -n 1)" != "$wanted" ]; then
    say "Rust $found is too old: $wanted or newer is needed."
    if have rustup; then say "Type: rustup update"; else say "It is not rustup's (Debian's own is older): install Rust from https://rustup.rs"; fi
    exit 1
  fi
}

require_component() { # program, rustup's name of its component
  have "$1" && "$1" --version > /dev/null 2>&1 && return 0
  if have rustup; then
    say "missing: $2: adding it to the Rust toolchain"
    rustup component add "$2" >&2
  else
    say "missing: $2: part of the Rust toolchain; install it the way Rust was installed, then try again."
    exit 1
  fi
}

require_cargo_deny() {
  [ -x "$tools/bin/cargo-deny" ] && return 0
  have cargo-deny && return 0
  say "missing: cargo-deny $deny_version: checks licences and sources of the dependencies; compiling it takes some minutes, once"
  env -u CARGO_TARGET_DIR -u RUSTFLAGS nice cargo install --quiet --locked --root "$tools" --version "$deny_version" cargo-deny >&2 < /dev/null
}

case "$purpose" in
  build | test | lint) ;;
  *)
    say "usage: scripts/setup.sh build|test|lint"
    exit 2
    ;;
esac
require_rust
look_for_packages
if [ "${#packages[@]}" -gt 0 ]; then
  install_packages
  packages=()
  look_for_packages
  if [ "${#packages[@]}" -gt 0 ]; then
    say "still missing after the installation: ${packages[*]}"
    exit 1
  fi
fi
if [ "$purpose" = lint ]; then
  require_component rustfmt rustfmt
  require_component cargo-clippy clippy
  require_cargo_deny
fi
