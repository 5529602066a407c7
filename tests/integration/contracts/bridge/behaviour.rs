//! Behaviour that the recordings do not show: faults on demand, jobs that are held, and models that react.

