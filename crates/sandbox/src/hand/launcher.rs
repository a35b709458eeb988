//! From a plan to a running tree: which layers, which orders, and what a failure means.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use rustix::fs::{Mode, OFlags};

use super::cgroup::Cgroup;
use super::disk::{Disks, FreeSpace, Statvfs};
use super::plan::{Bind, BindAccess, OnUnheld, Output, Plan, Source, Stdin, Tmp};
use super::posture::Layers;
use super::probe::{self, Probed};
use super::running::{Running, WatchedGuard};
use super::spawn::{self, Outputs, PreparedLaunch};
use super::wire::{BindSource, LimitOrders, MountKind, MountOrder, Orders, Report, Step, path_bytes};
use super::{CannotHold, LaunchError, Layer, Posture, Unheld, is_init};

/// Starts commands. Clones share what was probed.
#[derive(Debug, Clone)]
pub struct Launcher(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None: this program itself.
    helper: Option<PathBuf>,
    probed: OnceLock<Result<Probed, String>>,
    space: Arc<dyn FreeSpace>,
    none: OnceLock<Posture>,
}

const NO_INIT: &str = "call `portcullis::hand::init()` as the first line of `main`, or name a helper program";

impl Launcher {
    /// This program is its own launcher, if it called [`init`](super::init). Probed once a process.
    #[must_use]
    pub fn this_program() -> Self {
        static THIS: LazyLock<Launcher> = LazyLock::new(|| Launcher::new(None));
        THIS.clone()
    }

    /// Another program that calls [`init`](super::init) first, such as `portcullis-hand`.
    #[must_use]
    pub fn helper(program: impl Into<PathBuf>) -> Self {
        Self::new(Some(program.into()))
    }

    fn new(helper: Option<PathBuf>) -> Self {
        Self::with(helper, Arc::new(Statvfs))
    }

    fn with(helper: Option<PathBuf>, space: Arc<dyn FreeSpace>) -> Self {
        Self(Arc::new(Inner { helper, probed: OnceLock::new(), space, none: OnceLock::new() }))
    }

    /// The same launcher with another word for the free space of a file system than the kernel's. For tests.
    #[must_use]
    pub fn measuring(&self, space: Arc<dyn FreeSpace>) -> Self {
        Self::with(self.0.helper.clone(), space)
    }

    /// The isolation that commands get here, found by really trying, the first time this is called
    /// (some milliseconds). Where no command can be started at all it says so.
    #[must_use]
    pub fn posture(&self) -> &Posture {
        match self.probed() {
            Ok(probed) => &probed.posture,
            Err(LaunchError::Unavailable(why)) => self.0.none.get_or_init(|| probe::unavailable(&why)),
            Err(other) => self.0.none.get_or_init(|| probe::unavailable(&other.to_string())),
        }
    }

    fn program(&self) -> Result<&Path, LaunchError> {
        match &self.0.helper {
            Some(helper) => Ok(helper),
            None if is_init() => Ok(Path::new("/proc/self/exe")),
            None => Err(LaunchError::Unavailable(NO_INIT.into())),
        }
    }

    fn probed(&self) -> Result<&Probed, LaunchError> {
        let program = self.program()?;
        let probed = self.0.probed.get_or_init(|| probe::probe(program));
        probed.as_ref().map_err(|why| LaunchError::Unavailable(why.clone()))
    }

    /// Starts a command. When this returns, its program has been executed; nothing of it ran if it
    /// fails. Dropping the future ends whatever was started.
    ///
    /// # Errors
    ///
    /// See [`LaunchError`]. In particular nothing runs below [`Plan::minimum`].
    pub async fn launch(&self, plan: Plan) -> Result<Running, LaunchError> {
        let probed = match self.0.probed.get() {
            Some(_) => self.probed()?.clone(),
            None => {
                let this = self.clone();
                let found = tokio::task::spawn_blocking(move || this.probed().cloned()).await;
                found.map_err(|error| LaunchError::Unavailable(error.to_string()))??
            }
        };
        check(&plan)?;
        let Probed { mut layers, mut cgroups, mut posture } = probed;
        if layers.level() > plan.at_most {
            layers = layers.at_most(plan.at_most);
            posture.missing.extend(probe::not_wanted(layers));
            posture.level = layers.level();
        }
        loop {
            if layers.level() < plan.minimum {
                return Err(LaunchError::BelowMinimum { minimum: plan.minimum, posture });
            }
            let failed = match self.attempt(&plan, layers, cgroups.as_deref(), &posture).await? {
                Attempt::Runs(running) => return Ok(*running),
                Attempt::Failed(failed) => failed,
            };
            // Something was there when we probed and is not now: with less, if the plan allows it.
            let LaunchStepFailure { step, errno, .. } = failed;
            let Some(layer) = probe::absent(step, errno) else { return Err(failed.into_error(&plan)) };
            posture.missing.push(probe::describe(layer, step, errno));
            match layer {
                Layer::Cgroup if cgroups.is_some() => cgroups = None,
                layer if layers.has(layer) => {
                    posture.missing.extend(probe::gone_with(layer, layers));
                    layers = layers.without(layer);
                }
                _ => return Err(failed.into_error(&plan)),
            }
            posture.level = layers.level();
        }
    }

    async fn attempt(
        &self,
        plan: &Plan,
        layers: Layers,
        cgroups: Option<&Path>,
        posture: &Posture,
    ) -> Result<Attempt, LaunchError> {
        let unheld = unheld(plan, layers)?;
        let watched = watched(plan);
        // Before anything of it runs: what it writes first counts as well.
        let disk = Disks::of(plan, &self.0.space).watch();
        let launcher = |step| move |why: io::Error| LaunchError::Launcher { step, why };
        let cgroup = match cgroups.map(|base| Cgroup::new(base, &plan.limits)) {
            None => None,
            Some(Ok(made)) => Some(made),
            Some(Err(why)) => {
                let errno = why.raw_os_error().unwrap_or_default();
                return Ok(Attempt::Failed(LaunchStepFailure { step: Step::CgroupJoin, errno, index: 0 }));
            }
        };
        let (orders, handles) = orders(plan, layers, cgroup.is_some());
        let mut fds: Vec<BorrowedFd<'_>> = Vec::new();
        fds.extend(cgroup.as_ref().map(|(_, procs)| procs.as_fd()));
        if let Stdin::Fd(fd) = &plan.stdin {
            fds.push(fd.as_fd());
        }
        fds.extend(handles.iter().map(|fd| fd.as_fd()));
        fds.extend(plan.extra_fds.iter().map(AsFd::as_fd));
        // Copies: what fails at one level is tried again at another.
        let given = |output: &Output| match output {
            Output::Pipe => Ok(None),
            Output::Fd(fd) => fd.try_clone().map(Some),
        };
        let stdout = given(&plan.stdout).map_err(launcher("its output"))?;
        let stderr = given(&plan.stderr).map_err(launcher("its output"))?;
        let outputs = Outputs { stdout, stderr };
        let ready =
            PreparedLaunch::new(self.program()?, &orders, &fds, outputs).map_err(launcher("sending its orders"))?;
        drop(fds);
        let spawned = spawn::spawn(ready).await.map_err(launcher("posix_spawn"))?;
        let cgroup = cgroup.map(|(group, _)| group);
        let running = Running::new(spawned, posture.clone(), cgroup).map_err(launcher("watching it"))?;
        match running.report().await.map_err(launcher("its report"))? {
            Some(Report::Started) => Ok(Attempt::Runs(Box::new(running.with(unheld, watched, disk)))),
            Some(Report::Failed { step, errno, index }) => {
                Ok(Attempt::Failed(LaunchStepFailure { step, errno, index }))
            }
            Some(Report::Exited { .. }) | None => {
                Err(launcher("its report")(io::Error::other("it ended without a word")))
            }
        }
    }
}

enum Attempt {
    Runs(Box<Running>),
    Failed(LaunchStepFailure),
}

/// The step of a launch that failed, and its error.
struct LaunchStepFailure {
    step: Step,
    errno: i32,
    index: u32,
}

impl LaunchStepFailure {
    fn into_error(self, plan: &Plan) -> LaunchError {
        let why = io::Error::from_raw_os_error(self.errno);
        match self.step {
            Step::View => LaunchError::View { place: place_of(plan, self.index), why },
            Step::Cwd => LaunchError::Cwd { cwd: plan.cwd.clone(), why },
            Step::Exec => LaunchError::Exec { program: plan.argv.first().map(PathBuf::from).unwrap_or_default(), why },
            step => LaunchError::Launcher { step: step.name(), why },
        }
    }
}

/// The place of a mount order, in the order in which [`orders`] makes them.
fn place_of(plan: &Plan, index: u32) -> PathBuf {
    let places: Vec<&Path> = (matches!(plan.view.tmp, Tmp::Folder(_)).then_some(Path::new("/tmp")).into_iter())
        .chain(plan.view.binds.iter().map(|bind| bind.place.as_path()))
        .chain(plan.view.guards.iter().map(|guard| guard.place.as_path()))
        .chain(plan.view.pinned.iter().chain(&plan.view.masks).chain(&plan.view.empty).map(PathBuf::as_path))
        .collect();
    places.get(index as usize).copied().unwrap_or(Path::new("/")).to_owned()
}

/// What no launcher could make sense of.
fn check(plan: &Plan) -> Result<(), LaunchError> {
    let wrong = |text: String| Err(LaunchError::Plan(text));
    if plan.argv.first().is_none_or(|program| program.is_empty()) {
        return wrong("it names no program".into());
    }
    let nul = |text: &std::ffi::OsStr| text.as_bytes().contains(&0);
    if plan.argv.iter().any(|word| nul(word)) || plan.env.iter().any(|(name, value)| nul(name) || nul(value)) {
        return wrong("a word or a variable holds a NUL".into());
    }
    if let Some((name, _)) = plan.env.iter().find(|(name, _)| name.is_empty() || name.as_bytes().contains(&b'=')) {
        return wrong(format!("{name:?} is no name of a variable"));
    }
    let places = plan.view.binds.iter().map(|bind| &bind.place);
    let places = places.chain(plan.view.guards.iter().map(|guard| &guard.place));
    let places = places.chain(&plan.view.pinned).chain(&plan.view.masks).chain(&plan.view.empty);
    for place in places.chain(&plan.view.home).chain([&plan.cwd]) {
        let odd = |part| !matches!(part, Component::RootDir | Component::Normal(_));
        if !place.is_absolute() || place.components().any(odd) {
            return wrong(format!("{} is no plain absolute path", place.display()));
        }
    }
    if plan.view.binds.iter().map(|bind| &bind.place).chain(&plan.view.home).any(|place| place == Path::new("/")) {
        return wrong("nothing can be shown in place of the root".into());
    }
    Ok(())
}

/// What cannot be held at these layers and may go on all the same.
fn unheld(plan: &Plan, layers: Layers) -> Result<Vec<Unheld>, CannotHold> {
    if layers.has(Layer::PrivateRoot) {
        return Ok(Vec::new());
    }
    let view = &plan.view;
    let mut must: Vec<Unheld> = view.masks.iter().cloned().map(Unheld::Mask).collect();
    let mut may: Vec<Unheld> = view.empty.iter().cloned().map(Unheld::Empty).collect();
    for guard in &view.guards {
        let to = if guard.hold == OnUnheld::Must { &mut must } else { &mut may };
        to.push(Unheld::Guard(guard.place.clone()));
    }
    // Landlock only adds: a writable tree has no read-only part. Without it nothing is read-only.
    for bind in view.binds.iter().filter(|bind| bind.access == BindAccess::ReadOnly && !bind.optional) {
        let inside = |other: &&Bind| other.access == BindAccess::ReadWrite && bind.place.starts_with(&other.place);
        if view.binds.iter().any(|other| inside(&other)) {
            must.push(Unheld::Nested(bind.place.clone()));
        }
    }
    if must.is_empty() { Ok(may) } else { Err(CannotHold { level: layers.level(), what: must }) }
}

/// The guarded places that do not exist, to be looked for later. One handle a bind, however many there are.
fn watched(plan: &Plan) -> Vec<WatchedGuard> {
    let view = &plan.view;
    let mut roots: Vec<(&Path, Arc<OwnedFd>)> = Vec::new();
    let mut all = Vec::new();
    for guard in &view.guards {
        let Some((bind, rest)) = innermost(&view.binds, &guard.place) else { continue };
        let known = roots.iter().find(|(place, _)| *place == bind.place).map(|(_, root)| Arc::clone(root));
        let root = match (known, &bind.source) {
            (Some(root), _) => root,
            (None, Source::Handle(fd)) => Arc::clone(fd),
            (None, Source::Path(path)) => {
                let Ok(fd) = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { continue };
                let root = Arc::new(fd);
                roots.push((&bind.place, Arc::clone(&root)));
                root
            }
        };
        all.push(WatchedGuard { place: guard.place.clone(), root, rest });
    }
    all.retain(|one| !one.is_there());
    all
}

/// The bind that a place of the view lies in, and the way from there.
fn innermost<'a>(binds: &'a [Bind], place: &Path) -> Option<(&'a Bind, PathBuf)> {
    let around = binds.iter().filter_map(|bind| Some((bind, place.strip_prefix(&bind.place).ok()?.to_owned())));
    around.max_by_key(|(bind, _)| bind.place.components().count())
}

fn orders(plan: &Plan, layers: Layers, has_cgroup: bool) -> (Orders, Vec<Arc<OwnedFd>>) {
    let mut handles: Vec<Arc<OwnedFd>> = Vec::new();
    let mut mounts = Vec::new();
    let mut from = |source: &Source| match source {
        Source::Path(path) => BindSource::Path(path_bytes(path)),
        Source::Handle(fd) => {
            let index = handles.len();
            handles.push(Arc::clone(fd));
            // Invariant: `PreparedLaunch::new` refuses far fewer handles than would not fit.
            BindSource::Handle(u32::try_from(index).unwrap_or(u32::MAX))
        }
    };
    if let Tmp::Folder(source) = &plan.view.tmp {
        let place = b"/tmp".to_vec();
        mounts.push(MountOrder { kind: MountKind::ReadWrite, optional: false, from: from(source), place });
    }
    for bind in &plan.view.binds {
        let kind = match bind.access {
            BindAccess::ReadOnly => MountKind::ReadOnly,
            BindAccess::ReadWrite => MountKind::ReadWrite,
        };
        let place = path_bytes(&bind.place);
        mounts.push(MountOrder { kind, optional: bind.optional, from: from(&bind.source), place });
    }
    let bare =
        |kind, place: &Path| MountOrder { kind, optional: false, from: BindSource::Nothing, place: path_bytes(place) };
    mounts.extend(plan.view.guards.iter().map(|guard| bare(MountKind::Guard, &guard.place)));
    // Before the masks: a folder is pinned with what stands in it.
    mounts.extend(plan.view.pinned.iter().map(|place| bare(MountKind::Pin, place)));
    mounts.extend(plan.view.masks.iter().map(|mask| bare(MountKind::Mask, mask)));
    mounts.extend(plan.view.empty.iter().map(|place| bare(MountKind::Empty, place)));

    let cwd = if layers.has(Layer::PrivateRoot) { plan.cwd.clone() } else { host_path(&plan.view.binds, &plan.cwd) };
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let orders = Orders {
        has_stdin: matches!(plan.stdin, Stdin::Fd(_)),
        has_cgroup,
        handles: count(handles.len()),
        extra_fds: count(plan.extra_fds.len()),
        tmp_bytes: match plan.view.tmp {
            Tmp::Memory { bytes } => bytes,
            Tmp::Folder(_) => 0,
        },
        home: plan.view.home.as_deref().map(path_bytes).unwrap_or_default(),
        argv: plan.argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        env: plan.env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect(),
        cwd: path_bytes(&cwd),
        mounts,
        limits: LimitOrders::of(&plan.limits, has_cgroup),
        ..probe::orders(layers, plan.network)
    };
    (orders, handles)
}

/// Where a place of the view is on the host, for levels without a root of its own.
fn host_path(binds: &[Bind], place: &Path) -> PathBuf {
    let Some((bind, rest)) = innermost(binds, place) else { return place.to_owned() };
    let root = match &bind.source {
        Source::Path(path) => path.clone(),
        Source::Handle(fd) => std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default(),
    };
    if rest.as_os_str().is_empty() { root } else { root.join(rest) }
}
