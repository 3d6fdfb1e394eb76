systemd-sysusers picket.conf
systemd-tmpfiles --create picket.conf
if [ "$1" -eq 1 ]; then
    echo "picket: nothing is started. Try a first node's BMC and write its settings: sudo picket init"
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    # 2 and more: an upgrade. It restarts a gateway that runs, and a first installation starts none.
    if [ "$1" -ge 2 ]; then
        systemctl --no-block try-restart picketd.service || :
    fi
fi
