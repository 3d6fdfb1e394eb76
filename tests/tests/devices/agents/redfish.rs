//! `fence_redfish` before OpenStack's sushy-emulator, both untouched.

use std::time::Duration;

use picket_tests::peers::{ADMIN, PASSWORD, SYSTEMS, Sushy};
use picket_tests::{Gateway, PASSWORD_VARIABLE, Result, Webhook};
use tokio::time::Instant;

use crate::agents::scene::{fleet, said_to};

/// An agent tells no restarts of its device: Off must hold for so long, with the off sent again at the end.
const WINDOW: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_node_is_fenced_released_and_brought_back_by_fence_redfish() -> Result<()> {
    let (sushy, webhook) = (Sushy::start().await?, Webhook::start().await?);
    let (ip, port, system) = (sushy.address().ip(), sushy.address().port(), SYSTEMS[0]);
    // The agent has no way to be told of a CA: it believes the system's, or anybody.
    let node = format!(
        "[nodes.n1]\nlevels = [[\"bmc\"]]\nreleases = [\"detach\"]\n[nodes.n1.devices.bmc]\ndriver = \"agent\"\n\
         agent = \"fence_redfish\"\npassword_env = {PASSWORD_VARIABLE:?}\n[nodes.n1.devices.bmc.parameters]\nip = \"{ip}\"\n\
         ipport = {port}\nusername = {ADMIN:?}\nssl_insecure = true\nsystems_uri = \"/redfish/v1/Systems/{system}\"\n"
    );
    let gateway = Gateway::start(&fleet(&node, &webhook)).await?;
    gateway.checked().await?;
    let began = Instant::now();
    let fenced = said_to(&gateway, "fence").await?;
    assert_eq!((fenced.code, sushy.is_on(system)?), (0, false), "{fenced:?}\n{}", gateway.log());
    assert!(began.elapsed() >= WINDOW, "{:?}: {fenced:?}", began.elapsed());
    assert!(sushy.is_on(SYSTEMS[1])?, "its neighbour");
    assert_eq!(webhook.releases().len(), 1, "{fenced:?}");
    // Two lower than what a BMC says itself: neither its restarts nor whose machine it is are told.
    assert!(gateway.log().contains("confirmed off grade=Claimed"), "{}", gateway.log());
    assert_eq!(sushy.resets(), 1, "the off that seals the window found it off");
    let back = said_to(&gateway, "unfence").await?;
    assert_eq!((back.code, sushy.is_on(system)?), (0, true), "{back:?}\n{}", gateway.log());
    assert_eq!((sushy.resets(), webhook.releases().len()), (2, 1));
    assert!(!gateway.log().contains(PASSWORD), "{}", gateway.log());
    Ok(())
}
