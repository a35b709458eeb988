//! Asking a person: what an ask shows and what an approval is bound to, what was remembered of earlier answers, asks in
//! the middle of a call, and asks of child sessions.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod binding;
pub(crate) mod explain;
pub(crate) mod grants;
pub(crate) mod lineage;
pub(crate) mod midway;
pub(crate) mod path_rules;
pub(crate) mod rule_requests;
pub(crate) mod withdraw;
