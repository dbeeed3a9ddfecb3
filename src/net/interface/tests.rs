//! Tests of `net::interface`.

use super::kind::{Known, Sysfs};
use super::*;
use crate::shutdown::Shutdown;
use proptest::prelude::*;
use std::time::Duration;

fn interface(name: &str, address: &str, kind: Kind) -> Interface {
    let net: IpNet = address.parse().unwrap();
    let broadcast = match net {
        IpNet::V4(v4) if v4.prefix_len() <= 30 => Some(v4.broadcast()),
        IpNet::V4(_) | IpNet::V6(_) => None,
    };
    let (address, prefix) = (net.addr(), net.prefix_len());
    Interface { name: name.into(), index: 7, address, prefix, broadcast, up: true, multicast: true, kind }
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn usable(list: &[Interface], texts: &[&str]) -> Vec<String> {
    choose(list.to_vec(), &patterns(texts))
        .into_iter()
        .filter(|choice| choice.usable)
        .map(|choice| format!("{} {}", choice.interface.name, choice.interface.address))
        .collect()
}

fn crowded_machine() -> Vec<Interface> {
    let mut down = interface("eth1", "10.1.0.1/24", Kind::Physical);
    down.up = false;
    vec![
        interface("lo", "127.0.0.1/8", Kind::Loopback),
        interface("eth0", "10.77.0.1/24", Kind::Physical),
        interface("eth0", "fe80::1/64", Kind::Physical),
        interface("eth0", "2001:db8::1/64", Kind::Physical),
        down,
        interface("wan", "198.51.100.7/24", Kind::Physical),
        interface("mv0", "192.168.9.2/24", Kind::Physical),
        interface("docker0", "172.17.0.1/16", Kind::Bridge),
        interface("virbr0", "192.168.56.1/24", Kind::Bridge),
        interface("veth1", "169.254.3.4/16", Kind::Veth),
        interface("tun0", "10.8.0.2/24", Kind::Tunnel),
    ]
}

#[test]
fn d01_local_networks_are_chosen_and_the_rest_says_why_not() {
    let list = crowded_machine();
    assert_eq!(usable(&list, &[]), ["eth0 10.77.0.1", "eth0 fe80::1", "mv0 192.168.9.2"]);
    assert_eq!(usable(&list, &["!mv0"]), ["eth0 10.77.0.1", "eth0 fe80::1"]);
    assert_eq!(usable(&list, &["docker0"]), ["docker0 172.17.0.1"]);
    assert_eq!(usable(&list, &["wan", "tun*"]), ["wan 198.51.100.7", "tun0 10.8.0.2"]);
    assert_eq!(usable(&list, &["10.0.0.0/8", "!tun0"]), ["eth0 10.77.0.1"]);
    assert_eq!(usable(&list, &["127.0.0.1"]), ["lo 127.0.0.1"]);
    assert_eq!(usable(&list, &["eth1"]), [""; 0], "down stays down");
    let choices = choose(list, &[]);
    let why = |name: &str| choices.iter().find(|c| c.interface.name == name).unwrap().why;
    assert_eq!(why("docker0"), "a bridge");
    assert_eq!(why("tun0"), "a tunnel");
    assert_eq!(why("eth1"), "not up and running");
    assert_eq!(why("wan"), "a public address: name it in peers.interfaces to use it");
}

#[test]
fn d02_a_link_that_reaches_nobody_is_not_used_even_if_named() {
    let mut tun = interface("tun0", "10.8.0.2/32", Kind::Tunnel);
    tun.multicast = false;
    assert_eq!(usable(&[tun], &["tun0"]), [""; 0]);
}

#[test]
fn d06_the_kernels_broadcast_is_used_and_narrow_masks_have_none() {
    let ether = InterfaceFlags::UP | InterfaceFlags::BROADCAST;
    let point = InterfaceFlags::UP | InterfaceFlags::POINTTOPOINT;
    let lo = InterfaceFlags::UP | InterfaceFlags::LOOPBACK;
    for (address, told, flags, expected) in [
        ("10.77.0.1/23", Some("10.77.1.255"), ether, Some("10.77.1.255")),
        ("10.77.0.1/16", Some("10.77.255.9"), ether, Some("10.77.255.9")),
        ("10.77.0.1/28", None, ether, Some("10.77.0.15")),
        ("10.77.0.1/24", Some("0.0.0.0"), ether, Some("10.77.0.255")),
        ("10.77.0.1/31", Some("255.255.255.255"), ether, None),
        ("10.77.0.1/32", Some("10.77.0.1"), ether, None),
        ("10.8.0.1/24", Some("10.8.0.2"), point, None),
        ("127.0.0.1/8", Some("127.0.0.1"), lo, Some("127.255.255.255")),
    ] {
        let net: ipnet::Ipv4Net = address.parse().unwrap();
        let entry = Address::V4(getifaddrs::NetworkAddress {
            address: net.addr(),
            netmask: Some(net.netmask()),
            associated_address: told.map(|t| t.parse().unwrap()),
        });
        let found = broadcast_of(&entry, net.prefix_len(), flags);
        assert_eq!(found, expected.map(|e| e.parse().unwrap()), "{address}");
    }
    let narrow =
        [interface("eth0", "10.0.0.1/31", Kind::Physical), interface("eth0", "10.0.0.3/32", Kind::Physical)];
    assert_eq!(usable(&narrow, &[]).len(), 2, "they can still multicast");
}

fn link(index: u32, name: &str, sysfs: Option<Sysfs>) -> Known {
    Known { index, name: name.into(), flags: InterfaceFlags::UP | InterfaceFlags::BROADCAST, sysfs }
}

fn sysfs(link: u32) -> Sysfs {
    Sysfs { hardware_type: 1, link, ..Sysfs::default() }
}

#[test]
fn kinds_are_told_by_sysfs() {
    let card = Sysfs { has_device: true, ..sysfs(2) };
    let of_type = |device_type: &str| Sysfs { device_type: device_type.into(), ..sysfs(9) };
    for (sysfs, kind) in [
        (card, Kind::Physical),
        (Sysfs { is_bridge: true, ..sysfs(2) }, Kind::Bridge),
        (Sysfs { is_tun: true, ..sysfs(2) }, Kind::Tunnel),
        (Sysfs { hardware_type: 65534, ..sysfs(2) }, Kind::Tunnel),
        (Sysfs { is_port: true, ..sysfs(9) }, Kind::Other),
        (Sysfs { no_arp: true, ..sysfs(2) }, Kind::Other),
        (of_type("macvlan"), Kind::Physical),
        (of_type("vlan"), Kind::Physical),
        (of_type("wireguard"), Kind::Tunnel),
    ] {
        let shown = format!("{sysfs:?}");
        let one = link(2, "x0", Some(sysfs));
        assert_eq!(one.kind(std::slice::from_ref(&one)), kind, "{shown}");
    }
}

#[test]
fn a_lone_veth_end_is_a_namespaces_card() {
    let card = link(2, "eth0", Some(Sysfs { has_device: true, ..sysfs(2) }));
    let (near, far) = (link(5, "l1", Some(sysfs(6))), link(6, "l2", Some(sysfs(5))));
    let lone = link(5, "l1", Some(sysfs(2)));
    let dockers = link(9, "veth1a2b", Some(sysfs(2)));
    assert_eq!(near.kind(&[near.clone(), far]), Kind::Veth, "both ends here");
    assert_eq!(lone.kind(&[card.clone(), lone.clone()]), Kind::Physical, "2 is here, but not its other end");
    assert_eq!(dockers.kind(&[card, dockers.clone()]), Kind::Veth);
    assert_eq!(dockers.kind(std::slice::from_ref(&dockers)), Kind::Physical);
    let same_number = link(2, "eth0", Some(sysfs(2)));
    assert_eq!(same_number.kind(std::slice::from_ref(&same_number)), Kind::Physical);
}

#[test]
fn without_sysfs_the_name_decides() {
    for (name, kind) in [
        ("docker0", Kind::Bridge),
        ("virbr0", Kind::Bridge),
        ("tun0", Kind::Tunnel),
        ("wg0", Kind::Tunnel),
        ("l1", Kind::Physical),
        ("eth0", Kind::Physical),
    ] {
        let one = link(3, name, None);
        assert_eq!(one.kind(std::slice::from_ref(&one)), kind, "{name}");
    }
}

#[test]
fn the_list_holds_loopback() {
    let list = list().unwrap();
    let lo = list.iter().find(|i| i.address == IpAddr::from([127, 0, 0, 1])).unwrap();
    assert_eq!((lo.kind, lo.prefix, lo.broadcast), (Kind::Loopback, 8, Some([127, 255, 255, 255].into())));
}

#[tokio::test]
async fn the_watch_tells_the_list_and_stops() {
    let (sender, mut receiver) = tokio::sync::watch::channel(Vec::new());
    let shutdown = Shutdown::new();
    let task = tokio::spawn(watch(sender, shutdown.clone()));
    tokio::time::timeout(Duration::from_secs(10), receiver.changed()).await.unwrap().unwrap();
    assert!(receiver.borrow().iter().any(|i| i.kind == Kind::Loopback));
    shutdown.request();
    tokio::time::timeout(Duration::from_secs(10), task).await.unwrap().unwrap();
}

#[test]
fn what_names_nothing_is_refused() {
    for text in ["", "!", "a/b", "two words", "a-name-of-16-byte", "10.0.0.0/99", "a*b"] {
        assert!(text.parse::<Pattern>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_pattern_prints_as_it_is_read(text in "!?([a-z0-9.-]{1,12}\\*?|[0-9]{1,3}(\\.[0-9]{1,3}){3}(/[0-9]{1,2})?)") {
        if let Ok(pattern) = text.parse::<Pattern>() {
            prop_assert_eq!(pattern.to_string().parse::<Pattern>(), Ok(pattern));
        }
    }

    #[test]
    fn no_text_panics(text: String) {
        if let Ok(pattern) = text.parse::<Pattern>() {
            prop_assert!(!pattern.to_string().is_empty());
        }
    }
}
