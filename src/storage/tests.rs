//! What a database and a flusher must hold to, shown on real files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use super::{Batch, Database, Flusher, StorageError};

const FAMILY: &str = "things_v1";
const POINT: &str = "things_written";
const SYNC: &str = "sync-things";

fn open(path: &Path) -> Database {
    try_open(path).unwrap()
}

fn try_open(path: &Path) -> Result<Database, StorageError> {
    Database::open(path, &[FAMILY])
}

fn put(key: &str, value: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(FAMILY, key, value);
    batch
}

fn value(database: &Database, key: &str) -> Option<String> {
    database.get(FAMILY, key).unwrap().map(|value| String::from_utf8(value).unwrap())
}

/// The newest write-ahead log of the database at `path`.
fn wal(path: &Path) -> PathBuf {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|e| e == "log"));
    logs.filter(|file| file.metadata().unwrap().len() > 0).max().expect("there is a write-ahead log")
}

fn position_of(content: &[u8], text: &str) -> usize {
    content.windows(text.len()).position(|window| window == text.as_bytes()).expect("the text is in the file")
}

/// 100 records whose values can be found in the file.
fn filled(path: &Path) {
    let database = open(path);
    for n in 0..100 {
        database.write_synced(SYNC, put(&format!("{n:03}"), &format!("value-{n:03}"))).unwrap();
    }
}

#[test]
fn what_was_written_is_there_after_a_reopen() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let database = open(folder.path());
    assert_eq!(value(&database, "042").as_deref(), Some("value-042"));
    assert_eq!(database.first(FAMILY).unwrap().unwrap().0, "000");
    assert_eq!(database.last(FAMILY).unwrap().unwrap().0, "099");
    let keys: Vec<String> =
        database.range(FAMILY, "010".."013").unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["010", "011", "012"]);
}

#[test]
fn a_batch_takes_place_as_a_whole_and_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut batch = put("b", "old");
    batch.delete_range(FAMILY, "a", "c");
    batch.put(FAMILY, "a", "new");
    batch.delete(FAMILY, "missing");
    database.write(batch).unwrap();
    assert_eq!(value(&database, "a").as_deref(), Some("new"));
    assert_eq!(value(&database, "b"), None);
}

#[test]
fn a_view_does_not_show_what_is_written_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    database.write(put("a", "before")).unwrap();
    let view = database.view();
    database.write(put("a", "after")).unwrap();
    database.write(put("b", "after")).unwrap();
    assert_eq!(view.get(FAMILY, "a").unwrap().unwrap(), b"before");
    assert_eq!(view.entries(FAMILY).unwrap().count(), 1);
}

#[test]
fn decoded_entries_come_in_the_order_of_their_keys_however_many_threads_decode() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut batch = Batch::new();
    let keys: Vec<String> = (0..5_000).map(|n| format!("{n:05}")).collect();
    for key in &keys {
        batch.put(FAMILY, key, format!("value-{key}"));
    }
    database.write(batch).unwrap();
    let view = database.view();
    let decode = |key: String, value: Vec<u8>| {
        assert_eq!(value, format!("value-{key}").as_bytes());
        Ok::<_, StorageError>(key)
    };
    let mut taken = Vec::new();
    view.decoded(FAMILY, decode, |key| {
        taken.push(key);
        Ok(())
    })
    .unwrap();
    assert_eq!(taken, keys);
    let refused = |key: String, _: Vec<u8>| match key.as_str() {
        "00017" | "04999" => Err(StorageError::failed("decoding", folder.path(), key)),
        _ => Ok(()),
    };
    let error = view.decoded(FAMILY, refused, Ok).unwrap_err();
    assert!(error.to_string().contains("00017"), "the first of them is told: {error}");
    let take = |key: String| Err(StorageError::failed("taking", folder.path(), key));
    let error = view.decoded(FAMILY, decode, take).unwrap_err();
    assert!(error.to_string().contains("taking") && error.to_string().contains("00000"), "{error}");
}

#[test]
fn a_flipped_byte_in_the_middle_of_the_log_is_refused_and_not_skipped() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let wal = wal(folder.path());
    let mut content = fs::read(&wal).unwrap();
    let at = position_of(&content, "value-050");
    content[at] ^= 0x01;
    fs::write(&wal, content).unwrap();
    let error = try_open(folder.path()).expect_err("a database with a flipped byte was opened");
    println!("{error}");
    assert!(
        matches!(&error, StorageError::Damaged { path, offset, .. } if *path == wal && *offset <= at as u64),
        "{error}"
    );
}

#[test]
fn a_torn_last_record_is_dropped_and_nothing_before_it() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let wal = wal(folder.path());
    let content = fs::read(&wal).unwrap();
    fs::write(&wal, &content[..content.len() - 5]).unwrap();
    let database = open(folder.path());
    assert_eq!(value(&database, "098").as_deref(), Some("value-098"));
    assert_eq!(value(&database, "099"), None);
    // And the repair holds: what is written from here on is found after the next start.
    database.write_synced(SYNC, put("099", "again")).unwrap();
    drop(database);
    assert_eq!(value(&open(folder.path()), "099").as_deref(), Some("again"));
}

/// What was in it is in tables, and only a later loss of power has brought its name back.
#[test]
fn an_old_log_that_is_needed_no_more_may_be_torn() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let old = wal(folder.path());
    let content = fs::read(&old).unwrap();
    let database = open(folder.path());
    database.write_synced(SYNC, put("100", "later")).unwrap();
    drop(database);
    assert_ne!(wal(folder.path()), old);
    for torn in [content[..content.len() - 5].to_vec(), [&content[..content.len() - 5], &[0; 64]].concat()] {
        fs::write(&old, torn).unwrap();
        let database = open(folder.path());
        assert_eq!(value(&database, "099").as_deref(), Some("value-099"));
        assert_eq!(value(&database, "100").as_deref(), Some("later"));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let file = entry.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// The files that hold data, or say which do.
fn data(path: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
    let is_data = |name: &str| {
        name == "CURRENT" || name.starts_with("MANIFEST") || name.ends_with(".sst") || name.ends_with(".log")
    };
    named.filter(|(name, _)| is_data(name)).map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

#[test]
fn a_cut_log_of_files_is_left_as_it_was_where_the_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound");
    filled(&sound);
    open(&sound).write_synced(SYNC, put("100", "later")).unwrap();
    let manifest = fs::read_to_string(sound.join("CURRENT")).unwrap().trim_end().to_owned();
    let whole = fs::read(sound.join(&manifest)).unwrap();
    let mut refused = 0;
    for (nth, length) in (1..whole.len()).step_by(whole.len() / 40).enumerate() {
        let path = folder.path().join(nth.to_string());
        copy(&sound, &path);
        let cut = fs::File::options().write(true).open(path.join(&manifest)).unwrap();
        cut.set_len(length as u64).unwrap();
        if nth % 2 == 0 {
            cut.set_len(length as u64 + 100).unwrap();
        }
        let before = data(&path);
        if let Err(error) = try_open(&path) {
            refused += 1;
            assert!(error.to_string().contains("restore this directory"), "{length}: {error}");
            assert!(data(&path) == before, "{length}: {error}: and it was changed");
        }
    }
    println!("{refused} refused");
    assert!(refused > 5, "{refused} refused");
}

#[test]
fn the_guards_against_lost_writes_are_on_in_what_rocksdb_says_of_itself() {
    let folder = tempfile::tempdir().unwrap();
    let _database = open(folder.path());
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let options = files.filter(|f| f.file_name().unwrap().to_string_lossy().starts_with("OPTIONS-")).max();
    let options = fs::read_to_string(options.expect("there is an OPTIONS file")).unwrap();
    for set in [
        "wal_recovery_mode=kTolerateCorruptedTailRecords",
        "track_and_verify_wals=true",
        "paranoid_checks=true",
        "manual_wal_flush=false",
    ] {
        assert!(options.contains(set), "{set} is not in\n{options}");
    }
}

#[test]
fn zeros_past_the_last_record_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let wal = wal(folder.path());
    let mut content = fs::read(&wal).unwrap();
    content.extend([0; 4096]);
    fs::write(&wal, content).unwrap();
    assert_eq!(value(&open(folder.path()), "099").as_deref(), Some("value-099"));
}

#[test]
fn a_family_of_another_format_is_refused_and_not_ignored() {
    let folder = tempfile::tempdir().unwrap();
    drop(Database::open(folder.path(), &[FAMILY, "things_v2"]).unwrap());
    let error = try_open(folder.path()).expect_err("a newer family was ignored");
    assert!(error.to_string().contains("things_v2"), "{error}");
}

#[test]
fn a_database_that_is_open_cannot_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path());
    assert!(try_open(folder.path()).is_err());
}

#[tokio::test]
async fn gone_resolves_once_the_last_handle_is_dropped_and_the_files_are_free() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let (gone, other) = (database.gone(), database.clone());
    drop(database);
    tokio::spawn(async move { drop(other) });
    gone.wait().await;
    open(folder.path());
}

#[test]
fn the_first_failure_is_latched_and_fails_everything_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    database.write_synced(SYNC, put("a", "1")).unwrap();
    let failed = database.failed();
    assert_eq!(*failed.borrow(), None);

    database.let_syncs_fail();
    let first = database.write_synced(SYNC, put("b", "2")).unwrap_err();
    assert!(matches!(first, StorageError::Failed { verb: "syncing", .. }), "{first}");
    assert_eq!(*failed.borrow(), Some(first.to_string()));

    let latched = [
        database.write(put("c", "3")).unwrap_err(),
        database.sync(SYNC).unwrap_err(),
        database.get(FAMILY, "a").unwrap_err(),
        database.range(FAMILY, "a".."z").unwrap_err(),
        database.last(FAMILY).unwrap_err(),
        database.view().get(FAMILY, "a").unwrap_err(),
    ];
    for error in latched {
        assert!(matches!(&error, StorageError::Latched { .. }), "{error}");
        assert!(error.to_string().contains("injected"), "it names the first failure: {error}");
    }
    assert_eq!(*failed.borrow(), Some(first.to_string()), "the first failure stays");
}

/// A flusher whose thread is held in the callback of a first append, and what lets it go.
fn held(database: &Database) -> (Flusher, mpsc::Sender<()>) {
    let flusher = Flusher::start(database.clone()).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (entered, has_entered) = mpsc::channel();
    flusher
        .append(POINT, put("first", "0"), move |result| {
            result.unwrap();
            entered.send(()).unwrap();
            let _ = released.recv();
        })
        .unwrap();
    has_entered.recv().unwrap();
    (flusher, release)
}

#[test]
fn appends_that_gather_during_one_sync_share_the_next_and_are_told_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let (flusher, release) = held(&database);
    let before = database.syncs();
    let told = Arc::new(Mutex::new(Vec::new()));
    for n in 0..100 {
        let told = Arc::clone(&told);
        flusher
            .append(POINT, put(&format!("{n}"), "x"), move |result| told.lock().unwrap().push((n, result)))
            .unwrap();
        assert!(value(&database, &format!("{n}")).is_some(), "an append is readable when it returns");
    }
    assert!(told.lock().unwrap().is_empty(), "nobody is told before the sync");
    release.send(()).unwrap();
    drop(flusher);
    let told = told.lock().unwrap();
    assert_eq!(*told, (0..100).map(|n| (n, Ok(()))).collect::<Vec<_>>());
    assert_eq!(database.syncs() - before, 1, "100 appends, one sync");
}

#[test]
fn concurrent_appends_are_all_told_with_fewer_syncs_than_appends() {
    const THREADS: usize = 8;
    const EACH: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let flusher = Flusher::start(database.clone()).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (flusher, told) = (&flusher, Arc::clone(&told));
            scope.spawn(move || {
                for n in 0..EACH {
                    let told = Arc::clone(&told);
                    let done = move |result: Result<(), StorageError>| {
                        result.unwrap();
                        told.lock().unwrap().push((thread, n));
                    };
                    flusher.append(POINT, put(&format!("{thread}/{n}"), "x"), done).unwrap();
                }
            });
        }
    });
    drop(flusher);
    let told = told.lock().unwrap();
    let syncs = database.syncs();
    println!("{} appends, {syncs} syncs", told.len());
    assert_eq!(told.len(), THREADS * EACH);
    for thread in 0..THREADS {
        let order: Vec<usize> = told.iter().filter(|(t, _)| *t == thread).map(|(_, n)| *n).collect();
        assert!(order.is_sorted(), "thread {thread} was told out of order");
    }
    assert!(syncs < (THREADS * EACH) as u64, "{syncs} syncs");
}

#[test]
fn a_failed_sync_fails_every_append_that_waits_and_every_one_after() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let (flusher, release) = held(&database);
    let told = Arc::new(Mutex::new(Vec::new()));
    for n in 0..3 {
        let told = Arc::clone(&told);
        flusher
            .append(POINT, put(&format!("{n}"), "x"), move |result| told.lock().unwrap().push(result))
            .unwrap();
    }
    database.let_syncs_fail();
    release.send(()).unwrap();
    let after = loop {
        // Refused from the moment on at which the flusher saw the failure.
        match flusher.append(POINT, put("after", "x"), |_| ()) {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(matches!(after, StorageError::Latched { .. }), "{after}");
    drop(flusher);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(Result::is_err), "{told:?}");
}

#[tokio::test]
async fn an_append_that_is_awaited_is_durable_when_it_returns() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let flusher = Flusher::start(database.clone()).unwrap();
    flusher.append_and_wait(POINT, put("a", "1")).await.unwrap();
    assert_eq!(database.syncs(), 1);
    database.let_syncs_fail();
    assert!(flusher.append_and_wait(POINT, put("b", "2")).await.is_err());
}

/// RocksDB itself begins anew there, and deletes the tables at the start after that.
#[test]
fn a_database_whose_list_of_files_is_gone_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut batch = Batch::new();
    batch.put(FAMILY, "key", "value");
    database.write_synced("sync-test", batch).unwrap();
    drop(database);
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let current = folder.path().join("CURRENT");
    let named = std::fs::read_to_string(&current).unwrap();
    std::fs::remove_file(&current).unwrap();
    let before = files();
    for _ in 0..2 {
        let error = Database::open(folder.path(), &[FAMILY]).unwrap_err();
        assert!(error.to_string().contains("CURRENT"), "{error}");
        assert_eq!(files(), before);
    }
    // So it is where it names one that is gone.
    std::fs::write(&current, "MANIFEST-999999\n").unwrap();
    Database::open(folder.path(), &[FAMILY]).unwrap_err();
    std::fs::write(&current, named).unwrap();
    let value = open(folder.path()).get(FAMILY, "key").unwrap();
    assert_eq!(value.as_deref(), Some(b"value".as_slice()));
}

/// RocksDB goes round for ever in such a record, if it reads it.
#[test]
fn a_flipped_bit_in_the_kind_of_a_manifests_record_is_damage_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    drop(open(folder.path()));
    let name = std::fs::read_to_string(folder.path().join("CURRENT")).unwrap();
    let manifest = folder.path().join(name.trim_end());
    let whole = std::fs::read(&manifest).unwrap();
    // A record's kind stands behind its checksum and its length.
    let mut kinds = Vec::new();
    let mut at = 0;
    while at + 7 <= whole.len() {
        kinds.push(at + 6);
        at += 7 + usize::from(u16::from_le_bytes([whole[at + 4], whole[at + 5]]));
    }
    assert!(kinds.len() > 1, "{kinds:?}");
    for kind in kinds {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[kind] ^= 1 << bit;
            std::fs::write(&manifest, &flipped).unwrap();
            let error = Database::open(folder.path(), &[FAMILY]).unwrap_err();
            assert!(matches!(error, StorageError::Damaged { .. }), "byte {kind}, bit {bit}: {error}");
            assert_eq!(std::fs::read(&manifest).unwrap(), flipped, "it is left as it is");
        }
    }
}
