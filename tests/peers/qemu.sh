#!/bin/sh
# qemu.sh DIR: runs the machine of DIR (disk.img) in the foreground and notes its process in DIR/vm.pid.
# No KVM, no network, no ACPI: a machine that needs nothing but a processor, and dies at once when it is killed.
# writethrough: a heartbeat is on the disk's file when the guest's write returns.
dir=$1
# A machine of a test that is over stays off, whoever wants it on.
[ -e "$dir/disk.img" ] && [ ! -e "$dir/closed" ] || exit 1
echo $$ >"$dir/vm.pid"
exec qemu-system-x86_64 -accel tcg -M pc,acpi=off -m 4 -nodefaults -display none -serial "file:$dir/serial.log" \
    -drive "file=$dir/disk.img,format=raw,if=ide,cache=writethrough" </dev/null >>"$dir/qemu.log" 2>&1
