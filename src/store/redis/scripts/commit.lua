-- Writes changes, with or without a lease. ARGV: the values named below, in this order, where '' stands for none and a
-- list begins with its length. All checks that can refuse the write come first, then everything that writes.
local taken = 0
local function take(n)
  taken = taken + n
  return unpack(ARGV, taken - n + 1, taken)
end
local function take_list(width)
  local list = {}
  for i = 1, tonumber(take(1)) do
    list[i] = {take(width)}
  end
  return list
end

local COMMIT = KEYS[#KEYS]
local thread, parked, snapshot, remember_s = take(4)
local claim_ttl, claim_now, most_claimed = take(3)
local delivered_at, next_worker, next_ttl, next_now = take(4)
local dedup = {}
for i, key in ipairs(take_list(1)) do
  dedup[i] = key[1]
end

-- Returns the answer to a write, with the messages that are claimed if the caller sends them, and with the thread if the
-- caller leases it.
local function written(version, acquired)
  local claimed = {}
  if claim_ttl ~= '' then
    claimed = claim_next(thread, tonumber(claim_ttl), tonumber(claim_now), tonumber(most_claimed))
  end
  return {'ok', version, claimed, acquired}
end

local first_answer = redis.call('GET', COMMIT)
if first_answer then
  return written(tonumber(first_answer), false)
end
if is_known(dedup) then
  return {'repeat'}
end

local steps = take_list(1)
local worker, fence, expected_version, release, wait_until = take(5)
local meta = redis.call('HMGET', META, 'version', 'worker', 'fence', 'ours', 'audit_seq', 'audit_hash')
local version = tonumber(meta[1] or 0)
if worker ~= '' then
  if meta[2] ~= worker or meta[3] ~= fence then
    return {'fenced'}
  end
  if version ~= tonumber(expected_version) then
    return {'conflict', version}
  end
end

local actions, metas = {}, {}
for i = 1, tonumber(take(1)) do
  local id, expected, from, action_meta, status, index, approval, record = take(8)
  local labels = take_list(1)
  local raw = metas[id] or redis.call('HGET', ACTION_META, id)
  local stored = raw and cjson.decode(raw)
  local legal
  if stored then
    legal = tonumber(expected) == stored.revision and string.find(from, ' ' .. stored.status .. ' ', 1, true)
  else
    legal = expected == ''
  end
  if not legal then
    return {'moved', id, redis.call('HGET', ACTIONS, id)}
  end
  metas[id] = action_meta
  actions[i] = {
    id = id, stored = stored, meta = action_meta, status = status, index = index, approval = approval,
    record = record, labels = labels,
  }
end

local after_seq, after_hash, audit_seq, audit_hash = take(4)
local audit = take_list(1)
if #audit > 0 then
  local seq, hash = meta[5] or '0', meta[6] or ''
  if seq ~= after_seq or hash ~= after_hash then
    return {'chain', tonumber(seq), hash}
  end
end

-- From here on nothing may fail, since the writes of a script are not rolled back. (The server detects a full memory or
-- disk at the first write, never later.)
local server_now = server_time()
local is_ours = meta[4]
remember(dedup, delivered_at)

for _, step in ipairs(steps) do
  version = version + 1
  redis.call('RPUSH', STEPS, step[1])
end
if #steps > 0 then
  redis.call('HSET', META, 'version', version)
end
if snapshot ~= '' then
  redis.call('SET', SNAPSHOT, snapshot)
  redis.call('HSET', META, 'snapshot_version', version)
end

for _, ack in ipairs(take_list(1)) do
  redis.call('HDEL', MAILBOX, ack[1])
end
for _, ack in ipairs(take_list(1)) do
  take_from_inbox(ack[1])
end
local messages = take_list(1)
for _, message in ipairs(messages) do
  redis.call('HSET', MAILBOX, redis.call('HINCRBY', META, 'mail_seq', 1), message[1])
end
if #messages > 0 then
  make_ours(parked)
  is_ours = true
  if next_worker == '' then
    wake(thread, server_now)
  end
end

for _, timer in ipairs(take_list(3)) do
  local name, due, entry = unpack(timer)
  if entry ~= '' then
    redis.call('ZADD', TIMERS, due, name)
    redis.call('HSET', TIMER_ENTRIES, name, entry)
    hint()
  else
    redis.call('ZREM', TIMERS, name)
    redis.call('HDEL', TIMER_ENTRIES, name)
  end
end

for _, action in ipairs(actions) do
  local stored = action.stored
  if stored then
    redis.call('ZREM', ACTION_INDEX, stored.status .. ' ' .. stored.index)
    for _, label in ipairs(stored.labels or {}) do
      redis.call('ZREM', ACTION_LABELS, label .. ' ' .. stored.status .. ' ' .. stored.index)
    end
  end
  redis.call('ZADD', ACTION_INDEX, 0, action.status .. ' ' .. action.index)
  for _, label in ipairs(action.labels) do
    redis.call('ZADD', ACTION_LABELS, 0, label[1] .. ' ' .. action.status .. ' ' .. action.index)
  end
  redis.call('HSET', ACTION_META, action.id, action.meta)
  redis.call('HSET', ACTIONS, action.id, action.record)
  redis.call('HSET', APPROVALS, action.approval, action.index)
end

for _, entry in ipairs(audit) do
  redis.call('RPUSH', AUDIT, entry[1])
end
if #audit > 0 then
  redis.call('HSET', META, 'audit_seq', audit_seq, 'audit_hash', audit_hash)
end

local outbox = take_list(6)
for _, outgoing in ipairs(outbox) do
  local slot, nonce, progress, remove, not_before, body = unpack(outgoing)
  put_in_outbox(thread, {
    slot = slot ~= '' and slot or nil, nonce = nonce, progress = progress ~= '', remove = remove ~= '',
    not_before = tonumber(not_before), body = body,
  })
end
if #outbox > 0 and claim_ttl == '' then
  index_outbox(thread)
end

if is_ours then
  redis.call('ZADD', RECENT, server_now, thread)
end
if release ~= '' then
  redis.call('HDEL', META, 'worker')
  redis.call('ZREM', READY, thread)
  if wait_until ~= '' then
    redis.call('ZADD', WAITING, wait_until, thread)
    hint()
  elseif redis.call('HLEN', MAILBOX) > 0 then
    wake(thread, server_now)
  end
end
redis.call('SET', COMMIT, version, 'EX', remember_s)
return written(version, next_worker ~= '' and wake_for(next_worker, next_ttl, thread, next_now))
