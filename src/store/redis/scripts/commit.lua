-- Writes changes, with or without a lease. ARGV: plan, step or '', full checkpoint or ''.
-- All checks that can refuse the write come first, then everything that writes.
local plan, step, snapshot = cjson.decode(ARGV[1]), ARGV[2], ARGV[3]
local thread = plan.thread

local first_answer = redis.call('GET', COMMIT)
if first_answer then
  return {'ok', tonumber(first_answer)}
end

local version = tonumber(redis.call('HGET', META, 'version') or 0)
if plan.lease then
  if not holds(plan.lease.worker, plan.lease.fence) then
    return {'fenced'}
  end
  if version ~= plan.lease.expected then
    return {'conflict', version}
  end
end

local moved = {}
for _, action in ipairs(plan.actions) do
  local raw = redis.call('HGET', ACTION_META, action.id)
  local stored = moved[action.id] or (raw and cjson.decode(raw)) or nil
  local legal = (stored == nil and action.expected == nil)
  if stored and action.expected == stored.revision then
    for _, status in ipairs(action.from) do
      legal = legal or status == stored.status
    end
  end
  if not legal then
    return {'moved', action.id, redis.call('HGET', ACTIONS, action.id)}
  end
  moved[action.id] = {revision = action.revision, status = action.status, index = action.index}
end

if plan.audit then
  local head = redis.call('HMGET', META, 'audit_seq', 'audit_hash')
  local seq, hash = tonumber(head[1] or 0), head[2] or ''
  if seq ~= plan.audit.after_seq or hash ~= plan.audit.after_hash then
    return {'chain', seq, hash}
  end
end

-- From here on nothing may fail, since the writes of a script are not rolled back. (The server detects a full memory or
-- disk at the first write, never later.)
local server_now = server_time()

if step ~= '' then
  version = version + 1
  redis.call('RPUSH', STEPS, step)
  redis.call('HSET', META, 'version', version)
end
if snapshot ~= '' then
  redis.call('SET', SNAPSHOT, snapshot)
  redis.call('HSET', META, 'snapshot_version', version)
end

for _, seq in ipairs(plan.acks) do
  redis.call('HDEL', MAILBOX, seq)
end
for _, seq in ipairs(plan.inbox_acks) do
  take_from_inbox(seq)
end
for _, message in ipairs(plan.messages) do
  redis.call('HSET', MAILBOX, redis.call('HINCRBY', META, 'mail_seq', 1), message)
end
if #plan.messages > 0 then
  make_ours(plan.parked)
  wake(thread, server_now)
end

for _, timer in ipairs(plan.timers) do
  if timer.entry then
    redis.call('ZADD', TIMERS, timer.due, timer.name)
    redis.call('HSET', TIMER_ENTRIES, timer.name, timer.entry)
  else
    redis.call('ZREM', TIMERS, timer.name)
    redis.call('HDEL', TIMER_ENTRIES, timer.name)
  end
end

for _, action in ipairs(plan.actions) do
  local raw = redis.call('HGET', ACTION_META, action.id)
  if raw then
    local stored = cjson.decode(raw)
    redis.call('ZREM', ACTION_INDEX, stored.status .. ' ' .. stored.index)
    for _, label in ipairs(stored.labels or {}) do
      redis.call('ZREM', ACTION_LABELS, label .. ' ' .. stored.status .. ' ' .. stored.index)
    end
  end
  redis.call('ZADD', ACTION_INDEX, 0, action.status .. ' ' .. action.index)
  for _, label in ipairs(action.labels) do
    redis.call('ZADD', ACTION_LABELS, 0, label .. ' ' .. action.status .. ' ' .. action.index)
  end
  redis.call('HSET', ACTION_META, action.id, cjson.encode(
    {revision = action.revision, status = action.status, index = action.index, labels = action.labels}))
  redis.call('HSET', ACTIONS, action.id, action.record)
  redis.call('HSET', APPROVALS, action.approval, action.index)
end

if plan.audit then
  for _, entry in ipairs(plan.audit.entries) do
    redis.call('RPUSH', AUDIT, entry)
  end
  redis.call('HSET', META, 'audit_seq', plan.audit.seq, 'audit_hash', plan.audit.hash)
end

for _, outgoing in ipairs(plan.outbox) do
  put_in_outbox(thread, outgoing)
end
if #plan.outbox > 0 then
  index_outbox(thread)
end

if redis.call('HEXISTS', META, 'ours') == 1 then
  redis.call('ZADD', RECENT, server_now, thread)
end
if plan.lease and plan.lease.release then
  redis.call('HDEL', META, 'worker')
  redis.call('ZREM', READY, thread)
  if plan.lease.wait_until then
    redis.call('ZADD', WAITING, plan.lease.wait_until, thread)
  elseif redis.call('HLEN', MAILBOX) > 0 then
    wake(thread, server_now)
  end
end
redis.call('SET', COMMIT, version, 'EX', plan.remember_s)
return {'ok', version}
