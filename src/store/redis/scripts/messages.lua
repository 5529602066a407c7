-- Reads the mailbox with a lease. ARGV: worker, fence, position after which to read.
if not holds(ARGV[1], ARGV[2]) then
  return false
end
return messages_after(tonumber(ARGV[3]))
