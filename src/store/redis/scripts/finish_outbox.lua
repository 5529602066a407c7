-- Records what became of a message. ARGV: thread, position, what ('delivered', 'retry', 'deferred', 'dropped'),
-- where it is ('' if that is not known) or when to try again.
local thread, seq, what, detail = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local raw = redis.call('HGET', OUTBOX_META, seq)
if not raw then -- recorded before, by whoever had the claim after us
  return 0
end

-- Whether something newer was said that fills a slot.
local function slot_filled_after(seq)
  for _, later in ipairs(read_outbox()) do
    if later.seq > tonumber(seq) and later.slot then
      return true
    end
  end
  return false
end

local entry = cjson.decode(raw)
if what == 'retry' then
  entry.seq = seq
  entry.not_before = tonumber(detail)
  write_outgoing(entry)
elseif what == 'deferred' then
  entry.seq = seq
  entry.not_before = tonumber(detail)
  entry.attempts = math.max(entry.attempts - 1, 0)
  write_outgoing(entry)
  if entry.progress and entry.attempts == 0 and slot_filled_after(seq) then
    remove_outgoing(seq)
  end
else
  remove_outgoing(seq)
end
if what == 'delivered' and entry.slot then
  if entry.remove then
    redis.call('HDEL', POSTED, entry.slot)
  elseif detail ~= '' then
    redis.call('HSET', POSTED, entry.slot, detail)
  end
end
if redis.call('HGET', META, 'in_flight') == seq then
  redis.call('HDEL', META, 'in_flight')
  redis.call('ZREM', SENDING, thread)
end
index_outbox(thread)
return 1
