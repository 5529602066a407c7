-- Leases a thread if it is ready. ARGV: thread, worker, ttl in microseconds, now in milliseconds (people).
-- A wait before a retry ends by the people's clock; everything else uses the server's clock.
local thread, worker, ttl, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local server_now = server_time()
local ready = redis.call('ZSCORE', READY, thread)
local waiting = redis.call('ZSCORE', WAITING, thread)
if not (ready and tonumber(ready) <= server_now) and not (waiting and tonumber(waiting) <= now) then
  return false
end

redis.call('ZADD', READY, server_now + ttl, thread)
redis.call('ZREM', WAITING, thread)
local fence = redis.call('HINCRBY', META, 'fence', 1)
redis.call('HSET', META, 'worker', worker)
local version, snapshot, steps = saved()
local meta = redis.call('HMGET', META, 'graph', 'audit_seq', 'audit_hash')
return {fence, version, snapshot, steps, messages_after(0), meta}
