//! Volumes of a server that is proven off are let go, each once, and nothing else is.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, RequestRule, ServerFault, Who};
use serde_json::json;

use crate::openstack::driven::Plan;
use crate::openstack::scene::cloud;

/// The seed's own case.
#[tokio::test]
async fn a_volume_of_a_fenced_server_is_attached_to_another() -> Result<()> {
    let cloud = cloud().await?;
    let [here, there, ..] = OPENSTACK_HOSTS;
    let (server, other) = (cloud.server("database", here).await?, cloud.server("spare", there).await?);
    let (data, log) = (cloud.volume("data").await?, cloud.volume("log").await?);
    for volume in [&data, &log] {
        cloud.attach(&server, volume).await?;
    }
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let told = driven.must_fence().await?;
    driven.detached_once_proven(&told, 2)?;
    for volume in [&data, &log] {
        cloud.until_volume(volume, "available").await?;
        cloud.attach(&other, volume).await?;
    }
    for volume in [&data, &log] {
        let release = told.release(volume);
        assert_eq!(release["stage"], "complete", "{volume}: {told:#?}");
    }
    let deleted = driven.sent("DELETE", &format!("{server}/os-volume_attachments"))?;
    let of_it: Vec<_> = deleted.iter().filter(|(_, _, status)| *status == 202).collect();
    assert!(of_it.len() >= 2, "{deleted:?}");
    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    Ok(())
}

#[tokio::test]
async fn of_several_servers_the_fenced_one_alone_loses_a_volume() -> Result<()> {
    let cloud = cloud().await?;
    let [here, there, ..] = OPENSTACK_HOSTS;
    let (server, other) =
        (cloud.server("one-of-two", here).await?, cloud.server("other-of-two", there).await?);
    let volume = cloud.shared_volume("of-two").await?;
    for one in [&other, &server] {
        cloud.attach(one, &volume).await?;
    }
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let told = driven.must_fence().await?;
    driven.detached_once_proven(&told, 1)?;
    let seen = cloud.ask(&Who::Tenant, "volume", json!({ "volume": volume })).await?;
    let owners = seen["attachments"].as_array().cloned().unwrap_or_default();
    let owners: Vec<&str> = owners.iter().filter_map(|one| one["server_id"].as_str()).collect();
    assert_eq!((&seen["status"], owners), (&json!("in-use"), vec![other.as_str()]), "{seen:#}");
    Ok(())
}

/// A server that booted from a volume, with one that goes and one that the settings exclude.
async fn only_data_goes(who: &Who, name: &str) -> Result<()> {
    let cloud = cloud().await?;
    let root = cloud.bootable_volume("root-of-it").await?;
    let server = cloud.server_from(name, OPENSTACK_HOSTS[1], &root).await?;
    let (data, kept) = (cloud.volume("pvc-1").await?, cloud.volume("scratch-1").await?);
    for volume in [&data, &kept] {
        cloud.attach(&server, volume).await?;
    }
    let exclude = "exclude = { name = [\"scratch-*\"] }\n";
    let driven = Plan::over(who, &[&server]).releasing(exclude).start().await?;
    driven.must_fence().await?;
    driven.detached_while_off(1)?;
    cloud.until_volume(&data, "available").await?;
    for stays in [&root, &kept] {
        cloud.until_volume(stays, "in-use").await?;
        assert!(driven.sent("DELETE", stays)?.is_empty(), "it was never told to go");
    }
    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    Ok(())
}

#[tokio::test]
async fn the_root_volume_stays_and_so_does_what_the_settings_exclude() -> Result<()> {
    only_data_goes(&Who::Tenant, "from-a-volume").await
}

/// An administrator is told which device is the root.
#[tokio::test]
async fn the_root_volume_stays_for_an_administrator_too() -> Result<()> {
    only_data_goes(&Who::Admin, "from-a-volume-by-admin").await
}

#[tokio::test]
async fn what_the_settings_exclude_by_tag_or_id_stays() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("excludes", OPENSTACK_HOSTS[1]).await?;
    let (goes, by_tag, by_id) = (
        cloud.volume("excludes-1").await?,
        cloud.volume("excludes-2").await?,
        cloud.volume("excludes-3").await?,
    );
    for (volume, says) in [(&goes, "go"), (&by_tag, "stay"), (&by_id, "go")] {
        let path = format!("/volumes/{volume}/metadata");
        let body = json!({ "metadata": { "picket": says } });
        let asked = json!({ "service": "volumes", "method": "POST", "path": path, "body": body });
        assert_eq!(cloud.ask(&Who::Tenant, "rest", asked).await?["status"], 200);
        cloud.attach(&server, volume).await?;
    }
    let exclude = format!("exclude = {{ tag = [\"picket=stay\"], id = [{by_id:?}] }}\n");
    let driven = Plan::over(&Who::Tenant, &[&server]).releasing(&exclude).start().await?;
    let told = driven.must_fence().await?;
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&goes, "available").await?;
    cloud.until_volume(&by_tag, "in-use").await?;
    cloud.until_volume(&by_id, "in-use").await
}

#[tokio::test]
async fn a_detach_that_fails_at_first_is_tried_again() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("sticky", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("sticky").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { detach_fail: true, ..ServerFault::default() })?;
    let (told, ()) = tokio::try_join!(driven.fence(), async {
        let failed = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "detach: fails"));
        crate::scene::soon("a detach fails", failed).await?;
        cloud.hinder(&server, &ServerFault::default())
    })?;
    driven.is_fenced(&told);
    driven.detached_while_off(1)?;
    cloud.until_volume(&volume, "available").await
}

#[tokio::test]
async fn a_detach_whose_answer_is_lost_happens_once() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("lost-detach", OPENSTACK_HOSTS[1]).await?;
    let volume = cloud.volume("lost-detach").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let rules = cloud.rules(&[RequestRule::new(
        "DELETE",
        format!("{server}/os-volume_attachments/{volume}"),
        "unanswered",
    )])?;
    let told = driven.fence().await?;
    drop(rules);
    driven.is_fenced(&told);
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await
}

#[tokio::test]
async fn what_somebody_detached_by_hand_is_fine() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("by-hand", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("by-hand").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 5.0, ..ServerFault::default() })?;
    let detach = async {
        let begun = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "power_off: begins"));
        crate::scene::soon("the stop begins", begun).await?;
        cloud.until_server(&server, "SHUTOFF").await?;
        // Whoever is first.
        let _ = cloud.ask(&Who::Owner, "detach", json!({ "server": server, "volume": volume })).await;
        Ok(())
    };
    let (told, ()) = tokio::try_join!(driven.fence(), detach)?;
    driven.is_fenced(&told);
    driven.detached_while_off(1)?;
    cloud.until_volume(&volume, "available").await
}

/// Another server has it by the time at which it would be let go: it stays there, and nobody is asked to let it go.
#[tokio::test]
async fn what_is_attached_elsewhere_meanwhile_stays_there() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("loses-it", OPENSTACK_HOSTS[0]).await?;
    let heir = cloud.server("has-it", OPENSTACK_HOSTS[1]).await?;
    let volume = cloud.volume("moves").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let theirs = RequestRule {
        agent: "picket/".to_owned(),
        times: 10_000,
        ..RequestRule::new("DELETE", format!("{server}/os-volume_attachments/{volume}"), 503)
    };
    let rules = cloud.rules(&[theirs])?;
    let moves = async {
        let refused = async || Ok(!driven.sent("DELETE", &volume)?.is_empty());
        crate::scene::soon("its detach was refused", refused).await?;
        cloud.ask(&Who::Owner, "detach", json!({ "server": server, "volume": volume })).await?;
        cloud.until_volume(&volume, "available").await?;
        cloud.attach(&heir, &volume).await?;
        drop(rules);
        Ok(())
    };
    let (told, ()) = tokio::try_join!(driven.fence(), moves)?;
    driven.is_fenced(&told);
    cloud.until_volume(&volume, "in-use").await?;
    let of_heir = cloud.effects(&heir)?;
    assert!(of_heir.iter().all(|one| !one.did.starts_with("detach")), "{of_heir:#?}");
    Ok(())
}

/// By its name it is to stay: while Cinder does not tell that, nothing is let go.
#[tokio::test]
async fn what_is_not_told_of_a_volume_is_not_guessed() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("not-told", OPENSTACK_HOSTS[0]).await?;
    let (data, kept) = (cloud.volume("pvc-2").await?, cloud.volume("scratch-2").await?);
    for volume in [&data, &kept] {
        cloud.attach(&server, volume).await?;
    }
    let exclude = "exclude = { name = [\"scratch-*\"] }\n";
    let driven = Plan::over(&Who::Tenant, &[&server]).releasing(exclude).start().await?;
    let (agent, times) = ("picket/".to_owned(), 10_000);
    let not_told = RequestRule { service: "volumes", agent, times, ..RequestRule::new("GET", &kept, 404) };
    let rules = cloud.rules(&[not_told])?;
    let (told, ()) = tokio::try_join!(driven.fence(), async {
        let asked = async || {
            let off = cloud.runs_on(&server)?.is_empty();
            let asked = cloud.requests()?.into_iter().filter(|one| one.path.contains(&kept));
            Ok(off && asked.filter(|one| one.agent.starts_with("picket/")).count() >= 3)
        };
        crate::scene::soon("it is asked again and again", asked).await?;
        drop(rules);
        Ok(())
    })?;
    driven.is_fenced(&told);
    driven.detached_while_off(1)?;
    cloud.until_volume(&data, "available").await?;
    cloud.until_volume(&kept, "in-use").await
}
