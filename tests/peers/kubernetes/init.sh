#!/bin/bash
# init.sh MACHINE: process 1 of a machine (see boot.sh): containerd, a kubelet and the node's plugin of the CSI driver.
# While MACHINE/no-kubelet is there no kubelet is started again that ended.
machine=$1 here=${0%/*}
# This is still the host's /proc: our number is the one by which we can be killed from there.
read -r number _ </proc/self/stat
echo "$number" >"$machine/vm.pid.fresh" && mv "$machine/vm.pid.fresh" "$machine/vm.pid" || exit 1
# Looked at once more after that: who closes a machine from now on finds us.
[ ! -e "$machine/closed" ] || exit 1
. "$machine/settings"
rm -f "$machine/no-kubelet"
exec </dev/null

mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir -p "$machine"/{etc,etc-work,lib/kubelet/plugins,lib/kubelet/plugins_registry,lib/containerd,log}
mount -t overlay -o "lowerdir=/etc,upperdir=$machine/etc,workdir=$machine/etc-work" overlay /etc
mount --bind "$machine/lib" /var/lib
mount --bind "$machine/log" /var/log

# runc finds the hierarchies by where they are mounted, and must see this machine's part of them as the whole.
mount -t tmpfs tmpfs /sys/fs/cgroup
if grep -qv '^0:' /proc/self/cgroup; then
    while IFS=: read -r number controllers _; do
        [ "$number" != 0 ] || continue
        at=/sys/fs/cgroup/${controllers#name=}
        case $controllers in name=*) controllers=none,$controllers ;; esac
        mkdir "$at" && mount -t cgroup -o "$controllers" cgroup "$at"
    done </proc/self/cgroup
else
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    # A group whose controllers its children have must hold no process itself.
    mkdir /sys/fs/cgroup/init && echo 1 >/sys/fs/cgroup/init/cgroup.procs
    sed 's/[^ ]*/+&/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
fi

# Pods' volumes are mounted by one process and used by others.
mount --make-rshared /

hostname "$name"
echo "$uuid" >/etc/machine-id
# A kubelet looks its own name up with each report: asked of a network that has nobody who knows, each would take ten seconds.
echo "$address $name" >/etc/hosts
rm -f /etc/resolv.conf && : >/etc/resolv.conf
cat /proc/sys/kernel/random/uuid >"$machine/boot-id"
mount --bind "$machine/boot-id" /proc/sys/kernel/random/boot_id
# Where the real machine has a DMI table, the kubelet would read that machine's UUID.
if [ -e /sys/class/dmi/id/product_uuid ]; then
    echo "$uuid" >"$machine/product-uuid"
    mount --bind "$machine/product-uuid" /sys/class/dmi/id/product_uuid
fi

fill() {
    sed -e "s|@RUNC@|$(command -v runc)|" -e "s|@SUBNET@|$subnet|" -e "s|@CLUSTER@|$cluster|" -e "s|@MACHINE@|$machine|" "$here/$1"
}
mkdir -p "$machine/cni" && fill pods.conflist >"$machine/cni/pods.conflist"
fill containerd.toml >"$machine/containerd.toml"
fill kubelet.yaml >"$machine/kubelet.yaml"

containerd --config "$machine/containerd.toml" >>"$machine/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep .05; done
# They stay on the machine's disk.
if [ ! -e "$machine/images" ]; then
    ctr --namespace k8s.io images import "$programs/images/pause.tar" &&
        ctr --namespace k8s.io images import "$programs/images/writer.tar" && : >"$machine/images"
fi

while :; do
    if [ -e "$machine/no-kubelet" ]; then
        sleep .1
        continue
    fi
    "$programs/bin/kubelet" --config "$machine/kubelet.yaml" --kubeconfig "$cluster/$name.kubeconfig" \
        --hostname-override "$name" --root-dir /var/lib/kubelet --v 2 >>"$machine/kubelet.log" 2>&1
    sleep .1
done &

# A kubelet refuses a plugin that registers before it has made its CSINode: the plugin ends then, and is started again.
while :; do
    "$programs/bin/csidisk" -socket /var/lib/kubelet/plugins/disk.sock -volumes "$cluster/volumes" \
        -journal "$cluster/csi.journal" -node "$name" ${id:+-id "$id"} -register /var/lib/kubelet/plugins_registry >>"$machine/csidisk.log" 2>&1
    sleep .5
done &
wait
