-- Claims what the thread says next. ARGV: thread, ttl in microseconds, now in milliseconds (people).
local thread, ttl, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local server_now = server_time()
local claim_ends = redis.call('ZSCORE', SENDING, thread)
if claim_ends and tonumber(claim_ends) > server_now then
  return false
end

local entries, in_flight = read_outbox()
for _, entry in ipairs(entries) do
  if entry.seq == in_flight then -- its claim is void: nobody knows whether it arrived
    entry.attempts = entry.attempts + 1
    write_outgoing(entry)
  end
end
redis.call('ZREM', SENDING, thread)
redis.call('HDEL', META, 'in_flight')

local first = first_to_send(entries)
if not first or first.not_before > now then
  index_outbox(thread)
  return false
end
redis.call('HSET', META, 'in_flight', first.seq)
redis.call('ZADD', SENDING, server_now + ttl, thread)
redis.call('ZREM', OUTBOX, thread)
local slot = first.slot or false
local posted = slot and redis.call('HGET', POSTED, slot)
return {
  first.seq, first.attempts, posted,
  {slot, first.nonce, first.progress and 1 or 0, first.not_before, redis.call('HGET', OUTBOX_BODIES, first.seq)},
}
