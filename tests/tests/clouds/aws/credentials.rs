//! Who asks: by a role, by a token, by what has expired, and in the wrong region.

use picket_tests::Result;
use serde_json::json;

use crate::aws::scene::{Scene, ec2};
use crate::scene::IMPATIENT;

const REGION: &str = "region = eu-central-1\n";

fn address(instance: &str) -> String {
    format!("aws:///eu-central-1a/{instance}")
}

/// A profile that assumes a role by another one's key. What was assumed and has expired is assumed anew.
#[tokio::test]
async fn a_role_is_assumed_and_assumed_anew_once_it_has_expired() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let (key, role) = (ec2.user(&["sts:AssumeRole"]).await?, ec2.role().await?);
    let config = format!(
        "[default]\n{REGION}role_arn = {}\nsource_profile = base\n[profile base]\n{REGION}",
        role.arn
    );
    let keys = format!("[base]\naws_access_key_id = {}\naws_secret_access_key = {}\n", key.id, key.secret);
    let files = ec2.written("assumed", &config, &keys)?;
    let sts = ec2.endpoint();
    let scene = Scene::with(files, &address(&instance), "", &[("AWS_ENDPOINT_URL_STS", &sts)]).await?;
    let assumed =
        async || Ok::<_, picket_tests::PeerError>(ec2.asked_to("AssumeRole", &role.arn).await?.len());
    assert_eq!(assumed().await?, 1, "{:#?}", ec2.asked_to("AssumeRole", &role.arn).await?);
    let expired = json!({ "code": "RequestExpired", "message": "Request has expired.", "status": 400 });
    ec2.rule("StopInstances", &instance, 1, expired).await?;
    scene.must_fence().await?;
    assert!(assumed().await? >= 2, "once more after it was refused");
    let log = scene.gateway.log();
    assert!(!log.contains(&key.secret), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_token_of_a_web_identity_serves() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let role = ec2.role().await?;
    let [config, token] = ec2.written("token", &format!("[default]\n{REGION}"), &role.token)?;
    let empty = ec2.written("no-keys", "", "")?[1].clone();
    let (sts, token) = (ec2.endpoint(), token.display().to_string());
    let variables = [
        ("AWS_ENDPOINT_URL_STS", sts.as_str()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str()),
        ("AWS_ROLE_ARN", role.arn.as_str()),
        ("AWS_ROLE_SESSION_NAME", "picket"),
    ];
    let scene = Scene::with([config, empty], &address(&instance), "", &variables).await?;
    scene.must_fence().await?;
    assert!(!ec2.asked_to("AssumeRoleWithWebIdentity", &role.arn).await?.is_empty());
    let log = scene.gateway.log();
    assert!(!log.contains(&role.token), "{log}");
    Ok(())
}

/// A role that another role assumes, each of them in four seconds: no call here is as long as that.
#[tokio::test]
async fn credentials_that_take_longer_than_a_call_serve() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let key = ec2.user(&["sts:AssumeRole"]).await?;
    let (first, second) = (ec2.role_that_assumes().await?, ec2.role().await?);
    let config = format!(
        "[default]\n{REGION}role_arn = {}\nsource_profile = first\n\
         [profile first]\n{REGION}role_arn = {}\nsource_profile = base\n[profile base]\n{REGION}",
        second.arn, first.arn
    );
    let keys = format!("[base]\naws_access_key_id = {}\naws_secret_access_key = {}\n", key.id, key.secret);
    let files = ec2.written("one-by-another", &config, &keys)?;
    for role in [&first, &second] {
        ec2.rule("AssumeRole", &role.arn, 1_000, json!({ "after": 4 })).await?;
    }
    let sts = ec2.endpoint();
    let far = [("AWS_ENDPOINT_URL_STS", sts.as_str())];
    Scene::calling(files, &address(&instance), "call = \"6s\"", &far).await?.must_fence().await.map(drop)
}

/// The gateway runs in an instance, or in a task of ECS. What answers is first asked by AWS's own client.
#[tokio::test]
async fn the_metadata_services_of_an_instance_and_of_ecs_serve() -> Result<()> {
    let ec2 = ec2().await?;
    let role = ec2.role().await?;
    let token = ec2.serve(&role).await?;
    let endpoint = ec2.endpoint();
    let ecs = format!("{endpoint}/ecs/credentials");
    let of_instance = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str())];
    let of_ecs = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", ecs.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", token.as_str()),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    let [config, keys] = ec2.written("no-keys-at-all", &format!("[default]\n{REGION}"), "")?;
    let asks =
        "import boto3; print(boto3.client('ec2').describe_instances()['ResponseMetadata']['HTTPStatusCode'])";
    for (variables, path) in [
        (&of_instance[..], "/latest/meta-data/iam/security-credentials/served"),
        (&of_ecs[..], "/ecs/credentials"),
    ] {
        let mut command = tokio::process::Command::new(picket_tests::peers::Ec2::python()?);
        command.args(["-c", asks]).envs(variables.iter().copied()).env("AWS_ENDPOINT_URL_EC2", &endpoint);
        command.env("AWS_CONFIG_FILE", &config).env("AWS_SHARED_CREDENTIALS_FILE", &keys);
        let said = command.output().await.expect("Python");
        assert!(said.stdout.starts_with(b"200"), "{said:?}");
        let before = ec2.served(path).await?;
        let instance = ec2.instance(&["/dev/sdf"]).await?;
        let files = [config.clone(), keys.clone()];
        let scene = Scene::with(files, &address(&instance), "", variables).await?;
        scene.must_fence().await?;
        assert!(before >= 1 && ec2.served(path).await? > before, "{path}");
    }
    Ok(())
}

/// As a machine outside of AWS logs in: by a program that the profile names.
#[tokio::test]
async fn what_a_program_prints_serves() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let key = ec2.picket().await?;
    let lines = format!(
        "#!/bin/sh\necho '{{\"Version\": 1, \"AccessKeyId\": \"{}\", \"SecretAccessKey\": \"{}\"}}'\n",
        key.id, key.secret
    );
    let program = ec2.written("prints", "", &lines)?[1].clone();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).expect("it is ours");
    let config = format!("[default]\n{REGION}credential_process = {}\n", program.display());
    let files = ec2.written("by-program", &config, "")?;
    let scene = Scene::with(files, &address(&instance), "", &[]).await?;
    scene.must_fence().await?;
    let log = scene.gateway.log();
    assert!(!log.contains(&key.secret), "{log}");
    Ok(())
}

/// Nobody listens where all of AWS's services would be asked.
#[tokio::test]
async fn the_variable_and_the_profile_of_ec2_alone_say_where_it_is_asked() -> Result<()> {
    let ec2 = ec2().await?;
    let (endpoint, nowhere) = (ec2.endpoint(), "http://127.0.0.1:9");
    let key = ec2.picket().await?;
    let keys = format!("[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n", key.id, key.secret);
    let plain = format!("[default]\n{REGION}");
    // A variable comes before all that stands in files, also where it is of all services.
    let services = format!(
        "{plain}endpoint_url = {nowhere}\nservices = here\n[services here]\nec2 =\n  endpoint_url = {endpoint}\n"
    );
    let of_all = ("AWS_ENDPOINT_URL", nowhere);
    let of_ec2 = ("AWS_ENDPOINT_URL_EC2", endpoint.as_str());
    for (name, config, variables) in
        [("variable", &plain, &[of_all, of_ec2][..]), ("services", &services, &[][..])]
    {
        let instance = ec2.instance(&["/dev/sdf"]).await?;
        let files = ec2.written(name, config, &keys)?;
        Scene::where_aws_says(files, &address(&instance), variables).await?.must_fence().await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_has_expired_for_good_switches_nothing_and_is_said() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
    let scene = Scene::of(&instance, IMPATIENT).await?;
    let words = "The security token included in the request is expired";
    let expired = json!({ "code": "ExpiredToken", "message": words, "status": 400 });
    scene.ec2.rule("*", &instance, 1_000_000, expired).await?;
    scene.fence_in_vain().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "running");
    assert!(scene.gateway.log().contains("ExpiredToken"), "{}", scene.gateway.log());
    Ok(())
}

#[tokio::test]
async fn an_instance_of_another_region_is_not_found_and_never_off() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    ec2.switch(&instance, "stopped").await?;
    let files = ec2.files("elsewhere", &ec2.picket().await?)?;
    let elsewhere = format!("aws:///us-west-2a/{instance}");
    let scene = Scene::with(files, &elsewhere, IMPATIENT, &[]).await?;
    scene.fence_in_vain().await?;
    let log = scene.gateway.log();
    assert!(
        log.contains("InvalidInstanceID.NotFound") && log.contains("(asked of EC2 in us-west-2"),
        "{log}"
    );
    Ok(())
}

#[tokio::test]
async fn a_key_that_everybody_may_read_is_not_used() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let files = ec2.files("readable", &ec2.picket().await?)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&files[1], mode).expect("it is ours");
    let scene = Scene::with(files.clone(), &address(&instance), IMPATIENT, &[]).await?;
    let said = scene.gateway.picket(&["check", "n1"]).await?;
    let right = format!("everybody may read it (mode 644): run chmod 600 {}", files[1].display());
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&right), "{said:?}");
    scene.fence_in_vain().await?;
    Ok(())
}
