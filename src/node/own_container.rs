//! Which container this process runs in, and what of its files goes away with it.

use std::path::{Path, PathBuf};

use crate::model::ContainerId;

/// The mounts of this process, as proc(5) describes them.
const MOUNTINFO: &str = "/proc/self/mountinfo";

/// File systems that put a container's own layer over those of its image.
const LAYERED: &[&str] = &["overlay", "aufs", "fuse-overlayfs", "fuse.fuse-overlayfs"];

/// What container engines leave at the root of each of their containers. Its absence means nothing.
const MARKS: &[&str] = &["/.dockerenv", "/run/.containerenv"];

/// What container engines mount into each of their containers, so that they can rewrite it.
const MOUNTED: &[&str] = &["/etc/hostname", "/etc/hosts"];

/// The id of the container that this process runs in, if it does.
///
/// dockerd mounts each container's own `/etc/hostname` from a folder that is named after the container, so
/// that this holds whatever host name, pid namespace or cgroup it was given. Outside of a container nothing is
/// mounted there.
pub(super) fn own_container() -> Option<ContainerId> {
    own_container_in(&std::fs::read_to_string(MOUNTINFO).ok()?)
}

/// The kind of file system, if `path` lies in the writable layer of the container that this process runs in:
/// what is written there goes away with the container. What is still to be made counts as where it will be.
pub fn container_layer(path: &Path) -> Option<String> {
    let mountinfo = std::fs::read_to_string(MOUNTINFO).ok()?;
    let is_marked = MARKS.iter().any(|mark| Path::new(mark).exists());
    // Links resolve to where the data really goes.
    let there = path.ancestors().find_map(|above| {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        above.canonicalize().ok()
    })?;
    container_layer_in(&mountinfo, is_marked, &there).map(str::to_owned)
}

fn own_container_in(mountinfo: &str) -> Option<ContainerId> {
    mounts(mountinfo).filter(|mount| mount.point == Path::new("/etc/hostname")).find_map(|mount| {
        let mut parts = mount.root.split('/');
        parts.find_map(|part| ContainerId::new(part).ok())
    })
}

/// Being inside is not enough: the root may be a disk. A layered root is not enough either: live systems have one.
fn container_layer_in<'a>(mountinfo: &'a str, is_marked: bool, path: &Path) -> Option<&'a str> {
    let is_inside =
        is_marked || mounts(mountinfo).any(|mount| MOUNTED.iter().any(|at| mount.point == Path::new(at)));
    // The deepest mount point above the path, and of those at one point the last, which hides the others.
    let mount = mounts(mountinfo)
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())?;
    (is_inside && mount.point == Path::new("/") && LAYERED.contains(&mount.kind)).then_some(mount.kind)
}

/// A line of mountinfo.
struct Mount<'a> {
    /// What of the file system is mounted.
    root: &'a str,
    /// Where.
    point: PathBuf,
    /// The kind of file system.
    kind: &'a str,
}

/// Fields of a line: mount id, parent, device, root, mount point, options, any number of optional fields, a
/// hyphen, kind, source, …
fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Mount { root, point: unescaped(point).into(), kind: system.split(' ').next()? })
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescaped(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container of dockerd: a layered root, its own files, and a volume.
    fn docker(id: &str, kind: &str) -> String {
        format!(
            "512 499 0:52 / / rw,relatime master:204 - {kind} overlay rw,lowerdir=/var/lib/docker/overlay2/l/A\n\
             513 512 0:55 / /proc rw,nosuid - proc proc rw\n\
             530 512 254:1 /var/lib/docker/containers/{id}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n\
             531 512 254:1 /var/lib/docker/volumes/relatch/_data /data rw,relatime master:1 - ext4 /dev/vda rw\n\
             532 512 254:1 /srv/x /a\\040b rw,relatime - xfs /dev/vdb rw\n"
        )
    }

    fn layer<'a>(mountinfo: &'a str, is_marked: bool, path: &str) -> Option<&'a str> {
        container_layer_in(mountinfo, is_marked, Path::new(path))
    }

    #[test]
    fn the_container_is_read_from_its_own_mount_and_no_other() {
        let (id, other) = ("1".repeat(64), "2".repeat(64));
        assert_eq!(own_container_in(&docker(&id, "overlay")).unwrap().as_str(), id);
        let outside =
            format!("77 26 0:55 / /var/lib/docker/containers/{other}/mounts/shm rw - tmpfs shm rw\n");
        assert_eq!(own_container_in(&outside), None);
    }

    #[test]
    fn what_lies_on_a_containers_own_root_is_in_its_writable_layer() {
        for kind in LAYERED {
            let inside = docker(&"1".repeat(64), kind);
            assert_eq!(layer(&inside, false, "/var/lib/relatch"), Some(*kind), "found by its mounts");
            assert_eq!(layer(&inside, true, "/database"), Some(*kind), "/data is not above it");
        }
    }

    #[test]
    fn a_volume_is_not_in_the_writable_layer() {
        let inside = docker(&"1".repeat(64), "overlay");
        for path in ["/data", "/data/relatch/dev", "/a b/c"] {
            assert_eq!(layer(&inside, true, path), None, "{path}");
        }
    }

    #[test]
    fn a_root_that_is_a_disk_is_kept_also_where_something_marks_a_container() {
        let machine =
            "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n24 27 0:22 / /tmp rw - tmpfs tmpfs rw\n";
        for path in ["/root/.local/state/relatch/dev", "/tmp/x"] {
            assert_eq!(layer(machine, true, path), None, "{path}");
        }
    }

    #[test]
    fn a_layered_root_without_a_container_is_a_live_systems() {
        let live = "22 1 0:30 / / rw - overlay airootfs rw,upperdir=/run/upper\n";
        assert_eq!(layer(live, false, "/root/data"), None);
        assert_eq!(layer(live, true, "/root/data"), Some("overlay"));
    }

    #[test]
    fn the_last_of_two_mounts_at_one_point_counts() {
        let pivoted = "1 0 0:1 / / rw - rootfs rootfs rw\n2 1 0:52 / / rw - overlay overlay rw\n";
        assert_eq!(layer(pivoted, true, "/x"), Some("overlay"));
        let disk = "2 1 0:52 / / rw - overlay overlay rw\n3 2 254:1 / / rw - ext4 /dev/vda rw\n";
        assert_eq!(layer(disk, true, "/x"), None);
    }
}
