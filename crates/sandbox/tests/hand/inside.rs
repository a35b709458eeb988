//! What a probe finds that looks from inside, each attack with a control that it works outside.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use portcullis_base::IsolationLevel;
use portcullis_sandbox::hand::Network;

use crate::world::{host, text, world};

#[tokio::test]
async fn h08_a_probe_from_inside_agrees_with_the_posture() {
    let world = world();
    assert_eq!(world.launcher.posture().level, IsolationLevel::Full, "{:?}", world.launcher.posture().missing);
    let status = world.run(world.sh("cat /proc/self/status")).await.ok();
    for line in [
        "CapEff:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ] {
        assert!(status.contains(line), "{line} is not in\n{status}");
    }
    for kind in ["user", "mnt", "pid", "net", "ipc", "uts"] {
        let link = format!("/proc/self/ns/{kind}");
        let inside = world.run(world.plan(&["readlink", &link])).await.ok();
        assert_ne!(inside, text(&host(&["readlink", &link]).stdout), "{kind} namespace is the host's");
    }
    // Pid 1 is ours and says nothing of where it lies on the host; only a handful are to be seen.
    let seen = world.run(world.sh("tr '\\0' ' ' < /proc/1/cmdline; ls -d /proc/[0-9]* | wc -l")).await.ok();
    let words: Vec<&str> = seen.split_whitespace().collect();
    assert!(words[0] == "portcullis-hand" && words.len() == 3, "{seen}");
    assert!(words[2].parse::<u32>().is_ok_and(|count| count < 8), "{seen}");
}

#[tokio::test]
async fn h08_only_the_view_is_there_and_only_the_workspace_is_writable() {
    let world = world();
    world.write("seen", "yes");
    let script = "cat seen; echo new > made && cat made; \
                  for place in /x /usr/x /etc/x /dev/x /proc/sys/kernel/domainname /home/x; do \
                    (echo attack > $place) 2>/dev/null && echo WROTE $place; done; \
                  ls / | tr '\\n' ' '; ls /root /home /var 2>/dev/null; cat /etc/shadow 2>/dev/null; true";
    let out = world.run(world.sh(script)).await.ok();
    assert!(out.starts_with("yesnew\n"), "{out}");
    assert!(!out.contains("WROTE"), "{out}");
    for hidden in ["root ", "home ", "var ", "sys ", "run "] {
        assert!(!out.contains(hidden), "{hidden} is in the view: {out}");
    }
    assert_eq!(std::fs::read_to_string(world.path("made")).expect("on the host"), "new\n");
    let tmp = world.run(world.sh("echo t > /tmp/mine && cat /tmp/mine")).await.ok();
    assert_eq!(tmp, "t\n");
    assert!(!std::path::Path::new("/tmp/mine").exists());
}

/// Perl, for its `syscall`. An attack counts as possible unless it is not permitted: with arguments that
/// change nothing on the host it may fail for other reasons.
fn call(script: &str) -> String {
    format!("my $got = do {{ $! = 0; {script} }}; print $got < 0 && $! == 1 ? 'denied' : 'possible';")
}

#[tokio::test]
#[cfg(target_arch = "x86_64")]
async fn h08_calls_that_lead_out_are_denied() {
    let world = world();
    let attacks = [
        (
            "ptrace",
            "my $pid = fork; if (!$pid) { sleep 5; exit } my $r = syscall(101, 16, $pid, 0, 0); kill 9, $pid; $r",
        ),
        ("unshare", "syscall(272, 0x10000000)"),
        ("clone with a user namespace", "my $r = syscall(56, 0x10000000 | 17, 0, 0, 0, 0); exit if $r == 0; $r"),
        ("mount", "syscall(165, 0, 0, 0, 0, 0)"),
        ("keyctl", "syscall(250, 0, -3, 1)"),
        ("bpf", "syscall(321, 0, 0, 0)"),
        ("io_uring", "syscall(425, 1, 0)"),
        ("userfaultfd", "syscall(323, 1)"),
        ("process_vm_readv", "syscall(310, $$, 0, 0, 0, 0, 0)"),
        ("TIOCSTI", "syscall(16, 0, 0x5412, 0)"),
        ("an unusual socket family", "syscall(41, 38, 5, 0)"),
    ];
    for (name, attack) in attacks {
        let script = call(attack);
        let outside = text(&host(&["perl", "-e", &script]).stdout);
        assert_eq!(outside, "possible", "control: {name}");
        let inside = world.run(world.plan(&["perl", "-e", &script])).await.ok();
        assert_eq!(inside, "denied", "{name}");
    }
}

#[tokio::test]
async fn h08_there_is_no_network_but_a_loopback_of_its_own() {
    let world = world();
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let connect = format!(
        "use IO::Socket::INET; print IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => {port}) ? 'reached' : 'not reached'"
    );
    assert_eq!(text(&host(&["perl", "-e", &connect]).stdout), "reached", "control");
    assert_eq!(world.run(world.plan(&["perl", "-e", &connect])).await.ok(), "not reached");
    let mut open = world.plan(&["perl", "-e", &connect]);
    open.network = Network::Host;
    assert_eq!(world.run(open).await.ok(), "reached", "with the host's network");

    let own = "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1:0') or die $!; \
               print IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $s->sockport) ? 'own loopback' : $!";
    assert_eq!(world.run(world.plan(&["perl", "-e", own])).await.ok(), "own loopback");
}

#[tokio::test]
async fn h08_abstract_sockets_of_the_host_are_out_of_reach() {
    let world = world();
    let name = format!("portcullis-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _server = UnixListener::bind_addr(&address).expect("listening");
    let connect = format!(
        "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die $!; \
         print connect($s, pack('S', AF_UNIX) . \"\\0{name}\") ? 'reached' : 'not reached'"
    );
    assert_eq!(text(&host(&["perl", "-e", &connect]).stdout), "reached", "control");
    assert_eq!(world.run(world.plan(&["perl", "-e", &connect])).await.ok(), "not reached");
    let mut shared = world.plan(&["perl", "-e", &connect]);
    shared.network = Network::Host;
    assert_eq!(world.run(shared).await.ok(), "not reached", "Landlock keeps them away where the network is shared");
}

#[tokio::test]
async fn h08_environment_stdin_and_terminal_are_what_the_plan_says() {
    let world = world();
    let mut plan = world.plan(&[
        "sh",
        "-c",
        "env | grep -v ^PWD= | sort; cat; ls /proc/self/fd | wc -l; cat /dev/tty 2>/dev/null || echo no tty",
    ]);
    plan.env.push(("A".into(), "b=c d".into()));
    let out = world.run(plan).await.ok();
    // 0, 1, 2 and the one that `ls` reads with.
    assert_eq!(out, "A=b=c d\nPATH=/usr/bin:/bin\n4\nno tty\n");
}

/// Root's own modes keep nobody out who is root: what lies beside the certificates must not be in view at all.
#[tokio::test]
async fn h08_of_certificates_only_the_public_part_is_in_view() {
    let world = world();
    assert!(std::path::Path::new("/etc/ssl/certs").is_dir(), "this test needs /etc/ssl/certs (ca-certificates)");
    for level in [IsolationLevel::Full, IsolationLevel::NoNamespaces] {
        let mut plan = world.sh("ls /etc/ssl/certs >/dev/null && echo certs; find /etc/ssl /etc/pki -name private -exec ls {} + 2>/dev/null; \
                                 cat /etc/ssl/private/* 2>/dev/null; true");
        (plan.minimum, plan.at_most) = (level, level);
        assert_eq!(world.run(plan).await.ok(), "certs\n", "{level:?}");
    }
}
