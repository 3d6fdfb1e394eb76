//! One EC2 for all tests here, and a gateway over an instance of it.

use std::path::PathBuf;

use picket_tests::peers::{AccessKey, Ec2, Ec2Request};
use picket_tests::{Daemon, Fleet, Gateway, Result, Told};
use tokio::sync::OnceCell;

use crate::scene::QUICK;

/// It ends with this process.
pub async fn ec2() -> Result<&'static Ec2> {
    static EC2: OnceCell<Ec2> = OnceCell::const_new();
    EC2.get_or_try_init(Ec2::start).await
}

/// The settings of the node n1, which is an instance of that EC2, asked with these files: by a template as it serves a whole cluster. Lines
/// that follow are its device's.
pub fn node(ec2: &Ec2, [config, credentials]: [PathBuf; 2], address: &str) -> String {
    format!(
        "[releases.volumes]\nkind = \"volumes\"\nsettle = \"0s\"\n\
         [nodes.n1]\ntemplate = \"instances\"\nprovider_id = {address:?}\n\
         [templates.instances]\nlevels = [[\"ec2\"]]\nreleases = [\"volumes\"]\n\
         [templates.instances.devices.ec2]\ndriver = \"aws\"\ninstance = \"{{provider_id}}\"\nendpoint = {:?}\n\
         config_file = {config:?}\ncredentials_file = {credentials:?}\nprofile = \"default\"\n",
        ec2.endpoint()
    )
}

/// A gateway over one node, n1, which is an instance.
pub struct Scene {
    pub gateway: Gateway,
    pub ec2: &'static Ec2,
    pub instance: String,
}

impl Scene {
    /// By whom may do all that the shipped policy allows.
    pub async fn of(instance: &str, rules: &str) -> Result<Self> {
        let ec2 = ec2().await?;
        Self::by(&ec2.picket().await?, instance, rules).await
    }

    /// By whom has that key; every device was looked at when it returns.
    pub async fn by(key: &AccessKey, instance: &str, rules: &str) -> Result<Self> {
        let files = ec2().await?.files(&key.id, key)?;
        Self::with(files, &format!("aws:///eu-central-1a/{instance}"), rules, &[]).await
    }

    /// With these files, the configuration first, and these variables; the instance as its settings have it.
    pub async fn with(
        files: [PathBuf; 2],
        address: &str,
        rules: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let node = node(ec2().await?, files, address);
        Self::over(&format!("{QUICK}{rules}\n{node}"), address, variables).await
    }

    /// The same with these lines among its device's settings.
    pub async fn calling(
        files: [PathBuf; 2],
        address: &str,
        lines: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let node = node(ec2().await?, files, address);
        Self::over(&format!("{QUICK}{node}{lines}\n"), address, variables).await
    }

    /// Asked where AWS's own variables and files say: no endpoint stands in its settings.
    pub async fn where_aws_says(
        files: [PathBuf; 2],
        address: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let ec2 = ec2().await?;
        let node = node(ec2, files, address).replacen(&format!("endpoint = {:?}\n", ec2.endpoint()), "", 1);
        Self::over(&format!("{QUICK}{node}"), address, variables).await
    }

    /// With these lines among its release's settings.
    pub async fn releasing(instance: &str, lines: &str) -> Result<Self> {
        Self::releasing_by(&ec2().await?.picket().await?, instance, lines).await
    }

    /// The same by whom has that key.
    pub async fn releasing_by(key: &AccessKey, instance: &str, lines: &str) -> Result<Self> {
        let ec2 = ec2().await?;
        let address = format!("aws:///eu-central-1a/{instance}");
        let node = node(ec2, ec2.files(&key.id, key)?, &address);
        let node = node.replacen("settle = \"0s\"\n", &format!("settle = \"0s\"\n{lines}\n"), 1);
        Self::over(&format!("{QUICK}{node}"), &address, &[]).await
    }

    /// By whom may terminate it as well, with these lines among its device's settings.
    pub async fn told(instance: &str, lines: &str, rules: &str) -> Result<Self> {
        let ec2 = ec2().await?;
        let key = ec2.who_terminates().await?;
        let address = format!("aws:///eu-central-1a/{instance}");
        let node = node(ec2, ec2.files(&key.id, &key)?, &address);
        Self::over(&format!("{QUICK}{rules}\n{node}{lines}\n"), &address, &[]).await
    }

    async fn over(text: &str, address: &str, variables: &[(&str, &str)]) -> Result<Self> {
        let ec2 = ec2().await?;
        let mut gateway = Gateway::of(Daemon::Shipped, &Fleet::new().with(text))?;
        gateway.begin(variables).await?;
        gateway.checked().await?;
        let instance = address.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Self { gateway, ec2, instance })
    }

    /// What was asked of it that changes something, in order.
    pub async fn commands(&self) -> Result<Vec<Ec2Request>> {
        let asked = self.ec2.asked(&self.instance).await?;
        Ok(asked.into_iter().filter(|one| !one.action.starts_with("Describe")).collect())
    }

    /// The detaches of it that came, each with instance and device, none by force, and none before it was stopped, by EC2's own truth.
    pub async fn detached(&self) -> Result<Vec<Ec2Request>> {
        let became = self.ec2.became(&self.instance).await?;
        let stopped = became.iter().rfind(|one| one.state == "stopped").map_or(f64::MAX, |one| one.at);
        let detached = self.ec2.asked_to("DetachVolume", &self.instance).await?;
        for one in &detached {
            let field = |key: &str| one.fields.get(key).map(String::as_str);
            let named = field("InstanceId") == Some(&*self.instance) && field("Device").is_some();
            assert!(named && field("Force").is_none() && one.at > stopped, "{one:?} {became:?}");
        }
        Ok(detached)
    }

    /// The same, and none before it was proven off, by the time at which EC2 heard it.
    pub async fn detached_once_proven(&self, told: &Told) -> Result<Vec<Ec2Request>> {
        let detached = self.detached().await?;
        let proven = told.proven_at_seconds().unwrap_or_else(|| panic!("it was not proven: {told:#?}"));
        assert!(detached.iter().all(|one| one.at > proven), "{proven}: {detached:#?}");
        Ok(detached)
    }

    pub async fn fence(&self) -> Result<Told> {
        self.gateway.tells("fence", "n1").await
    }

    pub async fn unfence(&self) -> Result<Told> {
        self.gateway.tells("unfence", "n1").await
    }

    /// Fences it: proven off, with everything released.
    pub async fn must_fence(&self) -> Result<Told> {
        let told = self.fence().await?;
        assert!(told.is_fenced(), "{told:#?}\n{}", self.gateway.log());
        assert_eq!(told.result["evidence"]["grade"], "hypervisor", "{:#?}", told.result);
        Ok(told)
    }

    /// Fences it: its levels are spent, a person must decide, and nothing of it was let go.
    pub async fn fence_in_vain(&self) -> Result<Told> {
        let told = self.fence().await?;
        assert_eq!(
            (told.kind(), told.reason()),
            ("needs_operator", "levels_spent"),
            "{}",
            self.gateway.log()
        );
        assert!(self.ec2.asked_to("DetachVolume", &self.instance).await?.is_empty());
        Ok(told)
    }

    /// The stops of it that came, each by force and without asking its system.
    pub async fn stops(&self) -> Result<Vec<Ec2Request>> {
        let stops = self.ec2.asked_to("StopInstances", &self.instance).await?;
        for stop in &stops {
            let field = |key: &str| stop.fields.get(key).map(String::as_str);
            assert_eq!((field("Force"), field("SkipOsShutdown")), (Some("true"), Some("true")), "{stop:?}");
        }
        Ok(stops)
    }
}
