-- Stores a message for a thread. ARGV: plan {thread, dedup, at, addressed, message, parked, graph}.
local plan = cjson.decode(ARGV[1])
if is_repeat(plan) then
  return {'duplicate', 0}
end

local ours = redis.call('HGET', META, 'ours')
local seq = redis.call('HINCRBY', META, 'mail_seq', 1)
if not (plan.addressed or ours) then
  redis.call('HSET', ASIDE, seq, plan.message)
  redis.call('ZADD', PARKED, plan.at, seq .. plan.parked)
  return {'parked', seq}
end

make_ours(plan.parked, plan.graph)
redis.call('HSET', MAILBOX, seq, plan.message)
local now = server_time()
redis.call('ZADD', RECENT, now, plan.thread)
wake(plan.thread, now)
return {'new', seq}
