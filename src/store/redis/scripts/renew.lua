-- Extends a lease. ARGV: thread, worker, fence, ttl in microseconds.
if not holds(ARGV[2], ARGV[3]) then
  return 0
end
redis.call('ZADD', READY, server_time() + tonumber(ARGV[4]), ARGV[1])
return 1
