//! The path resolver against trees full of links and against the kernel's own reading of the same path.

use std::fs;
use std::path::Path;

use portcullis_sandbox::{Kind, read_file};
use proptest::prelude::*;

use crate::world::{SECRET, World, world};

const NAMES: [&str; 5] = ["a", "b", "c", "d.txt", "e.txt"];

/// A path as anybody may write it. `OUTSIDE` and `INSIDE` stand for host paths.
fn any_path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        12 => proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned),
        4 => (0_usize..6).prop_map(|n| format!("l{n}")),
        5 => Just("..".to_owned()),
        2 => proptest::sample::select(vec![".", "", "...", "secret.txt", "outside", "ws", "workspace"]).prop_map(str::to_owned),
        1 => "[ -~\u{e9}\u{202e}]{0,6}".prop_filter("one part", |part| !part.contains('/')),
        1 => Just("n".repeat(256)),
    ];
    let start =
        proptest::sample::select(vec!["", "", "", "", "/workspace/", "/", "OUTSIDE/", "INSIDE/", "/proc/self/root/"]);
    (start, proptest::collection::vec(part, 0..7)).prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

#[derive(Debug, Clone)]
enum Made {
    Folder(String),
    File(String),
    Link(usize, String, String),
}

fn any_tree() -> impl Strategy<Value = Vec<Made>> {
    let place =
        || proptest::collection::vec(proptest::sample::select(NAMES.to_vec()), 1..4).prop_map(|parts| parts.join("/"));
    let made = prop_oneof![
        place().prop_map(Made::Folder),
        place().prop_map(Made::File),
        ((0_usize..6), prop_oneof![Just(String::new()), place()], any_path())
            .prop_map(|(n, folder, target)| Made::Link(n, folder, target)),
    ];
    proptest::collection::vec(made, 0..14)
}

fn on_host(world: &World, path: &str) -> String {
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    path.replace("OUTSIDE", &text(&world.outside)).replace("INSIDE", &text(&world.ws))
}

/// What cannot be made, because something else stands there, is left out. Only links are called `l0` … `l5`, so nothing
/// is made through one.
fn make(world: &World, tree: &[Made]) {
    for made in tree {
        let _ = match made {
            Made::Folder(place) => fs::create_dir_all(world.ws.join(place)),
            Made::File(place) => {
                let path = world.ws.join(place);
                path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, place))
            }
            Made::Link(n, folder, target) => {
                std::os::unix::fs::symlink(on_host(world, target), world.ws.join(folder).join(format!("l{n}")))
            }
        };
    }
}

/// Without the slash and the dot that may follow a file here, as they may follow a folder.
fn plain(raw: &str) -> &str {
    let mut plain = raw;
    while let Some(shorter) = plain.strip_suffix('/').or_else(|| plain.strip_suffix("/.")) {
        plain = shorter;
    }
    plain
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fuzz_path_resolver_finds_what_the_kernel_finds_or_nothing_and_nothing_outside(
        tree in any_tree(),
        paths in proptest::collection::vec(any_path(), 1..12),
    ) {
        let world = world();
        let ws = world.ws.canonicalize().expect("there");
        make(&world, &tree);
        for path in paths {
            let raw = on_host(&world, &path);
            let found = match world.table.resolve(&raw) {
                Ok(found) => found,
                Err(error) => {
                    let text = error.to_string();
                    // The caller's own words may be in it, a host path that it did not write may not.
                    let ours = world.ws.parent().and_then(Path::to_str).expect("text");
                    prop_assert!(raw.contains(ours) || !text.contains(ours), "{raw:?}: {text}");
                    continue;
                }
            };
            let name = found.path().as_str().to_owned();
            let rest = name.strip_prefix("/workspace").unwrap_or_else(|| panic!("{raw:?} is {name}"));
            prop_assert!(rest.is_empty() || rest.starts_with('/'), "{raw:?} is {name}");
            let parts: Vec<&str> = rest.split('/').skip(1).collect();
            prop_assert!(parts.iter().all(|part| !["", ".", ".."].contains(part)), "{raw:?} is {name}");
            let place = ws.join(parts.join("/"));
            if found.kind().is_some() {
                prop_assert_eq!(place.canonicalize().expect("there"), place.clone(), "{:?} goes through a link", raw);
                // The folder is called otherwise on the host, so `../workspace` means nothing there.
                if !raw.starts_with('/') && raw.split('/').all(|part| part != "workspace") {
                    prop_assert_eq!(ws.join(plain(&raw)).canonicalize().expect("there"), place.clone(), "{:?} is {}", raw, name);
                }
            }
            if found.kind() == Some(Kind::File) {
                let read = read_file(&found, 1 << 20).expect("read");
                prop_assert_eq!(&read.bytes, &fs::read(&place).expect("read"));
                prop_assert!(read.bytes != SECRET, "{raw:?} reads the secret");
            }
            // What is not there is made inside or not at all.
            if found.kind().is_none() {
                let _ = world.create(&raw, b"new");
            }
        }
        world.assert_outside_untouched();
    }
}
