-- Records the results of sending messages of a thread. ARGV: thread; ttl in microseconds and now in milliseconds (people)
-- if the next message is to be claimed, or ''; and for each message its position, number of earlier claims, result
-- ('delivered', 'retry', 'deferred', 'postponed', 'dropped', 'failed'), detail, reason of a failure. The detail is the
-- place of a delivered message ('' if unknown), the time of the next attempt, or the time of the failure. Returns whether
-- each claim was still valid (0 if the message was claimed again in the meantime or was removed), and the claimed message.
local thread = ARGV[1]

-- Returns true if a message after this position fills this slot, or any slot if none is given.
local function filled_after(seq, slot)
  for _, later in ipairs(read_outbox()) do
    if later.seq > tonumber(seq) and later.slot and (not slot or later.slot == slot) then
      return true
    end
  end
  return false
end

-- Records one result, and returns whether the claim was still valid.
local function finish(seq, before, what, detail, reason)
  local raw = redis.call('HGET', OUTBOX_META, seq)
  if not raw then -- the holder of a later claim has removed it
    return false
  end
  local entry = cjson.decode(raw)
  local is_ours = entry.attempts == before + 1
  if not is_ours and what ~= 'delivered' then
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
    if entry.progress and entry.attempts == 0 and filled_after(seq) then
      remove_outgoing(seq)
    end
  else
    if what == 'failed' and not (entry.slot and filled_after(seq, entry.slot)) then
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
  land(thread, seq)
  return is_ours
end

local ours = {}
for i = 4, #ARGV, 5 do
  local seq, before, what, detail, reason = unpack(ARGV, i, i + 4)
  ours[#ours + 1] = finish(seq, tonumber(before), what, detail, reason) and 1 or 0
end
index_outbox(thread)
return {ours, ARGV[2] ~= '' and claim_next(thread, tonumber(ARGV[2]), tonumber(ARGV[3]), 1) or {}}
