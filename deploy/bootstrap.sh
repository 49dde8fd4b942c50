#!/bin/sh
# bootstrap.sh: turns a fresh Debian or Ubuntu machine that has Rust into one that can build and score.
#
# Installs and starts only what is missing, says each step in one line, and may be run again at any
# time (under two seconds when there is nothing to do). It never touches an engine that answers,
# never changes a user's groups, and never installs Rust. It fails with the one thing to do next.
#
#   BOOTSTRAP_WAIT   seconds to wait for the engine to answer (default 60)
#   BOOTSTRAP_LOG    folder of the logs (default /var/log/tribunal)
set -eu

wait_seconds=${BOOTSTRAP_WAIT:-60}
logs=${BOOTSTRAP_LOG:-/var/log/tribunal}
sudo=""
updated=""

say() { printf 'bootstrap: %s\n' "$*"; }
die() {
    printf 'bootstrap: cannot go on: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf 'bootstrap:   %s\n' "$line" >&2; done
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# ---- what can be done here -------------------------------------------------------------------

distribution() {
    # shellcheck disable=SC1091
    [ -r /etc/os-release ] && (. /etc/os-release && printf '%s %s' "${ID:-}" "${ID_LIKE:-}")
}

is_debian_like() {
    case " $(distribution) " in *" debian "*|*" ubuntu "*) have apt-get ;; *) return 1 ;; esac
}

# Called only when something has to be changed: a machine that has everything needs neither root nor apt.
need_root() {
    [ "$(id -u)" = 0 ] && return
    [ -n "$sudo" ] && return
    have sudo || die "$1 needs root, and there is no sudo" "run this script as root, or install sudo"
    sudo=sudo
}

run_logged() { # run_logged NAME COMMAND...
    name=$1
    shift
    $sudo mkdir -p "$logs"
    if ! $sudo sh -c 'log=$1; shift; exec "$@" >"$log" 2>&1 </dev/null' sh "$logs/$name.log" "$@"; then
        $sudo tail -n 15 "$logs/$name.log" >&2 || true
        return 1
    fi
}

install() { # install WHY PACKAGE...
    why=$1
    shift
    is_debian_like || die "$why is missing, and this is not Debian or Ubuntu" \
        "install it with this system's own package manager (Debian calls it: $*), then run this again"
    need_root "installing $*"
    if [ -z "$updated" ]; then
        say "package lists: refreshing"
        run_logged apt-update apt-get -o DPkg::Lock::Timeout=180 update ||
            say "package lists: could not all be refreshed, going on with what there is"
        updated=1
    fi
    say "$why: installing $*"
    run_logged apt-install env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -o DPkg::Lock::Timeout=180 install -y --no-install-recommends "$@" ||
        die "apt-get could not install: $*" "the whole log is $logs/apt-install.log" \
            "on Ubuntu, mmdebstrap and docker.io are in the component 'universe'"
}

# ---- tools -----------------------------------------------------------------------------------

rust() {
    cargo=$(command -v cargo || true)
    [ -n "$cargo" ] || { [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] && cargo=${CARGO_HOME:-$HOME/.cargo}/bin/cargo; } ||
        die "there is no Rust toolchain" "install one with rustup (as your own user), then run this again"
    say "rust: present ($cargo)"
}

tool() { # tool COMMAND PACKAGE...
    command=$1
    shift
    if have "$command"; then say "$command: present"; else install "$command" "$@"; fi
}

linker() {
    # Headers too: two of our crates compile C.
    if have cc && [ -e /usr/include/stdio.h ]; then say "C linker: present"; else install "C linker" gcc libc6-dev; fi
}

python() {
    tool python3 python3
    # pip fetches the runner's wheels: either python3 has it, or it can make a venv that has.
    if python3 -c 'import importlib.util as u; raise SystemExit(not (u.find_spec("pip") or u.find_spec("ensurepip")))' 2>/dev/null
    then say "python3 pip or venv: present"
    else install "python3 pip or venv" python3-venv
    fi
}

builder() {
    tool mmdebstrap mmdebstrap
    if [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]
    then say "Debian's archive keys: present"
    else install "Debian's archive keys" debian-archive-keyring
    fi
    # Without root mmdebstrap works in a user namespace, which needs these two set-uid programs.
    [ "$(id -u)" = 0 ] || tool newuidmap uidmap
}

# ---- the engine ------------------------------------------------------------------------------

answers() { docker info >/dev/null 2>&1; }
engine_version() { docker version --format '{{.Server.Version}}' 2>/dev/null || printf '?'; }

install_engine() {
    if have dockerd; then say "docker engine: installed"
    elif have dpkg-query && dpkg-query -W -f '${Status}' docker-ce-cli 2>/dev/null | grep -q 'ok installed'
    then install "docker engine" docker-ce containerd.io iptables
    else install "docker engine" docker.io iptables ca-certificates
    fi
    # Debian 13 and later ship the client apart.
    have docker || install "docker client" docker-cli
    # A kernel with AppArmor makes every container start need the profile compiler.
    if grep -qs Y /sys/module/apparmor/parameters/enabled && ! have apparmor_parser && [ ! -x /sbin/apparmor_parser ]
    then install "AppArmor's profile compiler" apparmor
    fi
}

# A pid file outlives an engine that was killed; the engine refuses to start while the number in it
# belongs to any living process, also when that is another program by now.
stale_pid_file() { # stale_pid_file FILE PROGRAM
    [ -e "$1" ] || return 0
    pid=$($sudo cat "$1" 2>/dev/null || true)
    [ "$(cat "/proc/${pid:-none}/comm" 2>/dev/null || true)" != "$2" ] || return 0
    say "docker engine: removing the stale $1"
    $sudo rm -f "$1"
}

engine_process() {
    pid=$($sudo cat /var/run/docker.pid 2>/dev/null || true)
    [ "$(cat "/proc/${pid:-none}/comm" 2>/dev/null || true)" = dockerd ]
}

# A machine without an init system may have no control groups mounted; every kernel of today has version 2.
mount_cgroups() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ] || [ -d /sys/fs/cgroup/memory ]; then return; fi
    say "cgroup hierarchy: mounting"
    $sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup ||
        die "the control groups cannot be mounted, and no container runs without them" \
            "on a machine that is itself a container, start it with its own cgroups (privileged)"
}

# wait_for_engine PID: 0 once it answers, 1 when that process ended first or the time is up.
wait_for_engine() {
    deadline=$(($(date +%s) + wait_seconds))
    while ! $sudo docker info >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        [ -z "$1" ] || [ -d "/proc/$1" ] || return 1
        sleep 0.2
    done
}

# spawn_engine [ARGUMENT...]: a session of its own, so that it outlives this shell and its terminal.
spawn_engine() {
    $sudo mkdir -p "$logs"
    engine=$($sudo sh -c 'log=$1; shift; setsid dockerd "$@" >"$log" 2>&1 </dev/null & echo $!' sh "$logs/dockerd.log" "$@")
    say "docker engine: started dockerd${*:+ $*} (log $logs/dockerd.log)"
}

start_engine() {
    if [ -d /run/systemd/system ]; then
        say "docker engine: starting by systemd"
        $sudo systemctl enable --now docker >/dev/null 2>&1 ||
            die "systemd could not start docker" "see: journalctl -u docker"
        wait_for_engine "" || die "the engine did not answer within $wait_seconds s" "see: journalctl -u docker"
        return
    fi
    if engine_process; then
        say "docker engine: dockerd runs, waiting for it to answer"
        wait_for_engine "" || die "dockerd runs but has not answered for $wait_seconds s" \
            "end it (kill $pid) and run this again"
        return
    fi
    stale_pid_file /var/run/docker.pid dockerd
    stale_pid_file /var/run/docker/containerd/containerd.pid containerd
    mount_cgroups
    spawn_engine
    wait_for_engine "$engine" && return
    # Scoring containers have no network: an engine that may not write firewall rules will do.
    if [ ! -d "/proc/$engine" ] && $sudo grep -qi -e iptables -e 'bridge' "$logs/dockerd.log"; then
        say "docker engine: the kernel refuses its firewall rules, going on without a bridge"
        stale_pid_file /var/run/docker.pid dockerd
        spawn_engine --iptables=false --ip6tables=false --bridge=none
        wait_for_engine "$engine" && return
    fi
    $sudo tail -n 15 "$logs/dockerd.log" >&2 || true
    die "dockerd did not come up within $wait_seconds s" "the last lines of $logs/dockerd.log are above"
}

engine() {
    if have docker && answers; then say "docker engine: answers ($(engine_version))"; return; fi
    [ -z "${DOCKER_HOST:-}" ] ||
        die "DOCKER_HOST is $DOCKER_HOST, and no engine answers there" "start that engine, or unset DOCKER_HOST to have one here"
    install_engine
    need_root "starting the Docker Engine"
    $sudo docker info >/dev/null 2>&1 || start_engine
    answers || die "the engine runs, but this user may not speak to it" \
        "sudo usermod -aG docker $(id -un)   (this is as good as root), log in again, and run this again"
    say "docker engine: answers ($(engine_version))"
}

rust
tool git git
tool make make
linker
python
builder
engine
say "ready"
