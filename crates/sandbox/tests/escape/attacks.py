"""Programs that try to leave a hand. Each prints what it reached and ends with 0, or prints the error
that held it and ends with 3. The same program is the control that runs outside."""
import ctypes, errno, mmap, os, platform, resource, signal, socket, stat, struct, sys, time

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "ptrace": 101,
    "process_vm_readv": 310, "process_vm_writev": 311, "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321,
    "userfaultfd": 323, "perf_event_open": 298, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313,
    "delete_module": 176, "open_by_handle_at": 304, "pidfd_getfd": 438, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "fchmodat2": 452, "clone": 56, "openat2": 437,
    "kcmp": 312, "prlimit64": 302, "shmget": 29, "shmat": 30, "shmctl": 31, "mq_open": 240, "syslog": 103,
    "acct": 163, "swapon": 167, "sethostname": 170, "fanotify_init": 300, "open_tree_attr": 467, "setpriority": 141,
    "name_to_handle_at": 303, "socket": 41,
}
ARM = {
    "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "ptrace": 117,
    "process_vm_readv": 270, "process_vm_writev": 271, "keyctl": 219, "add_key": 217, "request_key": 218, "bpf": 280,
    "userfaultfd": 282, "perf_event_open": 241, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273,
    "delete_module": 106, "open_by_handle_at": 265, "pidfd_getfd": 438, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "fchmodat2": 452, "clone": 220, "openat2": 437,
    "kcmp": 272, "prlimit64": 261, "shmget": 194, "shmat": 196, "shmctl": 195, "mq_open": 180, "syslog": 116,
    "acct": 89, "swapon": 224, "sethostname": 161, "fanotify_init": 262, "open_tree_attr": 467, "setpriority": 140,
    "name_to_handle_at": 264, "socket": 198,
}
CALLS = X86 if platform.machine() == "x86_64" else ARM
NEWNS, NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 1, 32, 4096, 8192, 16384, 1 << 18
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000


def reached(what="yes"):
    print("reached:", what, flush=True)
    os._exit(0)


def held(error):
    number = error.errno if isinstance(error, OSError) else error
    print("held:", errno.errorcode.get(number, number), flush=True)
    os._exit(3)


def call(name, *words):
    words = [w.encode() if isinstance(w, str) else w for w in words]
    words = [ctypes.c_long(w) if isinstance(w, int) else w for w in words]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(CALLS[name]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def secret(path):
    with open(path, "rb") as file:
        text = file.read(1 << 16)
    reached() if b"SECRET" in text else held(errno.ENODATA)


# Files

def read(path):
    secret(path)


def can_read(path):
    os.close(os.open(path, os.O_RDONLY))
    reached()


def write(path):
    with open(path, "a") as file:
        file.write("attack")
    reached()


def make_link_and_read(target):
    os.symlink(target, "planted")
    secret("planted")


def hard_link(target):
    os.link(target, "hard")
    secret("hard")


def link_handle(handle, name):
    if LIBC.linkat(AT_FDCWD, f"/proc/self/fd/{handle}".encode(), AT_FDCWD, name.encode(), 0x400) < 0:
        raise OSError(ctypes.get_errno(), name)


def hard_link_by_handle(target):
    handle = os.open(target, os.O_PATH)
    link_handle(handle, "hard")
    secret("hard")


def up_and_up(path):
    secret("../" * 40 + path.lstrip("/"))


def remove(path):
    os.unlink(path)
    reached()


def move_in(path):
    os.rename(path, "moved")
    secret("moved")


def move_out(folder):
    open("mine", "w").close()
    os.rename("mine", os.path.join(folder, "mine"))
    reached()


def chmod(path):
    os.chmod(path, 0o777)
    reached()


def touch(path):
    os.utime(path, (1, 1))
    reached()


def read_race(name, tries):
    """Reads through a folder that somebody swaps for a link."""
    last = errno.ENOENT
    for _ in range(int(tries)):
        try:
            with open(f"{name}/file", "rb") as file:
                if b"SECRET" in file.read():
                    reached()
        except OSError as error:
            last = error.errno
    held(last)


def swap_and_read(target, tries):
    """The same with both in here."""
    os.mkdir("d"), os.symlink(target, "l")
    with open("d/file", "w") as file:
        file.write("mine")
    parent = os.getpid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        while os.getppid() == parent:
            os.rename("d", "t"), os.rename("l", "d"), os.rename("d", "l"), os.rename("t", "d")
    read_race("d", tries)


def wait_for(path):
    end = time.monotonic() + 20
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.002)


def moved_away(folder):
    """The working directory is moved out of the workspace; what is above it now?"""
    os.chdir(folder)
    open("here", "w").close()
    end = time.monotonic() + 20
    while os.path.exists("../still") and time.monotonic() < end:
        time.sleep(0.002)
    secret("../secret")


def by_file_handle(path):
    """The number of a file, past every path. Made from what `name_to_handle_at` gives outside."""
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128), 136)
    mount = ctypes.c_int()
    call("name_to_handle_at", AT_FDCWD, path if os.path.exists(path) else ".", buffer, ctypes.byref(mount), 0)
    root = os.open(".", os.O_RDONLY)
    got = call("open_by_handle_at", root, buffer, os.O_RDONLY)
    reached() if b"SECRET" in os.read(got, 100) else held(errno.ENODATA)


def walk_up_from(folder, name):
    """From a folder that is shown, by every way up."""
    last = errno.ENOENT
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for up in ("..", "../..", "../../.."):
        for how in (lambda: os.open(f"{up}/{name}", os.O_RDONLY, dir_fd=handle), lambda: os.open(f"{folder}/{up}/{name}", os.O_RDONLY)):
            try:
                if b"SECRET" in os.read(how(), 100):
                    reached()
            except OSError as error:
                last = error.errno
    held(last)


def inherited():
    found = []
    for number in range(3, 1024):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            pass
    reached(found) if found else held(errno.EBADF)


def list_folder(path):
    reached(os.listdir(path))


# Mounts

def new_mounts():
    try:
        call("unshare", NEWNS)
    except OSError:
        call("unshare", NEWUSER | NEWNS)
    call("mount", "none", "/", 0, MS_REC | MS_PRIVATE, 0)


def mount_bind(source):
    new_mounts()
    os.mkdir("at")
    call("mount", source, "at", 0, MS_BIND | MS_REC, 0)
    secret("at/secret")


def mount_move(source):
    new_mounts()
    os.mkdir("at")
    call("mount", source, source, 0, MS_BIND, 0)
    call("mount", source, "at", 0, MS_MOVE, 0)
    secret("at/secret")


def umount(path, prepare):
    """Takes a mask away. Outside it puts one up first."""
    if prepare == "yes":
        new_mounts()
        call("mount", "/dev/null", path, 0, MS_BIND, 0)
    for target in (path, "/workspace", "/"):
        try:
            call("umount2", target, 2)
            break
        except OSError as error:
            last = error
    else:
        raise last
    secret(path)


def remount(folder, prepare):
    if prepare == "yes":
        new_mounts()
        call("mount", folder, folder, 0, MS_BIND, 0)
        call("mount", 0, folder, 0, MS_BIND | MS_REMOUNT | MS_RDONLY, 0)
    try:
        open(os.path.join(folder, "new"), "w")
        held(errno.ENODATA)
    except OSError as error:
        assert error.errno == errno.EROFS, error
    call("mount", 0, folder, 0, MS_BIND | MS_REMOUNT, 0)
    open(os.path.join(folder, "new"), "w").close()
    reached()


def set_attributes(folder, prepare):
    if prepare == "yes":
        new_mounts()
        call("mount", folder, folder, 0, MS_BIND, 0)
        call("mount", 0, folder, 0, MS_BIND | MS_REMOUNT | MS_RDONLY, 0)
    attributes = struct.pack("QQQQ", 0, 1, 0, 0)
    call("mount_setattr", AT_FDCWD, folder, 0, ctypes.create_string_buffer(attributes), 32)
    open(os.path.join(folder, "new"), "w").close()
    reached()


def detached_tree(source):
    tree = call("open_tree", AT_FDCWD, source, 1)
    reached() if "secret" in os.listdir(f"/proc/self/fd/{tree}") else held(errno.ENODATA)


def chroot_and_back(path):
    """The oldest way out of a root: keep a handle, make another root, go up."""
    kept = os.open("/", os.O_PATH)
    os.mkdir("jail")
    call("chroot", "jail")
    os.fchdir(kept)
    secret(path.lstrip("/"))


def new_user_namespace():
    call("unshare", NEWUSER)
    reached(open("/proc/self/status").read().split("CapEff:\t")[1][:16])


def clone_user_namespace():
    if call("clone", NEWUSER | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
    reached()


def join_namespaces(pid):
    handle = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    call("setns", handle, 0)
    reached()


def release_agent():
    """A control group of version 1 runs a program of one's choice as root of the machine."""
    new_mounts()
    os.mkdir("groups")
    call("mount", "none", "groups", "cgroup", 0, "none,name=portcullis-escape")
    try:
        with open("groups/release_agent", "w") as file:
            file.write("/bin/false")
    finally:
        call("umount2", "groups", 2)
    reached()


# Processes

def environ(pid):
    secret(f"/proc/{pid}/environ")


def any_environ():
    last = errno.ENOENT
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if b"ESCAPE_SECRET" in file.read():
                        reached()
            except OSError as error:
                last = error.errno
    held(last)


def memory(pid):
    with open(f"/proc/{pid}/maps") as maps:
        line = next(one for one in maps if "[stack]" in one)
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb", 0) as file:
        file.seek(start)
        reached() if b"SECRET" in file.read(end - start) else held(errno.ENODATA)


def vm_read(pid):
    buffer = ctypes.create_string_buffer(16)
    local = struct.pack("QQ", ctypes.addressof(buffer), 16)
    try:
        with open(f"/proc/{pid}/maps") as maps:
            start = int(next(maps).split("-")[0], 16)
    except OSError:
        start = ctypes.addressof(buffer)
    remote = struct.pack("QQ", start, 16)
    call("process_vm_readv", int(pid), local, 1, remote, 1, 0)
    reached()


def trace(pid):
    call("ptrace", 16, int(pid), 0, 0)
    reached()


def trace_child():
    child = os.fork()
    if child == 0:
        time.sleep(5)
        os._exit(0)
    try:
        call("ptrace", 16, child, 0, 0)
    finally:
        os.kill(child, 9)
    reached()


def end(pid):
    os.kill(int(pid), signal.SIGKILL)
    reached()


def limit(pid):
    resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (3, 3))
    reached()


def renice(pid):
    os.setpriority(os.PRIO_PROCESS, int(pid), 19)
    assert os.getpriority(os.PRIO_PROCESS, int(pid)) == 19
    reached()


def steal_descriptor(pid):
    try:
        handle = os.pidfd_open(int(pid))
    except ProcessLookupError:
        handle = os.pidfd_open(os.getpid())
    call("pidfd_getfd", handle, 0, 0)
    reached()


def kill_the_launcher(mark):
    """A daemon, and then whoever would end it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            os.execvp("sleep", ["sleep", mark])
        os._exit(0)
    os.wait()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.1)
    if os.getppid() == 1 and not os.path.exists("/proc/1/exe"):
        held(errno.EPERM)
    reached()


# Sockets

def abstract(name):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\0" + name)
    reached()


def local(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
    reached()


def local_datagram(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendto(b"attack", path)
    reached()


def half_of_a_pair(path, kind):
    """A socket that needs no permission to be made, and can be sent anywhere."""
    one, _ = socket.socketpair(socket.AF_UNIX, int(kind))
    one.sendto(b"attack", path)
    reached()


def tcp(port):
    with socket.create_connection(("127.0.0.1", int(port)), 5):
        reached()


def udp(port):
    """As a question to a name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(1)
        one.connect(("127.0.0.1", int(port)))
        question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06attack\x07example\x00\x00\x01\x00\x01"
        one.send(question)
        try:
            one.recv(512)
        except TimeoutError:
            held(errno.ETIMEDOUT)
    reached()


def raw(family, kind, protocol):
    with socket.socket(int(family), int(kind), int(protocol)):
        reached()


def sockets(*triples):
    """Each is family:kind:protocol, tried by the bare call, so that bits above an int reach the kernel as they are."""
    made, errors = [], set()
    for triple in triples:
        family, kind, protocol = (int(word, 0) for word in triple.split(":"))
        try:
            os.close(call("socket", family, kind, protocol))
            made.append(triple)
        except OSError as error:
            errors.add(errno.errorcode.get(error.errno, str(error.errno)))
    all_or_none(made, errors)


def all_or_none(made, errors):
    """Reached if anything was; else every error there was."""
    if made:
        reached(" ".join(made))
    print("held:", " ".join(sorted(errors)), flush=True)
    os._exit(3)


def ways_to(name):
    """Files of /proc by other names."""
    folder = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    yield from (f"{root}/proc/{name}" for root in ["", "/.", "/proc/self/root", "/proc/thread-self/root"])
    yield f"/proc/self/task/{os.getpid()}/root/proc/{name}"
    yield f"/proc/1/root/proc/{name}"
    yield f"/proc/self/fd/{folder}/{name}"


def machine(flags, *names):
    """What tells of the machine: opened, by every way, for reading (0) or for writing (1)."""
    opened, errors = [], set()
    for name in names:
        for path in ways_to(name):
            try:
                os.close(os.open(path, int(flags)))
                opened.append(path)
            except OSError as error:
                errors.add(errno.errorcode.get(error.errno, str(error.errno)))
    all_or_none(opened, errors)


def unmask(name, prepare):
    """Takes the mask of a file of /proc away."""
    path = f"/proc/{name}"
    if prepare == "yes":
        new_mounts()
        call("mount", "/dev/null", path, 0, MS_BIND, 0)
    call("umount2", path, 2)
    can_read(path)


def remount_proc(prepare):
    """Makes /proc writable again."""
    if prepare == "yes":
        new_mounts()
        call("mount", 0, "/proc", 0, MS_BIND | MS_REMOUNT | MS_RDONLY, 0)
    call("mount", 0, "/proc", 0, MS_BIND | MS_REMOUNT, 0)
    setting("/proc/sys/vm/drop_caches")


def proc_anew(prepare):
    """Mounts another /proc, in which nothing is masked."""
    if prepare == "yes":
        new_mounts()
    os.mkdir("anew")
    call("mount", "proc", "anew", "proc", 0, 0)
    can_read("anew/keys")


def interfaces():
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    reached(names) if names else held(errno.ENODEV)


def system_v(key):
    number = call("shmget", int(key), 0, 0o600)
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(number, None, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        held(ctypes.get_errno())
    reached() if ctypes.string_at(address, 6) == b"SECRET" else held(errno.ENODATA)


def queue(name):
    got = call("mq_open", name, os.O_RDWR, 0, 0)
    os.close(got)
    reached()


# Privileges

def make_setuid(door):
    bits = 0o4755
    if door in ("chmod", "fchmod", "fchmodat2"):
        open("tool", "w").close()
    if door == "chmod":
        os.chmod("tool", bits)
    elif door == "fchmod":
        with open("tool") as file:
            os.fchmod(file.fileno(), bits)
    elif door == "fchmodat2":
        call("fchmodat2", AT_FDCWD, "tool", bits, 0)
    elif door == "open":
        os.umask(0)
        os.open("tool", os.O_CREAT | os.O_WRONLY, bits)
    elif door == "tmpfile":
        os.umask(0)
        got = os.open(".", os.O_TMPFILE | os.O_WRONLY, bits)
        link_handle(got, "tool")
    elif door == "openat2":
        os.umask(0)
        how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, bits, 0)
        call("openat2", AT_FDCWD, "tool", how, len(how))
    elif door == "mknod":
        os.umask(0)
        os.mknod("tool", bits | stat.S_IFREG)
    elif door == "copy":
        os.umask(0)
        code = os.system("cp -p setuid tool 2>/dev/null")
        if not os.stat("tool").st_mode & 0o4000:
            held(errno.EPERM)
    reached() if os.stat("tool").st_mode & 0o4000 else held(errno.ENODATA)


def make_capable():
    open("tool", "w").close()
    os.setxattr("tool", "security.capability", struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFF, 0))
    reached()


def device(kind, major, minor):
    number = os.makedev(int(major), int(minor))
    os.mknod("node", (stat.S_IFCHR if kind == "c" else stat.S_IFBLK) | 0o666, number)
    os.close(os.open("node", os.O_RDONLY))
    reached()


def become(uid):
    os.setgroups([])
    os.setuid(int(uid))
    reached()


# The kernel

def possible(name, *numbers):
    """With arguments that change nothing. Denied is EPERM; every other answer means it was looked at."""
    words = [0 if word == "0" else int(word) for word in numbers]
    try:
        call(name, *words)
    except OSError as error:
        if error.errno == errno.EPERM:
            held(error)
    reached()


def x32(name):
    """The same calls by their other number."""
    ctypes.set_errno(0)
    LIBC.syscall(ctypes.c_long(CALLS[name] | 0x40000000), 0, 0, 0, 0, 0)
    reached() if ctypes.get_errno() != errno.EPERM else held(errno.EPERM)


def int80():
    """The door of 32-bit programs, with numbers of its own: getpid is 20."""
    code = bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3])
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    got = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    reached(got) if got == os.getpid() else held(-got)


def tiocsti():
    try:
        _, secondary = os.openpty()
    except OSError:
        secondary = 0
    import fcntl
    fcntl.ioctl(secondary, 0x5412, b"x")
    reached()


def terminal():
    os.close(os.open("/dev/tty", os.O_RDWR))
    reached()


def setting(path):
    """Opened for writing, and left as it is."""
    os.close(os.open(path, os.O_WRONLY))
    reached()


def crash():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    _, status = os.wait()
    reached() if os.WCOREDUMP(status) else held(errno.ENODATA)


# Using up

def forks(most):
    made = []
    for _ in range(int(most)):
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            time.sleep(60)
            os._exit(0)
        made.append(child)
    for child in made:
        os.kill(child, 9)
    print(len(made), flush=True)


def fill_memory(megabytes):
    block = mmap.mmap(-1, int(megabytes) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(block), 4096):
        block[at] = 1
    reached()


def fill_file(path, megabytes):
    with open(path, "wb", 0) as file:
        for _ in range(int(megabytes)):
            file.write(bytes(1 << 20))
    reached()


def fill_names(folder, most):
    for number in range(int(most)):
        open(os.path.join(folder, str(number)), "w").close()
    reached()


def open_many(most):
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(int(most))]
    reached(len(kept))


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        globals()[sys.argv[1]](*sys.argv[2:])
    except (OSError, MemoryError) as error:
        held(error if isinstance(error, OSError) and error.errno else errno.ENOMEM)
