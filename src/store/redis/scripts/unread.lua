-- Reads the mailbox without a lease.
return letters_after(0)
