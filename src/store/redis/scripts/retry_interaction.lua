-- Leaves a claimed interaction alone for a while. ARGV: its position, how often it was claimed before, microseconds.
if redis.call('HGET', INBOX_ATTEMPTS, ARGV[1]) ~= tostring(tonumber(ARGV[2]) + 1) then
  return 0 -- it is gone, or somebody else has it
end
redis.call('ZADD', INBOX, 'XX', server_time() + tonumber(ARGV[3]), ARGV[1])
return 1
