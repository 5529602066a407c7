-- Stores a message for a thread. ARGV: thread, time in milliseconds (people), 1 if the bot is addressed or '', message,
-- the text after the position in PARKED, graph of a new thread, the worker that leases the thread or '', ttl of the lease
-- in microseconds, now in milliseconds (people), deduplication keys. Returns what became of the message, its position,
-- and the leased thread or false.
local thread, at, addressed, message, parked, graph = ARGV[1], ARGV[2], ARGV[3] ~= '', ARGV[4], ARGV[5], ARGV[6]
local keys = {unpack(ARGV, 10)}
if is_known(keys) then
  return {'duplicate', 0, false}
end
remember(keys, at)

local ours = redis.call('HGET', META, 'ours')
local seq = redis.call('HINCRBY', META, 'mail_seq', 1)
if not (addressed or ours) then
  redis.call('HSET', ASIDE, seq, message)
  redis.call('ZADD', PARKED, at, seq .. parked)
  return {'parked', seq, false}
end

make_ours(parked, graph)
redis.call('HSET', MAILBOX, seq, message)
redis.call('ZADD', RECENT, server_time(), thread)
return {'new', seq, wake_for(ARGV[7], ARGV[8], thread, ARGV[9])}
