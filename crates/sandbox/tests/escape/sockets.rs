//! Sockets: the host's daemons, its loopback, its network, and memory that has a number for a name.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use portcullis_base::IsolationLevel;

use crate::arena::{Arena, CALLS, Full, NoNamespaces, NoPivot, SeccompOnly, arena, at, held, stopped};

const EPERM: &[&str] = &["EPERM"];

#[tokio::test]
async fn abstract_sockets_are_out_of_reach() {
    let name = format!("portcullis-escape-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _server = UnixListener::bind_addr(&address).expect("listening");
    let levels: &[(IsolationLevel, &[&str])] =
        &[(Full, &["ECONNREFUSED"]), (NoPivot, EPERM), (NoNamespaces, EPERM), (SeccompOnly, EPERM)];
    stopped("abstract", levels, |_, _| vec![name.clone()]).await;
}

/// Landlock has no word for them: where the host's files are in sight, no local socket can be made.
#[tokio::test]
async fn sockets_of_the_hosts_daemons_are_out_of_reach() {
    let arena = arena();
    let (stream, datagram) = (arena.outside("stream"), arena.outside("datagram"));
    let _server = UnixListener::bind(&stream).expect("listening");
    let server = UnixDatagram::bind(&datagram).expect("listening");
    server.set_nonblocking(true).expect("set");
    let levels: &[(IsolationLevel, &[&str])] =
        &[(Full, &["ENOENT"]), (NoPivot, EPERM), (NoNamespaces, EPERM), (SeccompOnly, EPERM)];
    // 2 is a datagram, 3 another word for it.
    let attacks: [&[&str]; 4] = [
        &["local", &stream],
        &["local_datagram", &datagram],
        &["half_of_a_pair", &datagram, "2"],
        &["half_of_a_pair", &datagram, "3"],
    ];
    for attack in attacks {
        arena.reached(attack);
        let _ = server.recv(&mut [0; 16]);
        for (level, promised) in levels {
            held(&arena.attack(*level, attack).await, promised, &format!("{attack:?} at {level:?}"));
            assert!(server.recv(&mut [0; 16]).is_err(), "{attack:?} at {level:?}: it came through");
        }
    }
}

/// A socket in the workspace is part of the workspace: a person who lets a daemon listen there means
/// the commands that work there. Below the full level no local socket can be made at all.
#[tokio::test]
async fn a_socket_in_the_workspace_belongs_to_it() {
    let arena = arena();
    let _server = UnixListener::bind(arena.world.path("socket")).expect("listening");
    arena.reached(&["local", "socket"]);
    let done = arena.attack(Full, &["local", "socket"]).await;
    assert!(done.out.starts_with("reached:"), "{}", done.out);
    held(&arena.attack(NoPivot, &["local", "socket"]).await, EPERM, "no_pivot");
}

#[tokio::test]
async fn the_hosts_loopback_and_its_name_server_are_out_of_reach() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let tcp = tcp.local_addr().map(|address| (tcp, address.port().to_string())).expect("an address");
    let levels: &[(IsolationLevel, &[&str])] =
        &[(Full, &["ECONNREFUSED"]), (NoPivot, &["ECONNREFUSED"]), (NoNamespaces, EPERM), (SeccompOnly, EPERM)];
    stopped("tcp", levels, |_, _| vec![tcp.1.clone()]).await;

    // Stands in for the resolver: answers whatever it is asked, and counts.
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = udp.local_addr().expect("an address").port().to_string();
    let (count, counted) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut bytes) {
            let _ = count.send(());
            let _ = udp.send_to(&bytes[..length], from);
        }
    });
    stopped("udp", levels, |_, _| vec![port.clone()]).await;
    assert_eq!(counted.try_iter().count(), 1, "only the control's question came");
}

#[tokio::test]
async fn raw_sockets_and_other_interfaces_are_not_there() {
    // family, kind, protocol: ICMP raw, IPv6 raw, packets, kernel crypto, virtual machines, Bluetooth.
    let raw = [["2", "3", "1"], ["10", "3", "58"], ["17", "3", "768"], ["38", "5", "0"], ["40", "1", "0"]];
    for words in raw {
        let control = arena().control(&["raw", words[0], words[1], words[2]]);
        let said = String::from_utf8_lossy(&control.stdout).into_owned();
        // A kernel without the family says so; nothing to be held there, and still nothing may come.
        assert!(said.starts_with("reached:") || said.contains("EAFNOSUPPORT"), "control {words:?}: {said}");
        for level in CALLS {
            let done = arena().attack(*level, &["raw", words[0], words[1], words[2]]).await;
            held(&done, EPERM, &format!("{words:?} at {level:?}"));
        }
    }
    let names = arena().control(&["interfaces"]);
    let said = String::from_utf8_lossy(&names.stdout).into_owned();
    assert!(said.starts_with("reached:") || said.contains("ENODEV"), "control: {said}");
    for level in [Full, NoPivot] {
        let done = arena().attack(level, &["interfaces"]).await;
        held(&done, &["ENODEV", "EPERM"], &format!("{level:?}"));
    }
}

/// Named by a number, not by a path: only an ipc namespace or the filter keeps them apart.
#[tokio::test]
async fn shared_memory_and_queues_of_others_are_out_of_reach() {
    let key = 0x5043_0000 + std::process::id();
    let script = "import ctypes, os, sys; l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p; \
                  n = l.shmget(int(sys.argv[1]), 4096, 0o1600); a = l.shmat(n, None, 0); \
                  ctypes.memmove(a, b'SECRET', 6); \
                  q = l.mq_open(b'/' + sys.argv[1].encode(), os.O_CREAT | os.O_RDWR, 0o600, None); print(n, q)";
    let made = crate::world::host(&[crate::arena::PYTHON, "-I", "-c", script, &key.to_string()]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let number = said.split_whitespace().next().expect("made").to_owned();
    let levels: &[(IsolationLevel, &[&str])] = &[(Full, &["ENOENT"]), (NoPivot, EPERM), (NoNamespaces, EPERM)];
    let with_key = |_: &Arena, _| vec![key.to_string()];
    stopped("system_v", levels, with_key).await;
    stopped("queue", levels, with_key).await;
    let clean = "import ctypes, sys; l = ctypes.CDLL(None); l.shmctl(int(sys.argv[1]), 0, None); \
                 l.mq_unlink(b'/' + sys.argv[2].encode())";
    crate::world::host(&[crate::arena::PYTHON, "-I", "-c", clean, &number, &key.to_string()]);
    // The newest doors of the filter: another number for the same call.
    stopped("possible", &at(&[NoPivot, NoNamespaces], EPERM), |_, _| {
        ["shmctl", "0", "2", "0"].map(str::to_owned).to_vec()
    })
    .await;
}
