#!/bin/sh
# Looks after one dockerd for the engine tests: dockerd.sh FOLDER GROUP-ID [ARGUMENT OF DOCKERD]…
#
# Commands come on stdin, one a line, and each is answered by one line on stdout. The end of stdin
# means that the test process is gone, however it went (a finished run, a panic, SIGKILL): then
# everything that was started here is stopped, unmounted and removed. A test binary cannot do that
# for itself, since nothing of it runs after its last test.
set -u
folder=$1
group=$2
shift 2
# Debian keeps the daemons in sbin.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
containerd_pid=
dockerd_pid=

running() { # pid; a zombie is not running
  [ -n "$1" ] && { read -r _ _ state _ < "/proc/$1/stat"; } 2> /dev/null && [ "$state" != Z ]
}

# The shims of this instance. They outlive dockerd and containerd, and only their arguments tell whose they are.
shims() {
  grep -l -s -F "$folder/" /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ pid _; do
    { read -r name < "/proc/$pid/comm"; } 2> /dev/null || continue
    case "$name" in containerd-shim*) echo "$pid" ;; esac
  done
}

kill_containers() {
  for shim in $(shims); do
    # A list of pids, to be split at its spaces.
    # shellcheck disable=SC2013
    for child in $(cat "/proc/$shim"/task/*/children 2> /dev/null); do
      kill -KILL "$child" 2> /dev/null
    done
  done
}

end() { # pid, seconds to be patient; 1 if it had to be killed
  kill -TERM "$1" 2> /dev/null
  tenths=$(($2 * 10))
  while running "$1" && [ "$tenths" -gt 0 ]; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
  forced=0
  if running "$1"; then
    kill -KILL "$1" 2> /dev/null
    forced=1
  fi
  wait "$1" 2> /dev/null
  return "$forced"
}

start() { # more arguments of dockerd
  # Our own containerd: dockerd would otherwise join the machine's, where another dockerd's containers live.
  if ! running "$containerd_pid"; then
    containerd --config "$folder/containerd.toml" >> "$folder/containerd.log" 2>&1 < /dev/null &
    containerd_pid=$!
  fi
  # No bridge, no iptables, no forwarding: nothing of the machine's network is touched.
  dockerd --config-file "$folder/daemon.json" --containerd "$folder/containerd.sock" \
    --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/dockerd.pid" \
    --host "unix://$folder/docker.sock" --group "$group" \
    --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false "$@" \
    >> "$folder/dockerd.log" 2>&1 < /dev/null &
  dockerd_pid=$!
}

clean_up() {
  if running "$dockerd_pid"; then
    kill -TERM "$dockerd_pid"
    tenths=200
    # A container that ignores SIGTERM would hold dockerd up for its whole stop budget.
    while running "$dockerd_pid" && [ "$tenths" -gt 0 ]; do
      kill_containers
      sleep 0.1
      tenths=$((tenths - 1))
    done
    end "$dockerd_pid" 0
  fi
  kill_containers
  [ -z "$containerd_pid" ] || end "$containerd_pid" 5
  # Twice: a containerd that is ending may have started one more, to clean up after another.
  for _ in 1 2; do
    for shim in $(shims); do
      kill -KILL "$shim" 2> /dev/null
    done
    sleep 0.1
  done
  # The innermost mount first. Lazily: a process that is just ending may still be in there.
  while read -r _ mount _; do
    case "$mount" in "$folder"/*) echo "$mount" ;; esac
  done < /proc/mounts | sort -r | while read -r mount; do
    umount -l "$mount"
  done
  rm -rf "$folder"
}

while read -r command; do
  case "$command" in
    start)
      start "$@"
      echo "started $dockerd_pid"
      ;;
    stop)
      if end "$dockerd_pid" 60; then echo stopped; else echo "hung, and was killed"; fi
      ;;
    kill)
      end "$dockerd_pid" 0
      echo killed
      ;;
    *) echo "no such command: $command" ;;
  esac
done
clean_up
