//! What arrives is what was sent, in both directions.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use kendall_remote::copy::protocol::CopyOptions;
use proptest::prelude::*;

use crate::fixture::{EVERYTHING, Fixture, names};
use crate::tree::{folder, kept, make};

#[test]
fn random_trees_arrive_whole_both_ways() {
    let fixture = Fixture::new(EVERYTHING);
    let numbers = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(tree in folder())| {
        let number = numbers.get() + 1;
        numbers.set(number);
        let original = fixture.path(&format!("here/{number}"));
        make(&original, &tree, &mut None);
        let report = fixture.upload(&original, "").unwrap();
        prop_assert_eq!(&report.failures, &Vec::<String>::new());
        let expected = kept(&original);
        prop_assert_eq!(report.entries, expected.len() as u64);
        prop_assert_eq!(&kept(&fixture.served().join(number.to_string())), &expected);

        let back = fixture.path(&format!("here/back-{number}"));
        let report = fixture.download(&number.to_string(), &back).unwrap();
        prop_assert_eq!(report.failed, 0);
        prop_assert_eq!(&kept(&back), &expected);

        // Again, over what is there.
        prop_assert_eq!(fixture.upload(&original, "").unwrap().failed, 0);
        prop_assert_eq!(&kept(&fixture.served().join(number.to_string())), &expected);
    });
}

#[test]
fn ten_thousand_small_files_arrive() {
    let fixture = Fixture::new(EVERYTHING);
    let tree = fixture.path("here/many");
    for number in 0..10_000 {
        let folder = tree.join(format!("{:02}", number % 50));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}")), vec![number as u8; number % 2000]).unwrap();
    }
    let report = fixture.upload(&tree, "copy").unwrap();
    assert_eq!((report.entries, report.failed), (10_051, 0));
    assert_eq!(kept(&fixture.served().join("copy")), kept(&tree));
    assert_eq!(names(&fixture.served()), ["copy"]);
}

#[test]
fn a_large_sparse_file_costs_what_its_data_costs() {
    let fixture = Fixture::new(EVERYTHING);
    let path = fixture.path("here/sparse");
    let file = File::create(&path).unwrap();
    file.write_all_at(b"in the middle", 50 << 30).unwrap();
    file.set_len(100 << 30).unwrap();
    let report = fixture.upload(&path, "").unwrap();
    assert_eq!((report.failed, report.bytes), (0, 100 << 30));
    let copy = fixture.served().join("sparse").metadata().unwrap();
    assert_eq!(copy.len(), 100 << 30);
    assert!(copy.blocks() < 100, "{} blocks", copy.blocks());
}

#[test]
fn a_file_replaces_a_file_whole_and_a_link_is_not_followed() {
    let fixture = Fixture::new(EVERYTHING);
    let (new, outside) = (fixture.path("here/new"), fixture.path("outside/precious"));
    fs::write(&new, "new").unwrap();
    fs::write(&outside, "precious").unwrap();
    symlink(&outside, fixture.served().join("new")).unwrap();
    // Another process that has the old file open keeps reading the old one.
    fs::write(fixture.served().join("other"), "old").unwrap();
    let old = File::open(fixture.served().join("other")).unwrap();
    assert_eq!(fixture.upload(&new, "").unwrap().failed, 0);
    assert_eq!(fixture.upload(&new, "other").unwrap().failed, 0);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
    for name in ["new", "other"] {
        assert_eq!(fs::read_to_string(fixture.served().join(name)).unwrap(), "new");
    }
    assert_eq!(std::io::read_to_string(old).unwrap(), "old");
}

#[test]
fn special_bits_are_kept_only_where_asked() {
    let fixture = Fixture::new(EVERYTHING);
    let path = fixture.path("here/program");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    let mode = |name: &str| fixture.served().join(name).metadata().unwrap().mode() & 0o7777;
    fixture.upload(&path, "plain").unwrap();
    assert_eq!(mode("plain"), 0o755);
    let options = CopyOptions { special_bits: true, sync: true, count: true, ..CopyOptions::default() };
    fixture.upload_with(&path, "special", options).unwrap();
    assert_eq!(mode("special"), 0o4755);
}

#[test]
fn what_cannot_be_copied_is_listed_and_the_rest_is_copied() {
    let fixture = Fixture::new(EVERYTHING);
    let tree = fixture.path("here/tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), "a").unwrap();
    fs::write(tree.join("z"), "z").unwrap();
    let socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    // A folder where a file should go.
    fs::create_dir_all(fixture.served().join("tree/z/inner")).unwrap();
    let report = fixture.upload(&tree, "").unwrap();
    drop(socket);
    assert_eq!(report.failed, 2);
    assert!(report.failures.iter().any(|text| text.contains("socket: it is neither a file")), "{report:?}");
    assert!(
        report.failures.iter().any(|text| text.contains("cannot write tree/z: Is a directory")),
        "{report:?}"
    );
    assert_eq!(names(&fixture.served().join("tree")), ["a", "z"]);
    let report = fixture.download("nothing", &fixture.path("here")).unwrap();
    assert_eq!(
        report.failures,
        ["cannot read nothing at the server: No such file or directory (os error 2)"]
    );
}

#[test]
fn a_file_that_changes_while_it_is_read_is_reported_and_not_put_in_place() {
    let fixture = Fixture::new(EVERYTHING);
    let path = fixture.path("here/log");
    let file = File::create(&path).unwrap();
    file.write_all_at(&vec![7; 64 << 20], 0).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut end = 64 << 20;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all_at(b"another line\n", end).unwrap();
                end += 13;
                std::thread::yield_now();
            }
        });
        let report = fixture.upload(&path, "");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        report
    });
    assert_eq!(report.unwrap().failures, ["log changed while it was read; copy it again"]);
    assert_eq!(names(&fixture.served()), [""; 0]);
}
