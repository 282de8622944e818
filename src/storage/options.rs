//! How RocksDB is opened.

use rocksdb::{DBRecoveryMode, Options};

use super::error::StorageError;

/// The state of one node is small and every write is precious, so: little memory, every check on.
pub(super) fn database_options(path: &std::path::Path) -> Result<Options, StorageError> {
    let mut options = Options::default();
    // Each new log file names its predecessor's end. Without it, a power loss just after a switch of log
    // files could leave the newer file's records and lose the older one's tail: a hole that no other check sees.
    options
        .get_options_from_string("track_and_verify_wals=true")
        .map_err(|error| StorageError::failed("configuring", path, error))
        .map(|verified| options = verified)?;

    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // The default (point in time) silently drops all that follows a flipped byte, acknowledged writes
    // included. This mode drops a torn tail, which nobody was told of, and refuses everything else.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_paranoid_checks(true);

    options.set_write_buffer_size(4 << 20);
    options.set_db_write_buffer_size(16 << 20);
    options.set_max_total_wal_size(64 << 20);
    options.set_max_background_jobs(2);
    options.set_max_open_files(128);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    options.set_log_level(rocksdb::LogLevel::Warn);
    options.set_stats_dump_period_sec(0);
    Ok(options)
}
