//! Describing a node before it starts, and the site that nodes share.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Larder;
use crate::support::Origin;
use crate::support::address::{OwnAddress, OwnPort};

/// Nodes that share a secret and a port.
pub struct Site {
    name: String,
    secret: String,
    port: std::sync::Arc<OwnPort>,
}

impl Site {
    /// An own site for this test.
    pub fn new() -> Self {
        Self { name: "lab".into(), secret: secret(), port: OwnPort::claim().into() }
    }

    /// Others on the same wire: same name and port, another secret.
    pub fn strangers(&self) -> Self {
        Self { name: self.name.clone(), secret: secret(), port: self.port.clone() }
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }
}

fn secret() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A node that is described but not yet running.
pub struct LarderBuilder {
    name: String,
    settings: Vec<(String, toml::Value)>,
    site: Option<(String, String, u16)>,
    mormot: Option<(String, u16)>,
    address: Option<OwnAddress>,
    fixed: Option<IpAddr>,
    wrapper: Vec<String>,
    cache_dir: Option<PathBuf>,
    broadcast: String,
    authority: Option<String>,
    mirrors: Vec<toml::Value>,
}

impl LarderBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            settings: Vec::new(),
            site: None,
            mormot: None,
            address: None,
            fixed: None,
            wrapper: Vec::new(),
            cache_dir: None,
            broadcast: "127.255.255.255".into(),
            authority: None,
            mirrors: Vec::new(),
        }
    }

    /// A member of this site.
    pub fn peers(mut self, site: &Site) -> Self {
        self.site = Some((site.name.clone(), site.secret.clone(), site.port()));
        self
    }

    /// Among mORMot peers with this secret and port; on loopback they are named, on a LAN they are found.
    pub fn mormot(mut self, secret: &str, port: u16) -> Self {
        self.mormot = Some((secret.into(), port));
        self
    }

    /// Sets a key of the configuration, by its dotted name.
    pub fn set(mut self, key: &str, value: impl Into<toml::Value>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Sets a key to a list of texts.
    pub fn list(self, key: &str, values: &[&str]) -> Self {
        let values: Vec<toml::Value> = values.iter().map(|value| (*value).into()).collect();
        self.set(key, values)
    }

    /// Adds a `[[mirror]]` of this preset.
    pub fn mirror(mut self, name: &str, preset: &str, url: &str) -> Self {
        let table = [("name", name), ("preset", preset), ("url", url)];
        let table: toml::Table =
            table.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect();
        self.mirrors.push(table.into());
        self
    }

    /// Trusts a TLS origin's certificate.
    pub fn trusts(self, origin: &Origin) -> Self {
        self.trusts_pem(origin.certificate())
    }

    /// Trusts this certificate of an origin.
    pub fn trusts_pem(mut self, pem: &str) -> Self {
        self.authority = Some(pem.into());
        self
    }

    /// A cache folder elsewhere.
    pub fn cache_dir(mut self, folder: &Path) -> Self {
        self.cache_dir = Some(folder.to_owned());
        self
    }

    /// Inside a network namespace: at this address, entered by this command.
    pub fn inside(mut self, address: IpAddr, wrapper: Vec<String>, broadcast: &str) -> Self {
        self.fixed = Some(address);
        self.wrapper = wrapper;
        self.broadcast = broadcast.into();
        self
    }

    /// Started by another command, in the same network.
    pub fn wrapped(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Writes the configuration, starts the daemon and waits until it serves.
    pub fn start(self) -> Larder {
        let mut larder = self.ready_to_start();
        larder.spawn();
        larder.wait_ready();
        larder
    }

    /// Writes the configuration only.
    pub fn ready_to_start(mut self) -> Larder {
        let home = tempfile::Builder::new().prefix(&format!("larder-{}-", self.name)).tempdir().unwrap();
        let claimed = self.fixed.is_none().then(|| self.address.take().unwrap_or_else(OwnAddress::claim));
        let ip = self.fixed.or_else(|| claimed.as_ref().map(OwnAddress::ip)).unwrap();
        let cache_dir = self.cache_dir.clone().unwrap_or_else(|| home.path().join("cache"));
        let port = self.site.as_ref().map_or(8096, |(_, _, port)| *port);
        let larder = Larder {
            name: self.name.clone(),
            cache_dir,
            proxy: SocketAddr::new(ip, 8098),
            // Off loopback the admin port stays on loopback and the Unix socket is used.
            admin: SocketAddr::new(if ip.is_loopback() { ip } else { [127, 0, 0, 1].into() }, 8097),
            peer: SocketAddr::new(ip, port),
            wrapper: std::mem::take(&mut self.wrapper),
            child: None,
            damaged: false,
            address: claimed,
            home,
        };
        let text = toml::to_string(&self.table(&larder)).unwrap();
        std::fs::write(larder.config_file(), text).unwrap();
        larder
    }

    fn table(self, larder: &Larder) -> toml::Table {
        let mut table = toml::Table::new();
        let mut set = |key: &str, value: toml::Value| insert(&mut table, key, value);
        let one = |address: SocketAddr| toml::Value::Array(vec![address.to_string().into()]);
        set("state_dir", larder.state_dir().display().to_string().into());
        set("node_name", self.name.clone().into());
        set("drain_timeout", "2s".into());
        set("cache.dir", larder.cache_dir.display().to_string().into());
        set("cache.min_free", "1MiB".into());
        set("proxy.listen", one(larder.proxy));
        set("admin.listen", one(larder.admin));
        set("log.level", "info,larder=debug".into());
        set("log.format", "text".into());
        if let Some((site, secret, port)) = &self.site {
            let file = larder.home().join("secret");
            let mut options = std::fs::OpenOptions::new();
            let mut file_to_write =
                options.create(true).truncate(true).write(true).mode(0o600).open(&file).unwrap();
            writeln!(file_to_write, "{secret}").unwrap();
            set("site", site.clone().into());
            set("secret_file", file.display().to_string().into());
            set("peers.port", i64::from(*port).into());
            set("peers.listen", one(larder.peer));
            let broadcast = toml::Value::Array(vec![format!("{}:{port}", self.broadcast).into()]);
            set("peers.broadcast", broadcast);
        }
        if let Some((secret, port)) = &self.mormot {
            let file = larder.home().join("mormot-secret");
            let mut options = std::fs::OpenOptions::new();
            let mut to = options.create(true).truncate(true).write(true).mode(0o600).open(&file).unwrap();
            writeln!(to, "{secret}").unwrap();
            set("mormot.enabled", true.into());
            set("mormot.secret_file", file.display().to_string().into());
            set("mormot.port", i64::from(*port).into());
            if larder.ip().is_loopback() {
                set("mormot.interface", larder.ip().to_string().into());
                set("mormot.broadcast", self.broadcast.clone().into());
            }
        }
        if let Some(authority) = &self.authority {
            let file = larder.home().join("ca.pem");
            std::fs::write(&file, authority).unwrap();
            set("origin.ca_file", file.display().to_string().into());
        }
        if !self.mirrors.is_empty() {
            set("mirror", self.mirrors.into());
        }
        for (key, value) in self.settings {
            insert(&mut table, &key, value);
        }
        table
    }
}

/// Puts a value where a dotted key says.
fn insert(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.into(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| toml::Table::new().into());
            insert(inner.as_table_mut().unwrap(), rest, value);
        }
    }
}

#[test]
fn a_dotted_key_lands_in_its_table() {
    let mut table = toml::Table::new();
    insert(&mut table, "cache.dir", "/x".into());
    insert(&mut table, "cache.max_size", "1MiB".into());
    insert(&mut table, "site", "lab".into());
    assert_eq!(table["cache"]["dir"].as_str(), Some("/x"));
    assert_eq!(table["cache"]["max_size"].as_str(), Some("1MiB"));
    assert_eq!(table["site"].as_str(), Some("lab"));
}
