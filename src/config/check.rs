//! What can only be judged by several values together, and what a value means for this build.
//!
//! A clash stops the start; a warning is for what is allowed but probably not meant. [`check_files`] also looks
//! at the files the configuration names; it is for `config check` and `doctor`, the daemon finds out by opening.

use std::net::{IpAddr, SocketAddr};

use super::Config;
use super::complaint::Complaint;
use super::load::Sources;
use crate::admin;
use crate::fetch::{Release, Trust};
use crate::peer::Tls;
use crate::telemetry::check_level;
use crate::tls;

/// What stops the start, and what is worth a warning.
pub(super) fn check(config: &Config, sources: &Sources) -> (Vec<Complaint>, Vec<Complaint>) {
    let mut judge = Judge { clashes: Vec::new(), warnings: Vec::new() };
    judge.general(config);
    judge.space(config);
    judge.doors(config);
    judge.intercept(config);
    judge.admin(config);
    judge.peers(config);
    judge.mormot(config);
    judge.origin(config);
    judge.mirrors(config);
    judge.limits(config);
    judge.bans(config);
    judge.ports(config);
    judge.catalogue(config);
    let placed = |mut complaint: Complaint| {
        complaint.place = complaint.place.or_else(|| sources.place(&complaint.key));
        complaint
    };
    (judge.clashes.into_iter().map(placed).collect(), judge.warnings.into_iter().map(placed).collect())
}

/// Whether the files the configuration names can be read by whoever runs this.
pub fn check_files(config: &Config) -> Vec<Complaint> {
    let named = [
        ("origin.ca_file", &config.origin.ca_file),
        ("admin.tls_cert", &config.admin.tls_cert),
        ("admin.tls_key", &config.admin.tls_key),
        ("index.catalogue_password_file", &config.index.catalogue_password_file),
        ("index.catalogue_ca_file", &config.index.catalogue_ca_file),
    ];
    let unreadable =
        named.into_iter().filter(|(_, path)| !path.as_os_str().is_empty()).filter_map(|(key, path)| {
            let error = std::fs::File::open(path).err()?;
            Some(Complaint::about(key, format!("cannot read {}: {error}", path.display())))
        });
    let unreadable: Vec<_> = unreadable.collect();
    if unreadable.is_empty() { check_contents(config) } else { unreadable }
}

/// Whether what can be read is what it is named for.
fn check_contents(config: &Config) -> Vec<Complaint> {
    let (ca, cert, key) = (&config.origin.ca_file, &config.admin.tls_cert, &config.admin.tls_key);
    let is_set = |path: &std::path::Path| !path.as_os_str().is_empty();
    let authority = is_set(ca).then(|| tls::origin_client(Some(ca)).err()).flatten();
    let own = (is_set(cert) && is_set(key)).then(|| tls::listener(cert, key).err()).flatten();
    let wrong = [("origin.ca_file", authority), ("admin.tls_cert", own)];
    let complaint =
        |(key, error): (&str, Option<tls::TlsError>)| Some(Complaint::about(key, error?.to_string()));
    wrong.into_iter().filter_map(complaint).collect()
}

struct Judge {
    clashes: Vec<Complaint>,
    warnings: Vec<Complaint>,
}

impl Judge {
    fn refuse(&mut self, wrong: bool, key: &str, what: &str, hint: &str) {
        if wrong {
            self.clashes.push(Complaint::about(key, what).hint(hint));
        }
    }

    fn warn(&mut self, doubtful: bool, key: &str, what: &str, hint: &str) {
        if doubtful {
            self.warnings.push(Complaint::about(key, what).hint(hint));
        }
    }

    fn general(&mut self, config: &Config) {
        self.refuse(config.site.trim().is_empty(), "site", "it must not be empty", "");
        if let Err(error) = check_level(&config.log.level) {
            self.refuse(true, "log.level", &error.to_string(), "");
        }
    }

    fn space(&mut self, config: &Config) {
        let cache = &config.cache;
        let hint = "cache.read_only = true keeps what is there and stores nothing new";
        self.refuse(cache.max_size.bytes() == 0, "cache.max_size", "0 leaves no room for anything", hint);
        self.warn(
            cache.max_object > cache.max_size,
            "cache.max_object",
            "it is larger than cache.max_size, which is the limit then",
            "",
        );
        self.refuse(cache.max_age.0.is_zero(), "cache.max_age", "0 would throw everything away", "");
    }

    fn doors(&mut self, config: &Config) {
        let proxy = &config.proxy;
        let beyond = proxy.listen.iter().any(|address| !address.ip().is_loopback());
        let only_here = proxy.allow.iter().all(|net| net.addr().is_loopback());
        self.warn(
            beyond && only_here,
            "proxy.allow",
            "the doors listen to other machines, but only this one may use them",
            "add your network, such as \"10.0.0.0/8\"",
        );
        self.warn(
            beyond && proxy.allow.iter().any(|net| net.prefix_len() == 0),
            "proxy.allow",
            "the whole world may use this proxy",
            "name your own networks",
        );
    }

    fn intercept(&mut self, config: &Config) {
        let widest = config.intercept.hosts.iter().find(|host| host.is_top_level());
        if let Some(host) = widest {
            let what = format!("{host} opens every site of a whole top-level domain");
            self.warn(true, "intercept.hosts", &what, "name the sites that are worth caching");
        }
    }

    fn admin(&mut self, config: &Config) {
        let admin = &config.admin;
        let (cert, key) = (!admin.tls_cert.as_os_str().is_empty(), !admin.tls_key.as_os_str().is_empty());
        let both = "admin.tls_cert and admin.tls_key go together";
        self.refuse(cert && !key, "admin.tls_key", "a certificate without its key", both);
        self.refuse(key && !cert, "admin.tls_cert", "a key without its certificate", both);
        let beyond = admin.listen.iter().find(|address| !address.ip().is_loopback());
        if let (Some(address), false) = (beyond, cert) {
            let what = format!(
                "{address} can be reached from other machines, and the token would cross the network in clear"
            );
            self.refuse(
                true,
                "admin.listen",
                &what,
                "set admin.tls_cert and admin.tls_key, or listen on 127.0.0.1",
            );
        }
        self.users(admin);
    }

    fn users(&mut self, admin: &admin::Config) {
        let key = "admin.users";
        for (at, user) in admin.users.iter().enumerate() {
            let named_before = admin.users.iter().take(at).any(|other| other.name == user.name);
            let no_name =
                user.name.trim().is_empty() || user.name.contains(|c: char| c == ':' || c.is_control());
            self.refuse(no_name, key, &format!("`{}` is no name", user.name), "letters and digits; no colon");
            self.refuse(named_before, key, &format!("{} is there twice", user.name), "give each name once");
            let bad_hash = !user.password.is_empty() && !admin::is_password_hash(&user.password);
            let what = format!("the password of {} is no Argon2id hash", user.name);
            self.refuse(
                bad_hash,
                key,
                &what,
                "`larder secret password` makes one; never write the password itself",
            );
            let no_way = user.password.is_empty() && admin.trusted_header.is_empty();
            let what = format!("{} can never log in", user.name);
            self.warn(no_way, key, &what, "give a password, or a front proxy by admin.trusted_header");
        }
        let (header, from) = (&admin.trusted_header, &admin.trusted_from);
        let unreadable = !header.is_empty() && http::HeaderName::from_bytes(header.as_bytes()).is_err();
        self.refuse(
            unreadable,
            "admin.trusted_header",
            "it is no name of a field",
            "such as \"X-Remote-User\"",
        );
        self.refuse(
            header.is_empty() != from.is_empty(),
            "admin.trusted_from",
            "admin.trusted_header and admin.trusted_from go together",
            "name the address of the proxy that sets the field, and nobody else's",
        );
        self.warn(
            from.iter().any(|net| net.prefix_len() < 8),
            "admin.trusted_from",
            "nearly anybody could send the field",
            "name the proxy's own address",
        );
    }

    fn peers(&mut self, config: &Config) {
        let peers = &config.peers;
        self.refuse(
            peers.witnesses == 0,
            "peers.witnesses",
            "at least one witness is needed",
            "trust = \"digest\" takes nobody's word",
        );
        self.refuse(
            peers.max_uploads == 0,
            "peers.max_uploads",
            "at least one is needed",
            "peers.enabled = false serves nobody",
        );
        self.refuse(
            peers.tls == Tls::Off && peers.release == Release::Stream,
            "peers.release",
            "bytes that came without TLS go out only when proven",
            "take \"proven\" or \"auto\", or tls = \"pinned\"",
        );
        self.warn(
            peers.trust == Trust::Digest && peers.witnesses > 1,
            "peers.witnesses",
            "it has no effect with trust = \"digest\"",
            "",
        );
        self.warn(
            peers.wait_max.0 > std::time::Duration::from_secs(5),
            "peers.wait_max",
            "clients may wait this long for neighbours that do not answer",
            "250ms is plenty on a LAN",
        );
        self.warn(
            peers.port == 0,
            "peers.port",
            "neighbours cannot find a port that changes",
            "leave it at 8096",
        );
    }

    fn catalogue(&mut self, config: &Config) {
        const KEY: &str = "index.catalogue";
        let index = &config.index;
        let files = [&index.catalogue_password_file, &index.catalogue_ca_file];
        let of_nothing = index.catalogue.is_empty() && files.iter().any(|file| !file.as_os_str().is_empty());
        self.warn(of_nothing, KEY, "there are files for a catalogue, and no catalogue", "");
        match index.server(None) {
            Err(error) => {
                let hint =
                    "write postgres://USER@HOST/DATABASE, and the password into catalogue_password_file";
                self.refuse(true, KEY, &error.to_string(), hint);
            }
            Ok(None) => {}
            Ok(Some(server)) => {
                self.warn(
                    server.is_in_clear(),
                    KEY,
                    "what the nodes of the fleet hold crosses the network in clear",
                    "leave sslmode=disable out",
                );
                self.warn(
                    !config.peers.enabled,
                    KEY,
                    "it has no effect with peers.enabled = false",
                    "who asks no neighbours needs no catalogue of them",
                );
            }
        }
    }

    fn mormot(&mut self, config: &Config) {
        let (mormot, peers) = (&config.mormot, &config.peers);
        let what = format!(
            "peers.port and mormot.port are both {}: every frame of ours on the port of mORMot peers would get \
             this machine banned by them",
            peers.port
        );
        let clash = peers.enabled && peers.port == mormot.port;
        self.refuse(clash, "mormot.port", &what, "leave peers.port at 8096 and mormot.port at 8099");
        if !mormot.enabled {
            return;
        }
        self.refuse(mormot.port == 0, "mormot.port", "all peers have the same port", "leave it at 8099");
        let no_name = |c: char| c.is_whitespace() || "/!*:".contains(c);
        self.refuse(
            mormot.interface.contains(no_name),
            "mormot.interface",
            "it is neither the name of an interface nor an IPv4 address",
            "write eth0 or 192.168.1.10, or leave it empty",
        );
    }

    fn origin(&mut self, config: &Config) {
        let origin = &config.origin;
        let zero = "0 would never let a download through";
        self.refuse(origin.connect_timeout.0.is_zero(), "origin.connect_timeout", zero, "");
        self.refuse(origin.stall_timeout.0.is_zero(), "origin.stall_timeout", zero, "");
        self.refuse(origin.connections_per_host == 0, "origin.connections_per_host", zero, "");
        let Some(authority) = proxy_authority(&origin.proxy.to_string()) else { return };
        let own = config.proxy.listen.iter().any(|listener| names(&authority, *listener));
        self.refuse(
            own,
            "origin.proxy",
            "it names this node's own proxy port",
            "name the proxy beyond, or leave it empty",
        );
    }

    fn limits(&mut self, config: &Config) {
        let form = "such as at = \"08:00-18:00 mon-fri\"";
        for limit in &config.limits {
            self.refuse(limit.at.is_never(), "limits.at", "a limit needs to say when it holds", form);
            let what = format!("the limit at \"{}\" has neither upload_rate nor download_rate", limit.at);
            let idle = !limit.at.is_never() && limit.upload_rate.is_none() && limit.download_rate.is_none();
            self.refuse(idle, "limits", &what, "give it one of them; \"0\" is no limit");
        }
    }

    fn mirrors(&mut self, config: &Config) {
        for (name, upstream) in config.mirror.upstreams() {
            let authority = format!("{}:{}", upstream.host(), upstream.port()).parse();
            let own = |authority: http::uri::Authority| {
                config.proxy.listen.iter().any(|listener| names(&authority, *listener))
            };
            let what = format!("`{name}` leads to this node's own proxy port");
            self.refuse(authority.is_ok_and(own), "mirror", &what, "name the server beyond");
        }
    }

    fn bans(&mut self, config: &Config) {
        let bans = &config.bans;
        self.refuse(
            bans.strikes == 0,
            "bans.strikes",
            "0 would ban everybody",
            "bans.enabled = false bans nobody",
        );
        self.refuse(bans.window.0.is_zero(), "bans.window", "offences need a time to fall in", "");
        self.refuse(
            bans.duration.0.is_zero(),
            "bans.duration",
            "a ban needs a time to last",
            "bans.enabled = false bans nobody",
        );
        self.refuse(
            bans.duration > bans.max_duration,
            "bans.max_duration",
            "it is shorter than bans.duration",
            "",
        );
    }

    /// All TCP listeners, two of which must not meet.
    fn ports(&mut self, config: &Config) {
        let peers: Vec<SocketAddr> = config
            .peers
            .listen
            .iter()
            .map(|at| at.with_port(config.peers.port))
            .filter(|_| config.peers.enabled)
            .collect();
        let mormot = config.mormot.interface.parse().ok().filter(|_| config.mormot.enabled);
        let mormot: Vec<SocketAddr> =
            mormot.map(|at: IpAddr| SocketAddr::new(at, config.mormot.port)).into_iter().collect();
        let mut taken: Vec<(&str, SocketAddr)> = Vec::new();
        let all = [
            ("proxy.listen", &config.proxy.listen),
            ("admin.listen", &config.admin.listen),
            ("peers.listen", &peers),
            ("mormot.interface", &mormot),
        ];
        for (key, address) in
            all.into_iter().flat_map(|(key, list)| list.iter().map(move |address| (key, *address)))
        {
            if let Some((other, _)) = taken.iter().find(|(_, other)| meet(*other, address)) {
                let what = format!("{address} is taken by {other} already");
                self.refuse(true, key, &what, "give each its own port");
            }
            taken.push((key, address));
        }
        let everywhere = config.peers.enabled && config.peers.listen.is_empty();
        let beyond = |(_, address): &&(&str, SocketAddr)| {
            address.port() == config.peers.port && !address.ip().is_loopback()
        };
        if let Some((key, address)) = taken.iter().find(beyond).filter(|_| everywhere) {
            let what = format!("{address} is the peer port of every interface");
            self.refuse(true, key, &what, "change it or peers.port");
        }
    }
}

/// Whether two listeners cannot both be opened.
fn meet(one: SocketAddr, other: SocketAddr) -> bool {
    let same = one.ip() == other.ip()
        || (one.is_ipv4() == other.is_ipv4() && (one.ip().is_unspecified() || other.ip().is_unspecified()));
    one.port() != 0 && one.port() == other.port() && same
}

/// Where a parent proxy is; none if there is none.
fn proxy_authority(url: &str) -> Option<http::uri::Authority> {
    url.parse::<http::Uri>().ok()?.into_parts().authority
}

/// Whether an authority reaches a listener of this machine.
fn names(authority: &http::uri::Authority, listener: SocketAddr) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let local = host.eq_ignore_ascii_case("localhost");
    let same = host.parse::<IpAddr>().is_ok_and(|address| {
        address == listener.ip() || (listener.ip().is_unspecified() && address.is_loopback())
    });
    let here = same || (local && (listener.ip().is_loopback() || listener.ip().is_unspecified()));
    here && authority.port_u16().unwrap_or(80) == listener.port()
}
