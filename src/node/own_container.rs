//! Which container this process runs in.

use crate::model::ContainerId;

/// The id of the container that this process runs in, if it does.
///
/// dockerd mounts each container's own `/etc/hostname` from a folder that is named after the container, so
/// that this holds whatever host name, pid namespace or cgroup it was given. Outside of a container nothing is
/// mounted there.
pub(super) fn own_container() -> Option<ContainerId> {
    own_container_in(&std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// Fields of a line, as proc(5) has them: mount id, parent, device, root, mount point, …
fn own_container_in(mountinfo: &str) -> Option<ContainerId> {
    mountinfo.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        let ids = || root.split('/').find_map(|part| ContainerId::new(part).ok());
        (mount_point == "/etc/hostname").then(ids).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_container_is_read_from_its_own_mount_and_no_other() {
        let id = "1".repeat(64);
        let other = "2".repeat(64);
        let inside = format!(
            "512 499 0:52 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/{other}/diff\n\
             530 512 254:1 /var/lib/docker/containers/{id}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n"
        );
        assert_eq!(own_container_in(&inside).unwrap().as_str(), id);
        let outside =
            format!("77 26 0:55 / /var/lib/docker/containers/{other}/mounts/shm rw - tmpfs shm rw\n");
        assert_eq!(own_container_in(&outside), None);
    }
}
