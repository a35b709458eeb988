//! What goes over the socket between us and a launcher: orders one way, reports the other.
//!
//! The orders are bytes in a memory file, so that one message of a few bytes carries them whatever
//! their size, together with the handles. A report is one small packet. Both ends are the same
//! program, so there is no version; still every read is checked, for a bug must not become a launch.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::plan::Limits;
use super::posture::Layers;

/// Where a launch can stop. The numbers only have to agree with themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Orders = 1,
    ParentGone,
    CgroupJoin,
    UserNamespace,
    Namespaces,
    IdMaps,
    ForkInit,
    Propagation,
    RootTmpfs,
    SystemBind,
    Skeleton,
    Devices,
    MountAttributes,
    Tmp,
    Proc,
    Pivot,
    View,
    Hostname,
    Capabilities,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Descriptors,
    ForkProgram,
    Limits,
    Cwd,
    Exec,
}

impl Step {
    const ALL: [Self; 27] = [
        Self::Orders,
        Self::ParentGone,
        Self::CgroupJoin,
        Self::UserNamespace,
        Self::Namespaces,
        Self::IdMaps,
        Self::ForkInit,
        Self::Propagation,
        Self::RootTmpfs,
        Self::SystemBind,
        Self::Skeleton,
        Self::Devices,
        Self::MountAttributes,
        Self::Tmp,
        Self::Proc,
        Self::Pivot,
        Self::View,
        Self::Hostname,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Descriptors,
        Self::ForkProgram,
        Self::Limits,
        Self::Cwd,
        Self::Exec,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Orders => "reading its orders",
            Self::ParentGone => "checking its parent",
            Self::CgroupJoin => "joining its cgroup",
            Self::UserNamespace => "unshare(user namespace)",
            Self::Namespaces => "unshare(namespaces)",
            Self::IdMaps => "writing the id maps",
            Self::ForkInit => "starting the init process",
            Self::Propagation => "making mounts private",
            Self::RootTmpfs => "mounting a root",
            Self::SystemBind => "binding the system directories",
            Self::Skeleton => "laying out the root",
            Self::Devices => "binding devices",
            Self::MountAttributes => "mount_setattr",
            Self::Tmp => "mounting /tmp",
            Self::Proc => "mounting /proc",
            Self::Pivot => "pivot_root",
            Self::View => "showing a place",
            Self::Hostname => "naming the host",
            Self::Capabilities => "dropping capabilities",
            Self::NoNewPrivileges => "no_new_privs",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
            Self::Descriptors => "placing descriptors",
            Self::ForkProgram => "starting the program's process",
            Self::Limits => "setting limits",
            Self::Cwd => "entering the working directory",
            Self::Exec => "exec",
        }
    }
}

/// What a launcher says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// Nothing runs. `index` is the mount order it was about, where it was about one.
    Failed { step: Step, errno: i32, index: u32 },
    /// The program's exec has happened (or, for a probe, would be next).
    Started,
    /// The program ended with this wait status.
    Exited { status: i32 },
}

pub(crate) const REPORT_BYTES: usize = 10;

impl Report {
    pub(crate) fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, step, number, index) = match self {
            Self::Failed { step, errno, index } => (1, step as u8, errno, index),
            Self::Started => (2, 0, 0, 0),
            Self::Exited { status } => (3, 0, status, 0),
        };
        let mut bytes = [0; REPORT_BYTES];
        bytes[0] = kind;
        bytes[1] = step;
        bytes[2..6].copy_from_slice(&number.to_le_bytes());
        bytes[6..].copy_from_slice(&index.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (kind, step, number, index) = (reader.u8()?, reader.u8()?, reader.u32()?, reader.u32()?);
        let number = i32::from_le_bytes(number.to_le_bytes());
        Some(match kind {
            1 => {
                let step = Step::ALL.into_iter().find(|one| *one as u8 == step)?;
                Self::Failed { step, errno: number, index }
            }
            2 => Self::Started,
            3 => Self::Exited { status: number },
            _ => return None,
        })
    }
}

/// How one place of the view is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountKind {
    ReadOnly,
    ReadWrite,
    Mask,
    /// What is there becomes read-only.
    Guard,
    /// What is there cannot be moved away.
    Pin,
    /// What is there looks empty.
    Empty,
}

/// What a bind shows at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BindSource {
    Path(Vec<u8>),
    /// Which of the handles.
    Handle(u32),
    /// Masks and guards come from nowhere.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountOrder {
    pub(crate) kind: MountKind,
    pub(crate) optional: bool,
    pub(crate) from: BindSource,
    pub(crate) place: Vec<u8>,
}

/// One instruction of a seccomp program, as the kernel has it.
pub(crate) type Instruction = (u16, u8, u8, u32);

/// Everything that a launcher receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(crate) layers: Layers,
    pub(crate) parent: u32,
    /// A namespace of its own for the network.
    pub(crate) own_network: bool,
    /// Stop where the program would be started.
    pub(crate) probe: bool,
    pub(crate) has_stdin: bool,
    pub(crate) has_cgroup: bool,
    pub(crate) handles: u32,
    pub(crate) extra_fds: u32,
    /// 0: `/tmp` is one of the mounts.
    pub(crate) tmp_bytes: u64,
    pub(crate) home: Vec<u8>,
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) cwd: Vec<u8>,
    pub(crate) mounts: Vec<MountOrder>,
    pub(crate) limits: LimitOrders,
    pub(crate) filters: Vec<Vec<Instruction>>,
}

/// [`Limits`] as numbers; `u64::MAX` is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitOrders {
    pub(crate) cpu_seconds: u64,
    /// Of each process; none if a cgroup bounds the tree.
    pub(crate) data_bytes: u64,
    pub(crate) pids: u64,
    pub(crate) file_size: u64,
    pub(crate) open_files: u64,
}

impl LimitOrders {
    pub(crate) fn of(limits: &Limits, memory_by_cgroup: bool) -> Self {
        let none = u64::MAX;
        Self {
            // A limit of part of a second is one second: the kernel counts no less.
            cpu_seconds: limits.cpu.map_or(none, |time| time.as_secs().max(1)),
            data_bytes: limits.memory.filter(|_| !memory_by_cgroup).unwrap_or(none),
            pids: limits.pids.map_or(none, u64::from),
            file_size: limits.file_size.unwrap_or(none),
            open_files: limits.open_files.unwrap_or(none),
        }
    }
}

impl Orders {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(4096));
        out.u8(self.layers.to_byte());
        out.u32(self.parent);
        for flag in [self.own_network, self.probe, self.has_stdin, self.has_cgroup] {
            out.u8(u8::from(flag));
        }
        out.u32(self.handles);
        out.u32(self.extra_fds);
        out.u64(self.tmp_bytes);
        out.bytes(&self.home);
        out.list(&self.argv);
        out.list(&self.env);
        out.bytes(&self.cwd);
        out.length(self.mounts.len());
        for mount in &self.mounts {
            out.u8(mount.kind as u8);
            out.u8(u8::from(mount.optional));
            match &mount.from {
                BindSource::Nothing => out.u8(0),
                BindSource::Path(path) => {
                    out.u8(1);
                    out.bytes(path);
                }
                BindSource::Handle(index) => {
                    out.u8(2);
                    out.u32(*index);
                }
            }
            out.bytes(&mount.place);
        }
        let limits = &self.limits;
        for number in [limits.cpu_seconds, limits.data_bytes, limits.pids, limits.file_size, limits.open_files] {
            out.u64(number);
        }
        out.length(self.filters.len());
        for filter in &self.filters {
            out.length(filter.len());
            for (code, jt, jf, k) in filter {
                out.0.extend_from_slice(&code.to_le_bytes());
                out.u8(*jt);
                out.u8(*jf);
                out.u32(*k);
            }
        }
        out.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let orders = Self {
            layers: Layers::from_byte(from.u8()?),
            parent: from.u32()?,
            own_network: from.flag()?,
            probe: from.flag()?,
            has_stdin: from.flag()?,
            has_cgroup: from.flag()?,
            handles: from.u32()?,
            extra_fds: from.u32()?,
            tmp_bytes: from.u64()?,
            home: from.bytes()?,
            argv: from.list(Reader::bytes)?,
            env: from.list(Reader::bytes)?,
            cwd: from.bytes()?,
            mounts: from.list(Reader::mount)?,
            limits: LimitOrders {
                cpu_seconds: from.u64()?,
                data_bytes: from.u64()?,
                pids: from.u64()?,
                file_size: from.u64()?,
                open_files: from.u64()?,
            },
            filters: from.list(|from| from.list(Reader::instruction))?,
        };
        from.0.is_empty().then_some(orders)
    }
}

/// A path as the orders have it.
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        self.u64(length as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn list(&mut self, list: &[Vec<u8>]) {
        self.length(list.len());
        for one in list {
            self.bytes(one);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A length that the bytes left can hold, so that no number makes us reserve the machine.
    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u64()?).ok().filter(|length| *length <= self.0.len())
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.length()?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head.to_vec())
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.length()?;
        (0..length).map(|_| one(self)).collect()
    }

    fn mount(&mut self) -> Option<MountOrder> {
        let kind = match self.u8()? {
            0 => MountKind::ReadOnly,
            1 => MountKind::ReadWrite,
            2 => MountKind::Mask,
            3 => MountKind::Guard,
            4 => MountKind::Pin,
            5 => MountKind::Empty,
            _ => return None,
        };
        let optional = self.flag()?;
        let from = match self.u8()? {
            0 => BindSource::Nothing,
            1 => BindSource::Path(self.bytes()?),
            2 => BindSource::Handle(self.u32()?),
            _ => return None,
        };
        Some(MountOrder { kind, optional, from, place: self.bytes()? })
    }

    fn instruction(&mut self) -> Option<Instruction> {
        Some((u16::from_le_bytes(self.take()?), self.u8()?, self.u8()?, self.u32()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_text() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..12)
    }

    fn any_mount() -> impl Strategy<Value = MountOrder> {
        let kinds = vec![
            MountKind::ReadOnly,
            MountKind::ReadWrite,
            MountKind::Mask,
            MountKind::Guard,
            MountKind::Pin,
            MountKind::Empty,
        ];
        let from = prop_oneof![
            Just(BindSource::Nothing),
            any::<u32>().prop_map(BindSource::Handle),
            any_text().prop_map(BindSource::Path)
        ];
        (proptest::sample::select(kinds), any::<bool>(), from, any_text())
            .prop_map(|(kind, optional, from, place)| MountOrder { kind, optional, from, place })
    }

    fn any_orders() -> impl Strategy<Value = Orders> {
        let list = || proptest::collection::vec(any_text(), 0..4);
        let filter = proptest::collection::vec(any::<Instruction>(), 0..4);
        let parts = (
            (any::<u8>(), any::<[bool; 4]>(), any::<[u32; 3]>(), any::<[u64; 6]>()),
            (any_text(), list(), list(), any_text()),
            (proptest::collection::vec(any_mount(), 0..4), proptest::collection::vec(filter, 0..3)),
        );
        parts.prop_map(|((layers, flags, numbers, limits), (home, argv, env, cwd), (mounts, filters))| Orders {
            layers: Layers::from_byte(layers),
            parent: numbers[0],
            own_network: flags[0],
            probe: flags[1],
            has_stdin: flags[2],
            has_cgroup: flags[3],
            handles: numbers[1],
            extra_fds: numbers[2],
            tmp_bytes: limits[5],
            home,
            argv,
            env,
            cwd,
            mounts,
            limits: LimitOrders {
                cpu_seconds: limits[0],
                data_bytes: limits[1],
                pids: limits[2],
                file_size: limits[3],
                open_files: limits[4],
            },
            filters,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_hand_wire_any_orders_arrive_as_they_were_given(orders in any_orders()) {
            prop_assert_eq!(Orders::from_bytes(&orders.to_bytes()), Some(orders));
        }

        /// Bytes that are not ours make no orders, or the orders that these bytes say and nothing else.
        #[test]
        fn fuzz_hand_wire_changed_orders_are_refused_or_say_what_they_say(
            orders in any_orders(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..6),
        ) {
            let mut bytes = orders.to_bytes();
            for (at, byte, how) in changes {
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            if let Some(read) = Orders::from_bytes(&bytes) {
                // Bits that mean no layer are passed over; everything else is said again to the byte.
                bytes[0] = read.layers.to_byte();
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }

        #[test]
        fn fuzz_hand_wire_no_bytes_break_the_reading(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Orders::from_bytes(&bytes);
            if let Some(report) = Report::from_bytes(&bytes) {
                prop_assert_eq!(Report::from_bytes(&report.to_bytes()), Some(report));
            }
        }
    }

    fn orders() -> Orders {
        Orders {
            layers: Layers::ALL,
            parent: 7,
            own_network: true,
            probe: false,
            has_stdin: true,
            has_cgroup: false,
            handles: 1,
            extra_fds: 2,
            tmp_bytes: 9,
            home: b"/home/x".to_vec(),
            argv: vec![b"sh".to_vec(), b"\xff\n".to_vec()],
            env: vec![b"A=b=c".to_vec()],
            cwd: b"/workspace".to_vec(),
            mounts: vec![
                MountOrder {
                    kind: MountKind::ReadWrite,
                    optional: true,
                    from: BindSource::Handle(0),
                    place: b"/workspace".to_vec(),
                },
                MountOrder {
                    kind: MountKind::Mask,
                    optional: false,
                    from: BindSource::Nothing,
                    place: b"/workspace/.env".to_vec(),
                },
                MountOrder {
                    kind: MountKind::ReadOnly,
                    optional: false,
                    from: BindSource::Path(b"/opt".to_vec()),
                    place: b"/opt".to_vec(),
                },
            ],
            limits: LimitOrders { cpu_seconds: 1, data_bytes: 2, pids: 3, file_size: 4, open_files: u64::MAX },
            filters: vec![vec![(6, 0, 1, 0x7fff_0000)], vec![]],
        }
    }

    #[test]
    fn orders_arrive_as_they_were_given() {
        assert_eq!(Orders::from_bytes(&orders().to_bytes()), Some(orders()));
    }

    #[test]
    fn orders_that_are_cut_or_longer_are_no_orders() {
        let bytes = orders().to_bytes();
        for cut in 0..bytes.len() {
            assert_eq!(Orders::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Orders::from_bytes(&[bytes, vec![0]].concat()), None);
    }

    #[test]
    fn every_report_arrives_as_it_was_sent() {
        for step in Step::ALL {
            let report = Report::Failed { step, errno: 13, index: 4 };
            assert_eq!(Report::from_bytes(&report.to_bytes()), Some(report));
        }
        for report in [Report::Started, Report::Exited { status: 0x89 }] {
            assert_eq!(Report::from_bytes(&report.to_bytes()), Some(report));
        }
        assert_eq!(Report::from_bytes(b""), None);
    }
}
