//! One EC2 for all tests here, and a gateway over an instance of it.

use picket_tests::peers::{AccessKey, Ec2, Ec2Request};
use picket_tests::{Daemon, Fleet, Gateway, Result, Said};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// What makes tests quick, and proves as much: the least that is allowed.
const QUICK: &str = "[rules]\ncloud_poll = \"1s\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"\n";
/// A level is given up soon.
pub const IMPATIENT: &str = "level_share = \"12s\"\ncloud_level_share = \"12s\"\n";

/// It ends with this process.
pub async fn ec2() -> Result<&'static Ec2> {
    static EC2: OnceCell<Ec2> = OnceCell::const_new();
    EC2.get_or_try_init(Ec2::start).await
}

/// A gateway over one node, n1, which is an instance.
pub struct Scene {
    pub gateway: Gateway,
    pub ec2: &'static Ec2,
    pub instance: String,
}

/// How a call ended.
#[derive(Debug)]
pub struct Told {
    pub result: Value,
}

impl Told {
    fn of(said: Said) -> Self {
        let all: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        Self { result: all["results"][0].clone() }
    }

    /// What it came to: `fenced`, `needs_operator`.
    pub fn kind(&self) -> &str {
        self.result["outcome"]["kind"].as_str().unwrap_or("nothing yet")
    }
}

impl Scene {
    /// By whom may do all that the shipped policy allows.
    pub async fn of(instance: &str, rules: &str) -> Result<Self> {
        let ec2 = ec2().await?;
        Self::by(&ec2.picket().await?, instance, rules).await
    }

    /// By whom has that key; every device was looked at when it returns.
    pub async fn by(key: &AccessKey, instance: &str, rules: &str) -> Result<Self> {
        let ec2 = ec2().await?;
        let [config, credentials] = ec2.files(&key.id, key)?;
        let text = format!(
            "{QUICK}{rules}\n[releases.volumes]\nkind = \"volumes\"\nsettle = \"0s\"\n\
             [nodes.n1]\nlevels = [[\"ec2\"]]\nreleases = [\"volumes\"]\n\
             [nodes.n1.devices.ec2]\ndriver = \"aws\"\ninstance = \"aws:///eu-central-1a/{instance}\"\nendpoint = {:?}\n\
             config_file = {config:?}\ncredentials_file = {credentials:?}\nprofile = \"default\"\n",
            ec2.endpoint()
        );
        let mut gateway = Gateway::of(Daemon::Shipped, &Fleet::new().with(&text))?;
        gateway.begin(&[]).await?;
        gateway.checked().await?;
        Ok(Self { gateway, ec2, instance: instance.to_owned() })
    }

    pub async fn fence(&self) -> Result<Told> {
        self.ask("fence").await
    }

    pub async fn unfence(&self) -> Result<Told> {
        self.ask("unfence").await
    }

    async fn ask(&self, verb: &str) -> Result<Told> {
        let asked = [verb, "n1", "--yes", "--reason", "a test", "-o", "json", "--timeout", "100s"];
        Ok(Told::of(self.gateway.picket(&asked).await?))
    }

    /// Fences it: proven off, with everything released.
    pub async fn must_fence(&self) -> Result<Told> {
        let told = self.fence().await?;
        let released = &told.result["outcome"]["released"];
        let is_fenced = told.kind() == "fenced" && *released == json!(true);
        assert!(is_fenced, "{:#?}\n{}", told.result, self.gateway.log());
        assert_eq!(told.result["evidence"]["grade"], "hypervisor", "{:#?}", told.result);
        Ok(told)
    }

    /// Fences it: its levels are spent, a person must decide, and nothing of it was let go.
    pub async fn fence_in_vain(&self) -> Result<Told> {
        let told = self.fence().await?;
        let reason = &told.result["outcome"]["reason"];
        assert_eq!(
            (told.kind(), reason),
            ("needs_operator", &json!("levels_spent")),
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
