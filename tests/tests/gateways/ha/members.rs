//! K11: members of etcd that do not answer are lost, whether or not anybody has fenced what carries them.

use picket_tests::Result;

use crate::ha::trio::{RULES, Trio};

#[tokio::test]
async fn while_one_member_does_not_answer_no_fence_takes_a_second_one() -> Result<()> {
    let rules = format!("{RULES}\n[store.members]\ne0 = \"n1\"\ne1 = \"\"\ne2 = \"\"");
    let mut trio = Trio::with_rules("9s", &rules, &[]).await?;
    trio.etcd.member(2).process().freeze();
    let said = trio.fenced("k1").await?;
    let words = format!("{} {}", said.out, said.err);
    assert!(said.code == 3 && words.contains("quorum"), "{said:?}\n{}", trio.gateways.logs());
    assert!(
        words.contains("1 would be left of the 2 that it needs; no answer comes from 1 (it counts e2)"),
        "{said:?}"
    );
    let plan = trio.gateways.said(&["plan", "n1"]).await?;
    assert!(format!("{} {}", plan.out, plan.err).contains("it counts e2"), "{plan:?}");
    assert!(trio.bmc.is_on()? && trio.told("off") == 0, "nothing was sent");
    trio.etcd.member(2).process().thaw();
    let said = trio.fenced("k2").await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", trio.gateways.logs());
    trio.never(&said);
    Ok(())
}
