//! S8 with a successor: the leader is stopped between its permit and its packet; another one waits for as long as that may be taken, and
//! goes on; and what the first one sends once it goes on itself comes to nothing.

use picket_tests::Result;

use crate::aws::pair::{FENCE, Pair, UNFENCE};

/// The instance was fenced anew meanwhile.
async fn a_late_start(point: &str, is_bounded: bool, refused: u16) -> Result<()> {
    let mut pair = Pair::stopping_at(point, is_bounded).await?;
    if !is_bounded {
        pair.ec2.keep_off(&pair.instance, 0).await?;
    }
    pair.fence("k1").await?;
    pair.is_succeeded(&UNFENCE).await?;
    pair.unfence().await?;
    pair.fence("k2").await?;
    let answered = pair.late("StartInstances").await?;
    assert_eq!(answered, [200, refused], "the successor's, and the late one: {}", pair.gateways.logs());
    assert_eq!(pair.ec2.state(&pair.instance).await?, "stopped", "{}", pair.gateways.logs());
    let became = pair.ec2.became(&pair.instance).await?;
    let states: Vec<_> = became.iter().map(|one| one.state.as_str()).collect();
    assert_eq!(states, ["stopping", "stopped", "pending", "running", "stopping", "stopped"]);
    pair.unfence().await
}

/// By its signature's time (RequestExpired).
#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_gateway_that_stood_still_is_refused_by_its_signature() -> Result<()> {
    a_late_start("permitted on", true, 400).await
}

/// Where AWS would still take the signature the tag keeps it off, by the policy that is shipped.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_gateway_that_stood_still_is_denied_by_the_policy_that_keeps_off() -> Result<()> {
    a_late_start("permitted on", false, 403).await
}

/// It was brought back meanwhile, and its volume attached where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_detach_of_a_gateway_that_stood_still_pulls_no_volume_from_under_who_runs_again() -> Result<()> {
    // The first time is the permit's own, the second the last word once there is a connection.
    let mut pair = Pair::stopping_at("permitted release#2", true).await?;
    pair.is_succeeded(&FENCE).await?;
    pair.fence("k1").await?;
    assert_eq!(pair.ec2.volume(&pair.volume).await?.state, "available");
    pair.unfence().await?;
    pair.ec2.attach(&pair.instance, &pair.volume, "/dev/sdf").await?;
    let answered = pair.late("DetachVolume").await?;
    assert_eq!(answered, [200, 400], "the successor's, and the late one: {}", pair.gateways.logs());
    assert_eq!(pair.ec2.volume(&pair.volume).await?.at, [pair.instance.clone()], "{}", pair.gateways.logs());
    assert_eq!(pair.ec2.state(&pair.instance).await?, "running");
    Ok(())
}

/// Somebody else has it, at the same device: what is late names the instance that had it, whoever takes its signature.
#[tokio::test(flavor = "multi_thread")]
async fn a_detach_of_a_gateway_that_stood_still_pulls_no_volume_from_its_new_owner() -> Result<()> {
    let mut pair = Pair::stopping_at("permitted release#2", false).await?;
    let owner = pair.ec2.instance(&[]).await?;
    pair.is_succeeded(&FENCE).await?;
    pair.fence("k1").await?;
    pair.ec2.attach(&owner, &pair.volume, "/dev/sdf").await?;
    let answered = pair.late("DetachVolume").await?;
    assert_eq!(answered, [200, 400], "the successor's, and the late one: {}", pair.gateways.logs());
    assert_eq!(pair.ec2.volume(&pair.volume).await?.at, [owner], "{}", pair.gateways.logs());
    Ok(())
}
