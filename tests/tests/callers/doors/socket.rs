//! Callers over the Unix socket, by what the kernel says of them.

use picket_tests::{Fleet, Gateway, Result};

use crate::doors::scene::FLEET;

/// A number of this process's `status`: its own, or one that it has not.
fn own(key: &str, other: bool) -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("there");
    let own: u32 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    if other { own + 4_711 } else { own }
}

async fn gateway(role: &str) -> Result<Gateway> {
    let roles =
        format!("[roles.harness]\nrole = \"viewer\"\ncallers = [\"uid:*\"]\n[roles.tested]\n{role}\n");
    Gateway::start(&Fleet::new().with(FLEET).with(&roles)).await
}

async fn fences(role: &str) -> Result<bool> {
    let gateway = gateway(role).await?;
    let said = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert!(said.code == 0 || said.code == 7, "{said:?}");
    if said.code == 7 {
        let text = said.out + &said.err;
        assert!(text.contains(&format!("uid:{} has only viewer", own("Uid:", false))), "{text}");
    }
    Ok(said.code == 0)
}

#[tokio::test]
async fn users_and_groups_are_those_of_the_process() -> Result<()> {
    let operator = |key: &str, number: u32| format!("role = \"operator\"\n{key} = [{number}]");
    assert!(fences(&operator("uids", own("Uid:", false))).await?);
    assert!(!fences(&operator("uids", own("Uid:", true))).await?);
    assert!(fences(&operator("gids", own("Gid:", false))).await?);
    assert!(!fences(&operator("gids", own("Gid:", true))).await?);
    Ok(())
}

#[tokio::test]
async fn without_roles_who_may_open_the_socket_is_admin() -> Result<()> {
    let gateway = Gateway::start(&Fleet::new().with(FLEET)).await?;
    for holder in ["db", "somebody"] {
        let fence = ["fence", "n1", "--yes", "--reason", "a test", "--holder", holder];
        assert_eq!(gateway.picket(&fence).await?.code, 0, "for any holder");
    }
    Ok(())
}
