//! Defence in depth, by the real binary: what a command can ask the kernel, learn of the machine, and use up.

use serde_json::json;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::Ran;

/// Runs a program of Python in the hand.
fn inside(arena: &Arena, python: &str) -> Ran {
    arena.write("work/attack.py", python);
    let input = json!({"command": "exec /usr/bin/python3 -I attack.py", "timeoutMs": 30_000}).to_string();
    arena.run(&["--approvals", "allow", "call", "shell_run", &input])
}

/// The same program outside, as the same person.
fn outside(arena: &Arena, python: &str) -> Ran {
    arena.write("work/attack.py", python);
    arena.as_this_person("/usr/bin/python3").args(["-I", "attack.py"]).output().expect("it runs").into()
}

/// Sockets by the bare call, each with what held it.
const NETLINK: &str = "\
import errno, socket
for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_RAW | socket.SOCK_CLOEXEC):
    for protocol in range(1, 23):
        try:
            socket.socket(socket.AF_NETLINK, kind, protocol).close()
            print('opened', protocol)
        except OSError as error:
            print('held', protocol, errno.errorcode[error.errno])
print('names', socket.getaddrinfo('localhost', 80)[0][4][0], socket.if_nameindex())
";

#[test]
fn only_routes_of_netlink_can_be_asked_for() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let control = outside(&arena, NETLINK).ends(0);
        for protocol in ["4", "15", "16"] {
            assert!(control.out.contains(&format!("opened {protocol}\n")), "control, {who:?}: {}", control.out);
        }
        let ran = inside(&arena, NETLINK).ends(0).says("names 127.0.0.1");
        assert!(!ran.out.contains("opened"), "{who:?}: {}", ran.out);
        assert_eq!(ran.out.matches(" EPERM\n").count(), 66, "{who:?}: {}", ran.out);
    }
}

/// Every file is tried by several ways; what is not there on this kernel is not counted.
const MACHINE: &str = "\
import os
names = 'acpi asound interrupts kcore keys key-users latency_stats sched_debug scsi timer_list timer_stats'.split()
for name in names:
    for root in ('', '/proc/self/root', '/proc/thread-self/root', '/proc/1/root'):
        path = f'{root}/proc/{name}'
        try:
            os.close(os.open(path, os.O_RDONLY))
            print('opened', path)
        except OSError as error:
            print('held', path, error.strerror)
for path in ('/sys', '/sys/firmware', '/sys/devices/virtual/powercap', '/sys/kernel'):
    try:
        print('opened', path, os.listdir(path))
    except OSError as error:
        print('held', path, error.strerror)
";

#[test]
fn what_tells_of_the_machine_is_not_shown() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let control = outside(&arena, MACHINE).ends(0);
        for path in ["/proc/interrupts", "/proc/keys", "/proc/self/root/proc/interrupts", "/sys/kernel"] {
            assert!(control.out.contains(&format!("opened {path}")), "control, {who:?}: {}", control.out);
        }
        let ran = inside(&arena, MACHINE).ends(0);
        assert!(!ran.out.contains("opened"), "{who:?}: {}", ran.out);
    }
}

const FORKS: &str = "\
import os, signal, sys
pids = []
try:
    while len(pids) < 600:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
except OSError as error:
    print('fork:', error.strerror, file=sys.stderr)
print('made', len(pids), flush=True)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
sys.exit(len(pids) < 600)
";

#[test]
fn processes_are_limited_and_those_of_the_person_do_not_count() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        outside(&arena, FORKS).ends(0).says("made 600");
        inside(&arena, FORKS).ends(0).says("made 600");
        arena.configure("[sandbox]\nmax_processes = 60\n");
        let ran = inside(&arena, FORKS).ends(1).warns("`max_processes`");
        let made: u32 = ran.out.lines().find_map(|line| line.strip_prefix("made ")?.parse().ok()).expect("a number");
        // The kernel bounds root by its pid namespace, which cannot have fewer than 300.
        assert!(made <= if who == Who::Root { 360 } else { 60 }, "{who:?}: {made}");
        // More processes of the same person than the limit, outside of the hand.
        let mut others: Vec<_> =
            (0..80).map(|_| arena.as_this_person("/usr/bin/sleep").arg("300").spawn().expect("it runs")).collect();
        let few = "import subprocess\nall = [subprocess.Popen(['sleep', '0.1']) for _ in range(20)]\n\
                   print('made', sum(one.wait() == 0 for one in all))\n";
        let ran = inside(&arena, few);
        for other in &mut others {
            other.kill().expect("a child of ours");
            other.wait().expect("ended");
        }
        ran.ends(0).says("made 20");
    }
}

#[test]
fn memory_is_limited_and_the_setting_is_named() {
    let fill = "import sys\ndata = bytearray(400 << 20)\nprint('filled', len(data))\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        outside(&arena, fill).ends(0).says("filled");
        inside(&arena, fill).ends(0).says("filled");
        arena.configure("[sandbox]\nmax_memory = \"200MiB\"\n");
        let ran = inside(&arena, fill).ends(1).warns("`max_memory`").warns("200 MiB");
        assert!(!ran.out.contains("filled"), "{who:?}: {}", ran.out);
        // Address space is not memory: what reserves much and uses little runs.
        let reserve = "import mmap\nmmap.mmap(-1, 8 << 30, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nprint('reserved')\n";
        inside(&arena, reserve).ends(0).says("reserved");
    }
}
