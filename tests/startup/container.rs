//! `relatch dev` in a container of a real dockerd: data in the container's own layer is refused, a volume is not.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::dockerd::{Dockerd, unique_name};
use crate::support::node::wait_for;

const IMAGE: &str = "relatch-itself:1";

/// The engine, with an image that has the binary under test and what it is linked with, and nothing else.
fn engine() -> Dockerd {
    let docker = Dockerd::own();
    let layered = ["overlay2", "fuse-overlayfs", "aufs", "overlay"];
    let driver = docker.docker(&["info", "--format", "{{.Driver}}"]);
    assert!(
        layered.contains(&driver.as_str()),
        "this test needs an engine whose containers have a layered root, and {driver} is none: have a temporary \
         folder on ext4 or XFS"
    );
    let root = docker.folder().join("itself");
    let binary = Path::new(env!("CARGO_BIN_EXE_relatch"));
    copy(binary, &root.join("relatch"));
    let linked = Command::new("ldd").arg(binary).output().expect("running ldd");
    let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
    let libraries: Vec<&str> = linked.split_whitespace().filter(|word| word.starts_with('/')).collect();
    assert!(libraries.iter().any(|library| library.contains("libc.so")), "ldd said {linked}");
    for library in libraries {
        copy(Path::new(library), &root.join(library.trim_start_matches('/')));
    }
    let archive = docker.folder().join("itself.tar");
    let packed = Command::new("tar")
        .arg("--create")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(&root)
        .arg(".")
        .status();
    assert!(packed.expect("running tar").success(), "tar failed");
    docker.docker(&["import", archive.to_str().unwrap(), IMAGE]);
    docker
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).expect("making a folder of the image");
    std::fs::copy(from, to).unwrap_or_else(|error| panic!("copying {}: {error}", from.display()));
}

/// `docker run … IMAGE /relatch ARGS`, beside the engine that it is to serve.
fn relatch(docker: &Dockerd, options: &[&str], args: &[&str]) -> Output {
    let engine = format!("{}:/run/engine", docker.folder().display());
    let mut all = vec!["run", "--network", "none", "--volume", &engine];
    all.extend(options);
    all.extend([IMAGE, "/relatch"]);
    all.extend(args);
    all.extend([
        "--listen",
        "127.0.0.1:0",
        "--docker",
        "unix:///run/engine/docker.sock",
        "--data-dir",
        "/data/dev",
    ]);
    docker.try_docker(&all)
}

/// Starts it, waits until it serves and the engine has answered, and ends it in order.
fn serves(docker: &Dockerd, options: &[&str], args: &[&str]) {
    let name = unique_name("relatch");
    let mut all = vec!["--detach", "--name", &name];
    all.extend(options);
    let output = relatch(docker, &all, args);
    assert!(output.status.success(), "{output:?}");
    wait_for("the node to serve", || {
        let Output { stdout, stderr, .. } = docker.try_docker(&["logs", &name]);
        let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let serves = said.contains("relatch serves clients on") && said.contains("answered");
        if serves { Ok(()) } else { Err(said) }
    });
    docker.docker(&["stop", "--time", "60", &name]);
    let exit = docker.inspect(&name)["State"]["ExitCode"].clone();
    assert_eq!(exit, 0, "it ends in order");
    docker.rm(&name);
}

#[test]
fn a_containers_own_layer_is_no_place_for_data_and_a_volume_is() {
    let docker = engine();
    let refused = relatch(&docker, &["--rm"], &["dev"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    for text in ["/data/dev", "writable layer", "--ephemeral-data", "docker run -v"] {
        assert!(said.contains(text), "{text} is not in {said}");
    }

    let doctor = relatch(&docker, &["--rm"], &["-o", "json", "doctor"]);
    let said: Value = serde_json::from_slice(&doctor.stdout).unwrap_or_else(|no| panic!("{no}: {doctor:?}"));
    let layer = said["checks"].as_array().unwrap().iter().find(|check| check["name"] == "container-layer");
    assert_eq!(layer.unwrap()["status"], "fail", "{said:#}");
    assert_eq!(doctor.status.code(), Some(1), "{said:#}");

    serves(&docker, &[], &["dev", "--ephemeral-data"]);
    serves(&docker, &["--volume", "kept:/data"], &["dev"]);
    // A second container goes on with what the first one kept.
    serves(&docker, &["--volume", "kept:/data"], &["dev"]);
}
