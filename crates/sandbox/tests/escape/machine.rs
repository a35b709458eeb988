//! What tells of the machine, and netlink: the parts of the kernel that a command comes upon without leaving its hand.

use portcullis_base::IsolationLevel;
use portcullis_sandbox::hand::Network;

use crate::arena::{Arena, CALLS, Full, NoNamespaces, NoPivot, SeccompOnly, arena, at, held, stopped};
use crate::world::text;

/// Of the masked files of `/proc` those that this kernel has; every kernel has the last two.
const MASKED: &[&str] = &[
    "acpi",
    "asound",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
    "key-users",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "mtrr",
    "slabinfo",
    "vmallocinfo",
    "kmsg",
    "interrupts",
];

fn masked() -> Vec<&'static str> {
    let here: Vec<&str> =
        MASKED.iter().copied().filter(|name| std::path::Path::new("/proc").join(name).exists()).collect();
    assert!(here.contains(&"interrupts") && here.contains(&"kmsg"), "{here:?}");
    here
}

/// Every protocol of netlink but that of routes, by its own word, with flags, and with bits above an int.
fn other_netlinks() -> Vec<String> {
    const FLAGS: u32 = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;
    let protocols: Vec<u64> = (1..=22).collect();
    let plain = protocols.iter().map(|protocol| format!("16:3:{protocol}"));
    let datagrams = protocols.iter().map(|protocol| format!("16:2:{protocol}"));
    let flagged = protocols.iter().map(|protocol| format!("16:{}:{protocol}", 3 | FLAGS));
    let high = protocols.iter().map(|protocol| format!("{}:3:{}", 16 | 1_u64 << 32, protocol | 1_u64 << 32));
    plain.chain(datagrams).chain(flagged).chain(high).collect()
}

fn words(name: &str, more: &[String]) -> Vec<String> {
    [&[name.to_owned()], more].concat()
}

fn as_strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// What a control reached, one word each.
fn reached_outside(arena: &Arena, attack: &[&str]) -> Vec<String> {
    let out = arena.control(attack);
    let said = text(&out.stdout);
    let list = said.strip_prefix("reached: ").unwrap_or_else(|| panic!("{attack:?}: {said}{}", text(&out.stderr)));
    list.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn of_netlink_only_routes_are_left() {
    let arena = arena();
    let attack = words("sockets", &other_netlinks());
    let attack = as_strs(&attack);
    let outside = reached_outside(&arena, &attack);
    // Sockets of others, the firewall, devices, and what has a name: each in four spellings.
    for protocol in ["4", "12", "15", "16"] {
        assert!(outside.contains(&format!("16:3:{protocol}")), "control: {protocol} is not in {outside:?}");
    }
    assert!(outside.len() >= 16, "control: {outside:?}");
    for level in CALLS {
        held(&arena.attack(*level, &attack).await, &["EPERM"], &format!("{level:?}"));
    }
    // With the machine's network as well.
    for level in [Full, NoPivot, NoNamespaces] {
        let mut plan = arena.at(level, &attack);
        plan.network = Network::Host;
        held(&arena.run(level, plan).await, &["EPERM"], &format!("{level:?} with a network"));
    }
}

#[tokio::test]
async fn sockets_of_the_internet_are_streams_and_datagrams() {
    // IPv4 and IPv6: raw, reliable datagrams, SCTP, DCCP, packets; and a netlink that is a stream.
    let odd =
        ["2:3:1", "2:3:255", "2:4:0", "2:5:132", "2:6:33", "2:10:768", "10:3:58", "10:5:132", "10:6:33", "16:1:0"];
    let attack = words("sockets", &odd.map(str::to_owned));
    let attack = as_strs(&attack);
    let arena = arena();
    assert!(reached_outside(&arena, &attack).contains(&"2:3:1".to_owned()), "control");
    for level in CALLS {
        held(&arena.attack(*level, &attack).await, &["EPERM"], &format!("{level:?}"));
    }
    // Where the capability would not hold it, for a network of one's own has none to ask: the filter does.
    let mut plan = arena.at(Full, &attack);
    plan.network = Network::Host;
    held(&arena.run(Full, plan).await, &["EPERM"], "with a network");
}

/// The control of the two above: what builds and runtimes use still works.
#[tokio::test]
async fn routes_streams_and_datagrams_are_left() {
    let arena = arena();
    let usual = ["16:3:0", "16:2:0", "2:1:0", "2:1:6", "2:2:0", "2:2:17", "10:1:0", "10:2:0"];
    let attack = words("sockets", &usual.map(str::to_owned));
    let attack = as_strs(&attack);
    for level in [Full, NoPivot] {
        let done = arena.attack(level, &attack).await;
        assert_eq!(done.out.split_whitespace().skip(1).collect::<Vec<_>>(), usual, "{level:?}: {}", done.err);
    }
    // Local sockets of every kind, with a root of its own.
    let local = words("sockets", &["1:1:0", "1:2:0", "1:5:0"].map(str::to_owned));
    assert!(arena.attack(Full, &as_strs(&local)).await.out.starts_with("reached: 1:1:0 1:2:0 1:5:0"));
}

/// A source file of Java that prints the names of the interfaces.
const JAVA: &str = "class N { public static void main(String[] a) throws Exception { \
                    java.net.NetworkInterface.networkInterfaces().forEach(i -> System.out.println(i.getName())); \
                    System.out.println(java.net.InetAddress.getByName(\"localhost\").isLoopbackAddress()); } }";

/// Each asks netlink, without a network: `getaddrinfo` of the C library, and the interfaces as runtimes list them.
#[tokio::test]
async fn runtimes_still_learn_names_and_interfaces() {
    let arena = arena();
    arena.world.write("N.java", JAVA);
    arena.world.write("n.go", GO);
    let python = "import socket; print([n for _, n in socket.if_nameindex()]); \
                  print(socket.getaddrinfo('localhost', 80)[0][4][0] in ('127.0.0.1', '::1'))";
    let node = "console.log(Object.keys(os.networkInterfaces())); \
                dns.lookup('localhost', (error, at) => console.log(!error && ['127.0.0.1', '::1'].includes(at)))";
    let runs: [(&str, &[&str], &str); 5] = [
        ("/usr/bin/python3", &["-c", python], "True"),
        ("/usr/bin/node", &["-e", node], "true"),
        ("/usr/bin/java", &["-XX:TieredStopAtLevel=1", "N.java"], "true"),
        ("/usr/bin/getent", &["ahosts", "localhost"], "STREAM"),
        ("/usr/bin/go", &["run", "n.go"], "true"),
    ];
    for (program, words, says) in runs {
        if !std::path::Path::new(program).exists() {
            println!("not tried: {program} is not installed");
            continue;
        }
        let mut plan = arena.world.plan(&[&[program], words].concat());
        plan.env.push(("GOCACHE".into(), "/tmp/go".into()));
        let done = arena.run(Full, plan).await;
        assert!(done.out.contains(says), "{program}: {:?} {}{}", done.ended.exit, done.out, done.err);
        assert!(program.ends_with("getent") || done.out.contains("lo"), "{program}: {}", done.out);
    }
}

/// The same in Go.
const GO: &str = "package main\nimport (\"fmt\"; \"net\")\nfunc main() { all, _ := net.Interfaces(); \
                  for _, one := range all { fmt.Println(one.Name) }; at, err := net.LookupHost(\"localhost\"); \
                  fmt.Println(err == nil && len(at) > 0) }\n";

#[tokio::test]
async fn what_tells_of_the_machine_cannot_be_opened() {
    let arena = arena();
    let names: Vec<String> = masked().iter().map(ToString::to_string).collect();
    for flags in ["0", "1"] {
        let attack = words("machine", &words(flags, &names));
        let attack = as_strs(&attack);
        let outside = reached_outside(&arena, &attack);
        assert!(outside.len() >= 10, "control {flags}: {outside:?}");
        let done = arena.attack(Full, &attack).await;
        // There is no right on it; and a folder cannot be written at all.
        let promised: &[&str] = if flags == "0" { &["EACCES"] } else { &["EACCES", "EACCES EISDIR"] };
        held(&done, promised, &format!("flags {flags}"));
    }
    // The rest of /proc, which builds read, is there.
    let seen =
        arena.world.run(arena.world.sh("head -c 1 /proc/cpuinfo /proc/meminfo /proc/stat /proc/self/maps")).await;
    assert!(seen.ok().contains("meminfo"));
}

#[tokio::test]
async fn a_mask_over_proc_cannot_be_taken_away() {
    for name in masked().into_iter().filter(|name| !["acpi", "kmsg", "kcore"].contains(name)) {
        stopped("unmask", &at(&[Full], &["EPERM"]), |_, level| {
            vec![name.to_owned(), if level.is_none() { "yes" } else { "no" }.to_owned()]
        })
        .await;
    }
    for name in ["remount_proc", "proc_anew"] {
        stopped(name, &at(CALLS, &["EPERM"]), |_, level: Option<IsolationLevel>| {
            vec![if level.is_none() { "yes" } else { "no" }.to_owned()]
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_read_only_of_proc_cannot_be_written_by_any_way() {
    let all =
        ["irq/default_smp_affinity", "sys/vm/drop_caches", "sys/fs/file-max", "sys/kernel/panic", "sysrq-trigger"];
    let here = all.into_iter().filter(|name| std::path::Path::new("/proc").join(name).exists());
    let names: Vec<String> = here.map(str::to_owned).collect();
    assert!(names.len() >= 3, "{names:?}");
    let arena = arena();
    let attack = words("machine", &words("1", &names));
    let attack = as_strs(&attack);
    assert!(reached_outside(&arena, &attack).len() >= 10, "control");
    // By way of init's root it is not even found: nobody may look into init.
    held(&arena.attack(Full, &attack).await, &["EACCES EROFS"], "full");
    for level in [NoPivot, NoNamespaces] {
        // The host's /proc knows nothing of threads in another pid namespace.
        held(&arena.attack(level, &attack).await, &["EACCES", "EACCES ENOENT"], &format!("{level:?}"));
    }
    // Nothing keeps files away at this level; root is only without its capabilities.
    let done = arena.attack(SeccompOnly, &attack).await;
    assert!(done.out.starts_with("reached:") || done.out.contains("EACCES"), "{}", done.out);
}
