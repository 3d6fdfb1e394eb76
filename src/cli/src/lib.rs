//! picket: the operator's command.
