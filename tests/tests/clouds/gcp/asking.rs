//! Whose token it is: workload identity federation, the metadata server, and one that ends or is revoked in the middle.

use std::path::Path;

use picket_tests::Result;
use picket_tests::peers::GceTreatment;

use crate::gcp::scene::{Plan, compute, picket, private};
use crate::scene::soon;

#[tokio::test]
async fn by_workload_identity_federation() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let user = picket().await?;
    let file = compute.external_account_file(&user)?;
    let scene = Plan::new().with(&file, &[], &instance).await?;
    scene.must_fence().await?;
    scene.detached_while_off(1).await?;
    assert_eq!(scene.unfence().await?.kind(), "unfenced");
    let kinds = kinds(scene.id()).await?;
    assert_eq!(kinds, ["impersonated"], "the service account's token, and not the federated one");
    Ok(())
}

#[tokio::test]
async fn by_the_metadata_server() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let user = picket().await?;
    let address = compute.metadata(&user).await?;
    let variables = [("GCE_METADATA_HOST", address.as_str()), ("HOME", "/nonexistent")];
    let scene = Plan::new().with(Path::new(""), &variables, &instance).await?;
    scene.must_fence().await?;
    scene.detached_while_off(1).await?;
    assert_eq!(kinds(scene.id()).await?, ["metadata"]);
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_revoked_in_the_middle_is_renewed() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let user = picket().await?;
    let scene = Plan::new().by(&user, &instance).await?;
    let stops = GceTreatment { stopping: Some(4.0), ..GceTreatment::default() };
    compute.treat(scene.id(), &stops).await?;
    let revoked = async {
        soon("it stops", async || Ok(compute.state(scene.id()).await? == "STOPPING")).await?;
        compute.revoke(&user).await
    };
    let (told, ()) = tokio::try_join!(scene.fence(), revoked)?;
    scene.is_fenced(&told).await?;
    scene.detached_once_proven(&told, 1).await?;
    let asked = compute.asked(scene.id()).await?;
    let refused = asked.iter().position(|one| one.status == 401).expect("it was refused once");
    assert!(asked[refused..].iter().any(|one| one.status == 200), "{asked:#?}");
    Ok(())
}

#[tokio::test]
async fn a_token_that_ends_in_the_middle_is_renewed() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let user = picket().await?;
    // It lives for some seconds only: several of them serve one fence.
    compute.life(&user, 8.0).await?;
    let key = compute.service_account_file(&user)?;
    private(&key)?;
    let scene = Plan::new().with(&key, &[], &instance).await?;
    scene.compute.switch(scene.id(), "TERMINATED").await?;
    scene.must_fence().await?;
    scene.detached_while_off(1).await?;
    let asked = scene.compute.asked(scene.id()).await?;
    let mut serials: Vec<u64> =
        asked.iter().filter_map(|one| one.token.as_ref()).map(|token| token.serial).collect();
    serials.dedup();
    assert!(serials.len() >= 2, "{serials:?}");
    Ok(())
}

/// Of which kind the tokens were that came with what names it.
async fn kinds(instance: &str) -> Result<Vec<String>> {
    let asked = compute().await?.asked(instance).await?;
    let mut kinds: Vec<String> =
        asked.into_iter().filter_map(|one| one.token).map(|token| token.kind).collect();
    kinds.sort();
    kinds.dedup();
    Ok(kinds)
}
