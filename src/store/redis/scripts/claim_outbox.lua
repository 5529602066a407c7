-- Claims the next message of a thread. ARGV: thread, ttl in microseconds, now in milliseconds (people).
local thread, ttl, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local server_now = server_time()
local claim_ends = redis.call('ZSCORE', SENDING, thread)
if claim_ends and tonumber(claim_ends) > server_now then
  return false
end

if claim_ends then -- the claim has expired, and it is unknown whether the message arrived
  redis.call('ZREM', SENDING, thread)
  redis.call('HDEL', META, 'in_flight')
end

local first
for _, entry in ipairs(to_send(read_outbox())) do
  first = first or (entry.not_before <= now and entry)
end
if not first then
  index_outbox(thread)
  return false
end
local attempts = first.attempts
first.attempts = attempts + 1
write_outgoing(first)
redis.call('HSET', META, 'in_flight', first.seq)
redis.call('ZADD', SENDING, server_now + ttl, thread)
redis.call('ZREM', OUTBOX, thread)
local slot = first.slot or false
local posted = slot and redis.call('HGET', POSTED, slot)
return {
  first.seq, attempts, posted,
  {slot, first.nonce, first.progress and 1 or 0, first.not_before, redis.call('HGET', OUTBOX_BODIES, first.seq)},
}
