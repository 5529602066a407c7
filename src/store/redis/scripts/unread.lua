-- Reads the mailbox without a lease. ARGV: position after which to read.
return messages_after(tonumber(ARGV[1]))
