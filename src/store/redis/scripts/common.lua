-- What all scripts share. The keys got their names in front of this (keys.rs).
-- Records are strings made elsewhere and go in and out as they are: cjson would turn an empty list into an object.
-- It reads plans, and it reads and writes the small tables of this file.

-- The server's clock, in microseconds.
local function server_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Returns true if a delivery with one of the plan's keys came before; if none did, its keys are remembered.
local function came_before(plan)
  for _, key in ipairs(plan.dedup) do
    if redis.call('ZSCORE', DEDUP, key) then
      return true
    end
  end
  for _, key in ipairs(plan.dedup) do
    redis.call('ZADD', DEDUP, plan.at, key)
  end
  return false
end

-- Makes the thread ready, unless it is; a leased thread is there already, with the end of its lease.
local function wake(thread, at)
  redis.call('ZADD', READY, 'NX', at, thread)
end

-- Makes the thread one of ours, and its parked message unread mail; `parked` stands behind a position in PARKED.
-- A new one belongs to `graph`; where none is named, to the chat.
local function make_ours(parked, graph)
  if redis.call('HSETNX', META, 'ours', 1) == 0 then
    return
  end
  if graph then
    redis.call('HSET', META, 'graph', graph)
  end
  local raw = redis.call('HGETALL', ASIDE)
  for i = 1, #raw, 2 do
    redis.call('HSET', MAILBOX, raw[i], raw[i + 1])
    redis.call('ZREM', PARKED, raw[i] .. parked)
  end
  redis.call('DEL', ASIDE)
end

-- Whether the lease is that of the thread.
local function holds(worker, fence)
  local stored = redis.call('HMGET', META, 'worker', 'fence')
  return stored[1] == worker and stored[2] == fence
end

-- The messages after a position, in order: a list of {position, message}.
local function messages_after(after)
  local found = {}
  local raw = redis.call('HGETALL', MAILBOX)
  for i = 1, #raw, 2 do
    local seq = tonumber(raw[i])
    if seq > after then
      found[#found + 1] = {seq, raw[i + 1]}
    end
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  return found
end

-- The saved checkpoint: version, whole checkpoint or false, steps after it.
local function saved()
  local meta = redis.call('HMGET', META, 'version', 'snapshot_version')
  local version, whole = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
  local snapshot = meta[2] and redis.call('GET', SNAPSHOT)
  local steps = {}
  if version > whole then
    steps = redis.call('LRANGE', STEPS, whole, -1)
  end
  return version, snapshot, steps
end

-- Puts an entry in the inbox, claimable from a moment on; claimed until then if that is later. Returns its position.
local function put_in_inbox(entry, arrived, claimable)
  local seq = redis.call('INCR', INBOX_SEQ)
  if claimable > arrived then
    redis.call('HSET', INBOX_ATTEMPTS, seq, 1)
  end
  redis.call('ZADD', INBOX, claimable, seq)
  redis.call('HSET', INBOX_ENTRIES, seq, string.format('%.0f ', arrived) .. entry)
  return seq
end

local function take_from_inbox(seq)
  redis.call('ZREM', INBOX, seq)
  redis.call('HDEL', INBOX_ENTRIES, seq)
  redis.call('HDEL', INBOX_ATTEMPTS, seq)
end

-- The outbox of the thread, in order. What was ever claimed counts as tried: its message may be there.
local function read_outbox()
  local entries = {}
  local raw = redis.call('HGETALL', OUTBOX_META)
  for i = 1, #raw, 2 do
    local entry = cjson.decode(raw[i + 1])
    entry.seq = tonumber(raw[i])
    entries[#entries + 1] = entry
  end
  table.sort(entries, function(a, b) return a.seq < b.seq end)
  return entries
end

local function write_outgoing(entry)
  local seq = entry.seq
  entry.seq = nil
  redis.call('HSET', OUTBOX_META, seq, cjson.encode(entry))
  entry.seq = seq
end

local function remove_outgoing(seq)
  redis.call('HDEL', OUTBOX_META, seq)
  redis.call('HDEL', OUTBOX_BODIES, seq)
end

-- What may be said next, in order of preference: one of those that go in order, then those that were tried often, whoever
-- waits longest first. Nothing goes before what was tried often for the same slot.
-- In order goes the oldest that is not progress, or else the oldest progress. Older progress of the same slot goes in
-- front: it was tried, may be there, and must not be put over what comes after it.
local function to_send(entries)
  local first, first_progress
  local progress, often, held_up = {}, {}, {}
  for _, entry in ipairs(entries) do
    local slot = entry.slot or ''
    if held_up[slot] then
      -- It waits for the one before it.
    elseif entry.attempts >= TRIED_OFTEN then
      often[#often + 1] = entry
      held_up[slot] = slot ~= ''
    elseif entry.progress then
      first_progress = first_progress or entry
      progress[slot] = progress[slot] or entry
    else
      first = first or (slot ~= '' and progress[slot] or entry)
    end
  end
  table.sort(often, function(a, b)
    if a.not_before ~= b.not_before then
      return a.not_before < b.not_before
    end
    return a.seq < b.seq
  end)
  first = first or first_progress
  if first then
    table.insert(often, 1, first)
  end
  return often
end

-- The rules of the outbox; `Remove` is the message that takes a slot away.
local function put_in_outbox(thread, outgoing)
  local entries = read_outbox()
  local slot, body = outgoing.slot, outgoing.body
  outgoing.body = nil
  if slot then
    redis.call('HDEL', DEAD_LETTERS, thread .. ' slot:' .. slot)
    local waits, tried
    for _, entry in ipairs(entries) do
      local untried = entry.attempts == 0
      if untried and entry.progress then
        remove_outgoing(entry.seq)
      elseif entry.slot == slot and untried and waits then -- one was put back while the other was written
        remove_outgoing(entry.seq)
      elseif entry.slot == slot and untried then
        waits = entry
      elseif entry.slot == slot then
        tried = true
      end
    end
    if outgoing.remove and not tried and redis.call('HEXISTS', POSTED, slot) == 0 then
      if waits then
        remove_outgoing(waits.seq)
      end
      return
    end
    if waits then -- it keeps its place, its time and its nonce
      waits.remove = outgoing.remove
      outgoing = waits
    end
  end
  outgoing.seq = outgoing.seq or redis.call('HINCRBY', META, 'outbox_seq', 1)
  outgoing.attempts = outgoing.attempts or 0
  outgoing.since = outgoing.since or outgoing.not_before
  write_outgoing(outgoing)
  redis.call('HSET', OUTBOX_BODIES, outgoing.seq, body)
end

-- Enters the thread where claimers look, unless something is in flight.
local function index_outbox(thread)
  local at
  for _, entry in ipairs(to_send(read_outbox())) do
    at = math.min(at or entry.not_before, entry.not_before)
  end
  if at and not redis.call('HGET', META, 'in_flight') then
    redis.call('ZADD', OUTBOX, at, thread)
  else
    redis.call('ZREM', OUTBOX, thread)
  end
end
