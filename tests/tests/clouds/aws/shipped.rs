//! The policies that are shipped name actions that there are, by AWS's own description of its services.

use picket_tests::Result;
use picket_tests::peers::Ec2;

const LOOKS: &str = "
import json, sys, botocore.session
session = botocore.session.get_session()
for path in sys.argv[1:]:
    for statement in json.load(open(path))['Statement']:
        actions = statement['Action']
        for action in [actions] if isinstance(actions, str) else actions:
            service, operation = action.split(':')
            assert operation in session.get_service_model(service).operation_names, action
            print(action)
";

#[tokio::test]
async fn the_policies_name_actions_that_there_are() -> Result<()> {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/aws");
    let files: Vec<_> =
        std::fs::read_dir(shipped).expect("it is there").flatten().map(|one| one.path()).collect();
    assert!(files.len() >= 4, "{files:?}");
    let looked = tokio::process::Command::new(Ec2::python()?).args(["-c", LOOKS]).args(&files).output().await;
    let looked = looked.expect("Python");
    let said = String::from_utf8_lossy(&looked.stdout).into_owned();
    assert!(looked.status.success() && said.lines().count() >= 12, "{looked:?}");
    Ok(())
}
