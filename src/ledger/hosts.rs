//! Hosts: name, engine and dispatcher, bound one to one.

use super::apply::Ledger;
use super::command::BindHost;
use super::outcome::{Outcome, Rejection};
use super::record::Host;
use crate::model::HostName;

impl Ledger {
    /// Name and engine cannot change while a run is open there. A new dispatcher of the same engine may be
    /// bound: open runs keep the journal that they name.
    pub(super) fn bind_host(&mut self, command: BindHost) -> Outcome {
        let taken =
            self.hosts().find(|host| host.name != command.host && host.engine_id == command.engine_id);
        if let Some(host) = taken {
            let detail = format!("engine {} is bound to host {}", command.engine_id, host.name);
            return Outcome::Rejected(Rejection::Invalid { detail });
        }
        if let Some(host) = self.host(&command.host)
            && host.engine_id != command.engine_id
            && let Some(run) = self.open_runs().find(|run| *run.target.host() == command.host)
        {
            let detail = format!(
                "host {} is bound to engine {} while run {} is open there",
                host.name, host.engine_id, run.id
            );
            return Outcome::Rejected(Rejection::Invalid { detail });
        }
        let host = Host { name: command.host, engine_id: command.engine_id, dispatcher: command.dispatcher };
        self.put_host(host);
        Outcome::Done
    }

    /// Forgets a host on which nothing is open or quarantined. Attempts are charged to engine and container,
    /// and stay (invariant 9).
    pub(super) fn remove_host(&mut self, name: &HostName) -> Outcome {
        let standing = self.open_runs().chain(self.quarantined_runs());
        if let Some(run) = standing.into_iter().find(|run| run.target.host() == name) {
            let detail = format!("host {name} cannot be removed: run {} stands there", run.id);
            return Outcome::Rejected(Rejection::Invalid { detail });
        }
        if self.host(name).is_none() {
            let detail = format!("host {name} is not bound");
            return Outcome::Rejected(Rejection::Invalid { detail });
        }
        self.forget_host(name);
        Outcome::Done
    }
}
