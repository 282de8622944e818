//! Which engine, and how it is reached: what Docker's own clients read from the environment counts here too.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;

use crate::docker::TcpOptions;

/// Where an engine is, if nothing says so.
pub(super) const DEFAULT: &str = "unix:///var/run/docker.sock";

// The flags that name an engine. (A doc comment here could take the place of the command's own.)
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DockerArgs {
    /// The Docker Engine: unix:///PATH, tcp://HOST:PORT, or https://HOST:PORT for TLS alone
    /// [default: unix:///var/run/docker.sock]
    #[arg(long, value_name = "ENDPOINT", env = "DOCKER_HOST")]
    docker: Option<String>,
    /// Reach it by TLS, with the ca.pem, cert.pem and key.pem of this folder; without one, of DOCKER_CERT_PATH.
    /// If DOCKER_TLS_VERIFY is set, as with Docker's own clients, this holds for every TCP endpoint
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    docker_tls: Option<Option<PathBuf>>,
    /// Reach another machine by TCP without TLS: whoever is on the way there, or reaches that port, is root on it
    #[arg(long, conflicts_with = "docker_tls")]
    docker_insecure: bool,
}

impl DockerArgs {
    /// The endpoint, as it was written.
    pub(super) fn endpoint(&self) -> &str {
        // Docker's clients take an empty DOCKER_HOST for none.
        self.docker.as_deref().filter(|text| !text.is_empty()).unwrap_or(DEFAULT)
    }

    /// How it is to be reached over TCP. `env` looks up a variable of the environment.
    pub(super) fn tcp(&self, env: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<TcpOptions> {
        let set = |name| env(name).filter(|value| !value.is_empty());
        let is_tcp = ["tcp://", "https://"].iter().any(|scheme| self.endpoint().starts_with(scheme));
        let certificates = match &self.docker_tls {
            Some(Some(dir)) => Some(dir.clone()),
            None if !is_tcp || set("DOCKER_TLS_VERIFY").is_none() => None,
            Some(None) | None => match set("DOCKER_CERT_PATH") {
                Some(dir) => Some(PathBuf::from(dir)),
                None => bail!(
                    "{}: TLS is asked for, but no certificates are named: name their folder with --docker-tls DIR \
                     or DOCKER_CERT_PATH",
                    self.endpoint()
                ),
            },
        };
        Ok(TcpOptions { certificates, insecure: self.docker_insecure })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        docker: DockerArgs,
    }

    /// The endpoint and how it is reached, for these arguments and this environment.
    fn read(args: &[&str], env: &[(&str, &str)]) -> (String, Result<TcpOptions, String>) {
        let args = Line::parse_from([&["relatch"], args].concat()).docker;
        let look_up = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(*value))
        };
        (args.endpoint().to_owned(), args.tcp(look_up).map_err(|error| error.to_string()))
    }

    fn with(dir: &str) -> Result<TcpOptions, String> {
        Ok(TcpOptions { certificates: Some(dir.into()), insecure: false })
    }

    const TCP: &str = "--docker=tcp://10.0.0.7:2376";

    #[test]
    fn certificates_are_taken_where_dockers_own_clients_take_them() {
        let verify = [("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/env")];
        let path_alone = [("DOCKER_CERT_PATH", "/env")];
        assert_eq!(read(&[TCP, "--docker-tls", "/certs"], &[]).1, with("/certs"));
        assert_eq!(read(&[TCP, "--docker-tls", "/certs"], &verify).1, with("/certs"), "the flag wins");
        assert_eq!(read(&[TCP], &verify).1, with("/env"));
        assert_eq!(read(&[TCP, "--docker-tls"], &path_alone).1, with("/env"));
        assert_eq!(read(&["--docker=https://10.0.0.7:2376"], &verify).1, with("/env"));
        // A path alone is no wish for TLS, and an empty variable is none.
        assert_eq!(read(&[TCP], &path_alone).1, Ok(TcpOptions::default()));
        let empty = [("DOCKER_TLS_VERIFY", ""), ("DOCKER_CERT_PATH", "/env")];
        assert_eq!(read(&[TCP], &empty).1, Ok(TcpOptions::default()));
        // Over a unix socket there is no TLS, whatever the environment says for others.
        assert_eq!(read(&["--docker=/run/docker.sock"], &verify).1, Ok(TcpOptions::default()));
    }

    #[test]
    fn tls_without_certificates_says_how_to_name_them() {
        for (args, env) in [
            (&[TCP, "--docker-tls"][..], &[][..]),
            (&[TCP][..], &[("DOCKER_TLS_VERIFY", "1")][..]),
            (&[TCP][..], &[("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "")][..]),
        ] {
            let error = read(args, env).1.unwrap_err();
            assert!(error.contains("--docker-tls DIR") && error.contains("DOCKER_CERT_PATH"), "{error}");
        }
    }

    #[test]
    fn an_empty_endpoint_is_the_default_one() {
        assert_eq!(read(&["--docker="], &[]).0, DEFAULT);
        assert_eq!(read(&["--docker=tcp://localhost:1"], &[]).0, "tcp://localhost:1");
        let insecure = TcpOptions { certificates: None, insecure: true };
        assert_eq!(read(&[TCP, "--docker-insecure"], &[]).1, Ok(insecure));
        assert!(Line::try_parse_from(["relatch", TCP, "--docker-insecure", "--docker-tls", "/c"]).is_err());
    }
}
