//! How the bot behaves among people, whatever anybody writes: nobody is called, nothing leads astray, nothing is refused,
//! nobody is flooded, and it asks for no permission that it does not need.

mod hostile;
mod judge;
mod pace;
mod scopes;
mod words;
