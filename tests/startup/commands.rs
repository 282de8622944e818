//! The command line beside the nodes.

use crate::World;
use crate::process::run;
use crate::support::node::{Node, relatch};

#[test]
fn each_shell_gets_its_completions() {
    for (shell, sign) in
        [("bash", "_relatch()"), ("zsh", "#compdef relatch"), ("fish", "complete -c relatch")]
    {
        let (exit, script, said) = run(&["completions", shell]);
        assert!(exit == 0 && script.contains(sign), "{shell}: {said}{script}");
        for command in ["doctor", "recover", "completions"] {
            assert!(script.contains(command), "{shell} does not complete {command}");
        }
    }
    let (exit, _, said) = run(&["completions", "tcsh"]);
    assert!(exit == 2 && said.contains("bash"), "{said}");
}

/// bash itself reads them, and completes by them.
#[test]
fn bash_completes_a_command_by_its_script() {
    let (_, script, _) = run(&["completions", "bash"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("relatch.bash");
    std::fs::write(&file, script).unwrap();
    let asked = format!(
        ". {}; COMP_WORDS=(relatch doc); COMP_CWORD=1; _relatch relatch doc relatch; echo \"${{COMPREPLY[*]}}\"",
        file.display()
    );
    let output = std::process::Command::new("bash").args(["--norc", "-c", &asked]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "doctor", "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_named_before_or_after_the_command_or_by_the_environment() {
    let world = World::new().await;
    let node = Node::start(&world.options);
    let addr = node.addr();
    for args in [
        &["--addr", addr, "runs", "list"][..],
        &["runs", "list", "--addr", addr],
        &["runs", "--addr", addr, "list"],
    ] {
        let (exit, said, error) = run(args);
        assert!(exit == 0 && said.contains("no runs"), "{args:?}: {said}{error}");
    }
    let output = relatch().args(["runs", "list"]).env("RELATCH_ADDR", addr).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = relatch().args(["runs", "list"]).env("RELATCH_ADDR", "nonsense").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    node.stop();
}

#[test]
fn commands_that_ask_no_node_do_not_offer_to() {
    for command in ["dev", "doctor", "completions", "demo"] {
        let (exit, help, _) = run(&[command, "--help"]);
        assert!(exit == 0 && !help.contains("--addr"), "{command}: {help}");
        let (exit, _, said) = run(&["--addr", "127.0.0.1:1", command, "--help"]);
        assert!(exit == 0 || said.contains("--addr"), "{command}: {said}");
    }
    for command in [&["recover", "--help"][..], &["runs", "list", "--help"]] {
        let (_, help, _) = run(command);
        assert!(help.contains("--addr") && help.contains("RELATCH_ADDR"), "{command:?}: {help}");
    }
    let (exit, _, said) = run(&["--addr", "127.0.0.1:1", "doctor"]);
    assert!(exit == 2 && said.contains("commands that ask a node"), "{said}");
}
