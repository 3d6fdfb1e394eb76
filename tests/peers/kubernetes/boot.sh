#!/bin/bash
# boot.sh MACHINE: switches a machine of the Kubernetes of the tests on, as vmctl.sh wants it: MACHINE/boot leads here.
#
# MACHINE is its directory; MACHINE/settings says the rest:
#   name       of the node                     port      a process that keeps the machine's network open
#   uuid       of the system, 32 digits        address   in that network
#   programs   kubelet, csidisk and images     subnet    of its pods
#   cluster    the cluster's directory                 id        what attaches volumes knows it by this; else by its name
#
# The machine is one process tree in namespaces of its own. Its process 1 (init.sh) notes itself in MACHINE/vm.pid: killed, it takes
# everything with it, as a power supply would. This script stays outside, and clears away what the kernel keeps after that.
set -u
machine=$1 here=$(dirname "$(readlink -f "$0")")
# A machine of a test that is over stays off, whoever wants it on.
[ ! -e "$machine/closed" ] || exit 1
. "$machine/settings"
export PATH=$PATH:/usr/sbin:/sbin

# Its containers get their cgroups below one of the machine's own, in each hierarchy that there is.
groups=()
while IFS=: read -r number controllers path; do
    # Of version 2 only the root lets its children have controllers while it has processes itself.
    [ "$number" != 0 ] || path=
    mount=/sys/fs/cgroup/${controllers#name=}
    [ -e "$mount/cgroup.procs" ] && groups+=("${mount%/}${path%/}/picket-${machine##*/}-$$")
done </proc/self/cgroup

enter() {
    local group
    for group in "${groups[@]}"; do
        mkdir "$group" || return
        # An empty set of processors, as version 1 begins with, takes no process.
        for file in cpuset.cpus cpuset.mems; do
            [ -e "$group/cgroup.clone_children" ] && [ -e "$group/$file" ] && cat "$group/../$file" >"$group/$file"
        done
        echo "$BASHPID" >"$group/cgroup.procs" || return
    done
    exec nsenter --net="/proc/$port/ns/net" \
        unshare --pid --fork --kill-child --mount --uts --ipc --cgroup bash "$here/init.sh" "$machine"
}

(enter) </dev/null >>"$machine/console.log" 2>&1
# From here on the machine's directory may be gone. The kernel lets go of a group a moment after it has buried its last process.
for group in "${groups[@]}"; do
    for _ in {1..50}; do
        find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
        [ -d "$group" ] || break
        sleep .1
    done
done
