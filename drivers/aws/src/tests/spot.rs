//! A spot instance that EC2 refuses to stop is not ready, and one of which that is not known says so.

use super::ec2::Fault;
use super::*;

#[tokio::test]
async fn a_spot_instance_that_is_never_stopped_is_told_with_what_would_be_right() {
    let scene = Scene::new(1).await;
    let driver = scene.driver(0);
    let check = || Call::reading(Instant::now() + Duration::from_secs(15), scene.clock.clone());
    for (spot, bars) in [
        ("<type>one-time</type><state>active</state>", Some("is one-time")),
        ("<type>persistent</type><state>cancelled</state>", Some("is cancelled")),
        ("<type>persistent</type><state>closed</state>", Some("is closed")),
        (
            "<type>persistent</type><state>active</state><launchGroup>g</launchGroup>",
            Some("launch group \"g\""),
        ),
        (
            "<type>persistent</type><state>active</state><availabilityZoneGroup>z</availabilityZoneGroup>",
            Some("Availability Zone group \"z\""),
        ),
        ("<type>persistent</type><state>active</state>", None),
        ("<type>persistent</type><state>disabled</state>", None),
    ] {
        scene.ec2.with(|world| world.spot = spot);
        driver.identify(&check()).await.expect("told");
        let obstacles = driver.obstacles().join("\n");
        match bars {
            Some(why) => assert!(
                obstacles.contains("sir-1")
                    && obstacles.contains(why)
                    && obstacles.contains("terminate = true"),
                "{spot}: {obstacles}"
            ),
            None => assert_eq!(obstacles, "", "{spot}"),
        }
        assert!(!driver.remarks().join("\n").contains("not known"), "{spot}");
        assert!(driver.remarks().join("\n").contains("starts again by itself"), "{spot}");
    }
    assert_eq!(scene.ec2.heard("DescribeSpotInstanceRequests")[0].fields["SpotInstanceRequestId.1"], "sir-1");
}

/// Nor does a word that is none of EC2's say that it is persistent.
#[tokio::test]
async fn where_that_is_not_known_it_is_said_and_what_was_known_stands() {
    let scene = Scene::new(1).await;
    let driver = scene.driver(0);
    let check = || Call::reading(Instant::now() + Duration::from_secs(15), scene.clock.clone());
    let denied = "User: arn:aws:iam::1:user/p is not authorized to perform: ec2:DescribeSpotInstanceRequests";
    let deny = || {
        scene.ec2.fail("DescribeSpotInstanceRequests", Fault::Refuse("UnauthorizedOperation", denied, 403))
    };
    scene.ec2.with(|world| world.spot = "<type>persistent</type><state>active</state>");
    deny();
    driver.identify(&check()).await.expect("told");
    let said = driver.remarks().join("\n");
    assert!(
        said.contains("is not known") && said.contains("ec2:DescribeSpotInstanceRequests is missing"),
        "{said}"
    );
    assert_eq!(driver.obstacles(), [""; 0], "it may be persistent");
    for odd in ["<state>active</state>", "<type>eternal</type><state>active</state>"] {
        scene.ec2.with(|world| world.spot = odd);
        driver.identify(&check()).await.expect("told");
        assert!(driver.remarks().join("\n").contains("is not known"), "{odd}");
    }
    scene.ec2.with(|world| world.spot = "<type>one-time</type><state>active</state>");
    driver.identify(&check()).await.expect("told");
    let known = driver.obstacles();
    assert_eq!(known.len(), 1);
    deny();
    driver.identify(&check()).await.expect("told");
    assert_eq!(driver.obstacles(), known, "it was not heard that this is over");
    // An instance on demand is asked for no request.
    let asked = scene.ec2.heard("DescribeSpotInstanceRequests").len();
    scene.ec2.with(|world| world.spot = "");
    driver.identify(&check()).await.expect("told");
    assert_eq!((driver.obstacles().len(), scene.ec2.heard("DescribeSpotInstanceRequests").len()), (0, asked));
}
