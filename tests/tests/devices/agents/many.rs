//! Agents are programs: only so many of them run at once, whatever is fenced.

use futures::future::try_join_all;
use picket_tests::{Gateway, Result, Webhook};

use crate::agents::scene::{Fake, fleet};

const NODES: usize = 6;
/// `[limits] agents`.
const AT_ONCE: usize = 2;

#[tokio::test]
async fn no_more_agents_run_at_once_than_the_settings_say() -> Result<()> {
    let (webhook, running) = (Webhook::start().await?, tempfile::tempdir().expect("a directory"));
    let fakes: Vec<Fake> = (0..NODES).map(|_| Fake::new()).collect();
    let names: Vec<String> = (1..=NODES).map(|index| format!("n{index}")).collect();
    let nodes: String = fakes.iter().zip(&names).map(|(fake, name)| fake.node_named(name)).collect();
    let limits = format!(
        "[limits]\nagents = {AT_ONCE}\n[budget]\nat_once = {NODES}\nbrake_least = 100\nmin_not_fenced = 0\n"
    );
    let gateway = Gateway::start(&fleet(&format!("{limits}{nodes}"), &webhook)).await?;
    gateway.checked().await?;
    fakes.iter().for_each(|fake| fake.counts_in(running.path()));
    let all = async |what: &'static str| {
        let asks = names.iter().map(|name| async {
            let said = gateway.picket(&[what, name, "--yes", "--reason", "a test"]).await?;
            assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
            Ok(())
        });
        try_join_all(asks).await
    };
    all("fence").await?;
    assert!(fakes.iter().all(|fake| !(fake.truth())()), "all of them are off");
    assert_eq!(webhook.releases().len(), NODES);
    all("unfence").await?;
    assert!(fakes.iter().all(|fake| (fake.truth())()), "all of them are on");
    let counted: Vec<usize> = fakes.iter().flat_map(Fake::counted).collect();
    assert_eq!(counted.iter().max(), Some(&AT_ONCE), "{counted:?}");
    Ok(())
}
