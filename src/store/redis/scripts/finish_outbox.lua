-- Records the result of sending a message. ARGV: thread, position, number of earlier claims, result ('delivered',
-- 'retry', 'deferred', 'postponed', 'dropped', 'failed'), detail, reason of a failure. The detail is the place of a
-- delivered message ('' if unknown), the time of the next attempt, or the time of the failure. With two further arguments
-- (ttl in microseconds, now in milliseconds), the next message is claimed. Returns whether the claim was still valid (0
-- if the message was claimed again in the meantime or was removed), and the claimed message or false.
local thread, seq, before, what, detail, reason = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local function answer(is_ours)
  local next = ARGV[7] and claim_next(thread, tonumber(ARGV[7]), tonumber(ARGV[8]))
  return {is_ours and 1 or 0, next or false}
end

local raw = redis.call('HGET', OUTBOX_META, seq)
if not raw then -- the holder of a later claim has removed it
  return answer(false)
end
local entry = cjson.decode(raw)
local is_ours = entry.attempts == before + 1
if not is_ours and what ~= 'delivered' then
  return answer(false)
end

-- Returns true if a later message fills this slot, or any slot if none is given.
local function filled_after(slot)
  for _, later in ipairs(read_outbox()) do
    if later.seq > tonumber(seq) and later.slot and (not slot or later.slot == slot) then
      return true
    end
  end
  return false
end

if what == 'retry' then
  entry.seq = seq
  entry.not_before = tonumber(detail)
  write_outgoing(entry)
elseif what == 'postponed' then
  entry.seq = seq
  entry.not_before = tonumber(detail)
  entry.attempts = math.max(entry.attempts, TRIED_OFTEN)
  write_outgoing(entry)
elseif what == 'deferred' then
  entry.seq = seq
  entry.not_before = tonumber(detail)
  entry.attempts = math.max(entry.attempts - 1, 0)
  write_outgoing(entry)
  if entry.progress and entry.attempts == 0 and filled_after() then
    remove_outgoing(seq)
  end
else
  if what == 'failed' and not (entry.slot and filled_after(entry.slot)) then
    local name = entry.slot and 'slot:' .. entry.slot or 'seq:' .. seq
    redis.call('HSET', DEAD_LETTERS, thread .. ' ' .. name, cjson.encode({
      at = tonumber(detail), attempts = entry.attempts, reason = reason, slot = entry.slot, nonce = entry.nonce,
      progress = entry.progress, remove = entry.remove, not_before = entry.not_before,
      body = redis.call('HGET', OUTBOX_BODIES, seq),
    }))
  end
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
return answer(is_ours)
