//! What the ledger says of an exchange: an interlock is committed, and nothing else is known but this.

use relatch::ledger::{
    ANONYMOUS, Baseline, BindHost, Command, Diagnosis, DispatcherRef, EntryPosition, Guard, Ledger,
    OpenInterlock, Proposer, RULES_LEVEL, RecordExchange, Request, Run, Stamped,
};
use relatch::model::{
    ClusterId, ClusterTime, ContainerId, ContainerState, EngineId, EngineInstant, Exchange, Grace,
    GraceSource, Health, HostName, Incarnation, JournalId, JournalPosition, LogIndex, NodeId, ProcessNonce,
    RunId, Target, Term, WallTime,
};

use crate::looks::id;

/// The run whose restart ended so, with the guards of this process.
pub fn judged(exchange: &Exchange) -> Run {
    let cluster = ClusterId::new("c".repeat(32)).expect("an id");
    let journal = JournalPosition { journal: JournalId::new("a".repeat(32)).expect("an id"), sequence: 5 };
    let dispatcher = DispatcherRef { guard: Guard::Agent, journal: journal.clone() };
    let run = RunId::new("1".repeat(32)).expect("an id");
    let engine_id = EngineId::new("WIRE").expect("an id");
    let incarnation = Incarnation {
        engine_id: engine_id.clone(),
        container_id: ContainerId::new(id(1)).expect("an id"),
        started_at: EngineInstant::new(100, 500).expect("an instant"),
    };
    let open = OpenInterlock {
        run: run.clone(),
        request: Request {
            id: None,
            caller: ANONYMOUS.to_owned(),
            by: None,
            digest: "00".to_owned(),
            reason: "test".to_owned(),
            spelling: "local/web-1".to_owned(),
        },
        target: Target::parse("local/web-1").expect("a target"),
        baseline: Baseline {
            incarnation,
            name: "web-1".to_owned(),
            state: ContainerState::Running,
            health: Health::None,
            health_check: None,
        },
        expect: None,
        grace: Grace { seconds: 10, source: GraceSource::Policy },
        diagnosis: Diagnosis::Callers,
        proposer: Proposer { node: NodeId(1), nonce: ProcessNonce::new("d".repeat(32)).expect("a nonce") },
        dispatcher: dispatcher.clone(),
        term: Term(1),
    };
    let record = RecordExchange { run: run.clone(), start: None, journal, exchange: exchange.clone() };
    let host = HostName::new("local").expect("a name");
    let mut ledger = Ledger::new(cluster, relatch::env::holes().expect("a hole that exists"));
    for (index, command) in [
        Command::RaiseRulesLevel { level: RULES_LEVEL },
        Command::BindHost(BindHost { host, engine_id, dispatcher }),
        Command::OpenInterlock(Box::new(open)),
        Command::RecordExchange(Box::new(record)),
    ]
    .into_iter()
    .enumerate()
    {
        let level = command.level().max(ledger.rules_level());
        let position = EntryPosition { term: Term(1), index: LogIndex(index as u64 + 1) };
        let stamped = Stamped { level, clock: ClusterTime(0), wall: WallTime(0), node: NodeId(1), command };
        ledger.apply(position, stamped).expect("an entry that applies");
    }
    ledger.run(&run).expect("the run is there").clone()
}
