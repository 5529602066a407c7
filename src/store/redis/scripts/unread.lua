-- Reads the mailbox without a lease.
return messages_after(0)
