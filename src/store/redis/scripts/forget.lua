-- Deletes the data of a finished thread. ARGV: plan, the checkpoint that remains or ''. Returns 1 if the thread is
-- finished; its data is then deleted, unless the plan only asks.
local plan, checkpoint = cjson.decode(ARGV[1]), ARGV[2]
local thread = plan.thread

local meta = redis.call('HMGET', META, 'ours', 'version', 'worker', 'forgotten')
local version = tonumber(meta[2] or 0)
local at = tonumber(redis.call('ZSCORE', RECENT, thread) or 0)
local busy = not meta[1] or meta[3] or version == 0 or tonumber(meta[4] or 0) == version
  or at == 0 or at >= plan.before
  or redis.call('ZSCORE', READY, thread) or redis.call('ZSCORE', WAITING, thread)
  or redis.call('HLEN', MAILBOX) > 0 or redis.call('HLEN', OUTBOX_META) > 0
if busy or (not plan.only_ask and version ~= plan.version) then
  return 0
end

for _, name in ipairs(redis.call('HKEYS', SET_ASIDE)) do
  if string.find(name, ' ' .. thread .. ' ', 1, true) then -- it is kept for a program that can read it
    return 0
  end
end
local actions = redis.call('HVALS', ACTION_META)
for _, raw in ipairs(actions) do
  local status = cjson.decode(raw).status
  for _, unfinished in ipairs(plan.unfinished) do
    if status == unfinished then
      return 0
    end
  end
end
if plan.only_ask then
  return 1
end

for _, name in ipairs(redis.call('HKEYS', DEAD_LETTERS)) do
  if string.sub(name, 1, #thread + 1) == thread .. ' ' then
    redis.call('HDEL', DEAD_LETTERS, name)
  end
end

if plan.files then
  for _, hash in ipairs(redis.call('SMEMBERS', FILES)) do
    redis.call('SADD', LET_GO, hash .. ' ' .. thread)
  end
  redis.call('DEL', FILES)
end

if checkpoint ~= '' then
  for i = 0, redis.call('LLEN', STEPS) - 1 do -- the step of version 1 must remain the first entry
    redis.call('LSET', STEPS, i, '')
  end
  redis.call('SET', SNAPSHOT, checkpoint)
  redis.call('HSET', META, 'snapshot_version', version, 'forgotten', version)
  for _, entry in ipairs(plan.record) do
    local stored = redis.call('LINDEX', AUDIT, entry.seq - 1)
    if stored and cjson.decode(stored).hash == entry.hash then
      redis.call('LSET', AUDIT, entry.seq - 1, entry.entry)
    end
  end
  return 1
end

for _, raw in ipairs(actions) do
  local action = cjson.decode(raw)
  redis.call('ZREM', ACTION_INDEX, action.status .. ' ' .. action.index)
  for _, label in ipairs(action.labels or {}) do
    redis.call('ZREM', ACTION_LABELS, label .. ' ' .. action.status .. ' ' .. action.index)
  end
end
for _, approval in ipairs(plan.approvals) do
  redis.call('HDEL', APPROVALS, approval)
end
redis.call('DEL', META, MAILBOX, ASIDE, STEPS, SNAPSHOT, AUDIT, ACTIONS, ACTION_META, OUTBOX_META, OUTBOX_BODIES, POSTED)
redis.call('ZREM', RECENT, thread)
redis.call('ZREM', OUTBOX, thread)
redis.call('ZREM', SENDING, thread)
return 1
