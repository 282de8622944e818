//! Writing rules in Rust: each method sets one part of a [`Rule`] and gives it back.

use super::{
    script::{Action, Effect, Endpoint, Rule, TimedAction},
    wire::{ConnectionFault, ConnectionRule, CutRequest, Delivery, End, Hold, Reply, StatusReply},
};

impl Default for Rule {
    fn default() -> Self {
        Self {
            name: None,
            on: Endpoint::Any,
            skip: 0,
            times: 1,
            forever: false,
            after_ms: 0,
            cut_request: None,
            hold_effect: None,
            effect: Effect::Normal,
            early_reply: false,
            hold_reply: None,
            reply: Reply::Normal,
            delivery: Delivery::Whole,
            then: Vec::new(),
        }
    }
}

impl Rule {
    /// Treats the next request to `endpoint` as usual; the other methods say what is not.
    pub fn on(endpoint: Endpoint) -> Self {
        Self { on: endpoint, ..Self::default() }
    }

    /// Names the rule in the log.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Treats `times` requests before it is spent.
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Is never spent.
    pub fn forever(self) -> Self {
        Self { forever: true, ..self }
    }

    /// Lets `skip` matching requests pass first.
    pub fn skip(self, skip: u32) -> Self {
        Self { skip, ..self }
    }

    /// Matches nothing for the first `after_ms`.
    pub fn after_ms(self, after_ms: u64) -> Self {
        Self { after_ms, ..self }
    }

    /// Stops reading the request after exactly so many bytes.
    pub fn cut_request(self, after_bytes: u64, end: End) -> Self {
        Self { cut_request: Some(CutRequest { after_bytes, end }), ..self }
    }

    /// Delays the effect.
    pub fn hold_effect(self, hold: Hold) -> Self {
        Self { hold_effect: Some(hold), ..self }
    }

    /// Delays the reply, after the effect.
    pub fn hold_reply(self, hold: Hold) -> Self {
        Self { hold_reply: Some(hold), ..self }
    }

    /// Says what happens in the engine.
    pub fn effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Nothing happens in the engine.
    pub fn no_effect(self) -> Self {
        self.effect(Effect::None)
    }

    /// Replies, or cuts the connection, without waiting for the effect.
    pub fn early_reply(self) -> Self {
        Self { early_reply: true, ..self }
    }

    /// Says what is replied.
    pub fn reply(self, reply: Reply) -> Self {
        Self { reply, ..self }
    }

    /// Replies with an error in dockerd's form, with the engine's headers. The effect is unchanged.
    pub fn status(self, status: u16, message: impl Into<String>) -> Self {
        let message = Some(message.into());
        self.reply(Reply::Status(StatusReply { status, message, ..StatusReply::default() }))
    }

    /// Replies as a proxy does, without any header of the engine.
    pub fn proxy_status(self, status: u16, body: impl Into<String>) -> Self {
        let body = Some(body.into());
        self.reply(Reply::Status(StatusReply { status, body, proxy: true, ..StatusReply::default() }))
    }

    /// Says how much of the reply arrives.
    pub fn delivery(self, delivery: Delivery) -> Self {
        Self { delivery, ..self }
    }

    /// Ends the exchange without a byte of reply, after the effect.
    pub fn cut(self, end: End) -> Self {
        self.delivery(Delivery::Nothing { end })
    }

    /// Never answers. The effect is unchanged.
    pub fn never_answer(self) -> Self {
        self.cut(End::Stall)
    }

    /// Adds what else happens when the request arrives.
    pub fn then(self, action: Action) -> Self {
        self.then_after_ms(0, action)
    }

    /// Adds what else happens, so long after the request's arrival.
    pub fn then_after_ms(mut self, after_ms: u64, action: Action) -> Self {
        self.then.push(TimedAction { after_ms, after_effect: false, action });
        self
    }

    /// Adds what else happens, so long after the end of the effect.
    pub fn after_effect_ms(mut self, after_ms: u64, action: Action) -> Self {
        self.then.push(TimedAction { after_ms, after_effect: true, action });
        self
    }
}

impl ConnectionRule {
    /// Ends the next connection as it is accepted.
    pub fn close_at_once(end: End) -> Self {
        Self::of(ConnectionFault::CloseAtOnce { end })
    }

    /// Ends the next connection after exactly so many bytes of a request.
    pub fn cut_request(after_bytes: u64, end: End) -> Self {
        Self::of(ConnectionFault::CutRequest { after_bytes, end })
    }

    fn of(fault: ConnectionFault) -> Self {
        Self { name: None, method: None, skip: 0, times: 1, forever: false, after_ms: 0, fault }
    }

    /// Names the rule in the log.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Matches a request with this method instead of a connection.
    pub fn method(self, method: impl Into<String>) -> Self {
        Self { method: Some(method.into()), ..self }
    }

    /// Treats `times` matches before it is spent.
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Is never spent.
    pub fn forever(self) -> Self {
        Self { forever: true, ..self }
    }

    /// Lets `skip` matches pass first.
    pub fn skip(self, skip: u32) -> Self {
        Self { skip, ..self }
    }
}
