-- Postpones a claimed interaction. ARGV: its position, number of earlier claims, wait in microseconds.
if redis.call('HGET', INBOX_ATTEMPTS, ARGV[1]) ~= tostring(tonumber(ARGV[2]) + 1) then
  return 0 -- it was removed, or claimed again
end
redis.call('ZADD', INBOX, 'XX', server_time() + tonumber(ARGV[3]), ARGV[1])
hint()
return 1
