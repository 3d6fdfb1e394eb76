"""OpenStack's sushy as a client of a BMC: says what it sees, and switches power.

redfish_look.py ADDRESS CA USER PASSWORD session|basic look|off|on
Prints the power state after it, as sushy names it. Certificates are checked against CA."""

import sys

import sushy
from sushy import auth as sushy_auth

address, ca, user, password, how, verb = sys.argv[1:]
login = {"session": sushy_auth.SessionAuth, "basic": sushy_auth.BasicAuth}[how](user, password)
root = sushy.Sushy(f"https://{address}/redfish/v1", auth=login, verify=ca)
system = root.get_system(root.get_system_collection().members_identities[0])
allowed = system.get_allowed_reset_system_values()
wanted = {"off": sushy.ResetType.FORCE_OFF, "on": sushy.ResetType.ON}.get(verb)
if wanted is not None:
    if wanted not in allowed:
        sys.exit(f"{wanted} is not among {allowed}")
    system.reset_system(wanted)
    system.refresh(force=True)
manager = root.get_manager(root.get_manager_collection().members_identities[0])
if manager.identity != "1":
    sys.exit(f"another manager: {manager.identity}")
print(system.power_state.value)
if how == "session":
    login.close()
