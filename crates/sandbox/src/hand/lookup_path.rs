//! Which names the kernel looks up on the way to a path. A process that can replace one of them decides what stands at
//! its end.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed on one way; the kernel follows no more.
const LINKS: usize = 40;

/// One name on the way to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The folder that holds the name, its links resolved, and the name.
    pub place: PathBuf,
    pub is_link: bool,
}

/// Every name on the way to `path`, in the order in which they are looked up: a link is followed by the names of where it
/// leads. What does not exist is named as it is written. A relative path begins in the working directory.
#[must_use]
pub fn way_to(path: &Path) -> Vec<Step> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut left: VecDeque<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    let (mut here, mut links, mut way) = (PathBuf::from("/"), 0, Vec::new());
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => here = PathBuf::from("/"),
            Some(Component::ParentDir) => drop(here.pop()),
            Some(Component::Normal(name)) => {
                let place = here.join(name);
                let target = place.read_link().ok().filter(|_| links < LINKS);
                way.push(Step { place: place.clone(), is_link: target.is_some() });
                match target {
                    Some(target) => {
                        links += 1;
                        let more: Vec<OsString> = target.components().map(|part| part.as_os_str().to_owned()).collect();
                        more.into_iter().rev().for_each(|part| left.push_front(part));
                    }
                    None => here = place,
                }
            }
            _ => {}
        }
    }
    way
}

/// Whether a process of this user could make something in a folder, or change its mode so that it can.
#[must_use]
pub fn can_change(folder: &Path) -> bool {
    match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
        Ok(()) => true,
        Err(rustix::io::Errno::ROFS) => false,
        Err(_) => rustix::fs::stat(folder).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_way_names_links_and_what_they_lead_through() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path().canonicalize().expect("it is there");
        fs::create_dir_all(root.join("real/deep")).expect("made");
        symlink("../real/deep", root.join("real/link")).expect("linked");
        symlink(root.join("real/link"), root.join("first")).expect("linked");
        let way = way_to(&root.join("first/../deep/not/there"));
        let beneath: Vec<(String, bool)> = way
            .iter()
            .filter_map(|step| Some((step.place.strip_prefix(&root).ok()?.display().to_string(), step.is_link)))
            .filter(|(place, _)| !place.is_empty())
            .collect();
        let wanted = [
            ("first", true),
            ("real", false),
            ("real/link", true),
            ("real", false),
            ("real/deep", false),
            ("real/deep", false),
            ("real/deep/not", false),
            ("real/deep/not/there", false),
        ];
        assert_eq!(beneath, wanted.map(|(place, link)| (place.to_owned(), link)));
    }

    #[test]
    fn a_link_to_itself_ends() {
        let scratch = tempfile::tempdir().expect("a folder");
        symlink("loop", scratch.path().join("loop")).expect("linked");
        assert!(way_to(&scratch.path().join("loop/x")).len() < 100);
    }
}
