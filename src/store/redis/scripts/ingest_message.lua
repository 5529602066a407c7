-- Stores a message for a thread. ARGV: thread, time in milliseconds (people), 1 if the bot is addressed or '', message,
-- the text after the position in PARKED, graph of a new thread, deduplication keys.
local thread, at, addressed, message, parked, graph = ARGV[1], ARGV[2], ARGV[3] ~= '', ARGV[4], ARGV[5], ARGV[6]
if is_repeat(at, 7) then
  return {'duplicate', 0}
end

local ours = redis.call('HGET', META, 'ours')
local seq = redis.call('HINCRBY', META, 'mail_seq', 1)
if not (addressed or ours) then
  redis.call('HSET', ASIDE, seq, message)
  redis.call('ZADD', PARKED, at, seq .. parked)
  return {'parked', seq}
end

make_ours(parked, graph)
redis.call('HSET', MAILBOX, seq, message)
local now = server_time()
redis.call('ZADD', RECENT, now, thread)
wake(thread, now)
return {'new', seq}
