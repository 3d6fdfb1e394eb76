# 0: the last one goes.
if [ "$1" -eq 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl stop picketd.service || :
    fi
    systemctl --quiet disable picketd.service || :
fi
