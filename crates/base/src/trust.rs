//! Who stands behind a piece of content.

use serde::{Deserialize, Serialize};

/// Trust labels stick: whatever is made from untrusted content is untrusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Made by Portcullis itself: codes, exit codes, sizes.
    RuntimeFact,
    /// Everything a tool, file, page, process, server, subagent or artifact produced.
    ToolOutputUntrusted,
    UserInput,
    OperatorPolicy,
}

impl Trust {
    /// The label of something composed of two parts: untrusted wins, else the weaker authority.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        use Trust::{OperatorPolicy, RuntimeFact, ToolOutputUntrusted, UserInput};
        match (self, other) {
            (ToolOutputUntrusted, _) | (_, ToolOutputUntrusted) => ToolOutputUntrusted,
            (UserInput, _) | (_, UserInput) => UserInput,
            (OperatorPolicy, _) | (_, OperatorPolicy) => OperatorPolicy,
            (RuntimeFact, RuntimeFact) => RuntimeFact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Trust::{OperatorPolicy, RuntimeFact, ToolOutputUntrusted, UserInput};

    #[test]
    fn l67_labels_never_rise_through_composition() {
        let all = [RuntimeFact, OperatorPolicy, UserInput, ToolOutputUntrusted];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.and(*b), all[i.max(j)], "{a:?} with {b:?}");
            }
        }
    }
}
