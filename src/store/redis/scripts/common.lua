-- Functions of several scripts. The names of the keys are defined before them (keys.rs), and a script contains only the
-- functions that it uses (scripts.rs): they are separated by blank lines, and each uses only those before it.
-- Records are strings serialized by the caller and are stored unchanged: cjson would turn an empty list into an object.
-- cjson is used only to read and write the small tables of this file.

-- Returns the server's clock, in microseconds.
local function server_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Tells the processes that something is to be done in this partition, now or later. A server may forbid its users to
-- publish, and a hint may be lost; the processes then find it out by looking.
local hinted = false
local function hint()
  if not hinted then
    hinted = true
    redis.pcall('PUBLISH', HINTS, string.match(KEYS[1], '{p(%d+)}'))
  end
end

-- Returns true if a delivery with one of these deduplication keys was stored before.
local function is_known(keys)
  for _, key in ipairs(keys) do
    if redis.call('ZSCORE', DEDUP, key) then
      return true
    end
  end
  return false
end

local function remember(keys, at)
  for _, key in ipairs(keys) do
    redis.call('ZADD', DEDUP, at, key)
  end
end

-- Makes the thread ready, unless it already is. A leased thread is in the set already, with the end of its lease.
local function wake(thread, at)
  if redis.call('ZADD', READY, 'NX', at, thread) == 1 then
    hint()
  end
end

-- Makes the thread one of the bot's, and moves its parked messages to its mailbox. `parked` is the text after the
-- position in PARKED. A new thread belongs to `graph` or, if there is none, to the chat graph.
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

-- Returns true if the lease is the current one of the thread.
local function holds(worker, fence)
  local stored = redis.call('HMGET', META, 'worker', 'fence')
  return stored[1] == worker and stored[2] == fence
end

-- Returns the messages after a position, in order, as a list of {position, message}.
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

-- Returns the saved checkpoint: its version, the last full checkpoint or false, and the steps after that one.
local function saved()
  local meta = redis.call('HMGET', META, 'version', 'snapshot_version')
  local version, snapshot_version = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
  local snapshot = meta[2] and redis.call('GET', SNAPSHOT)
  local steps = {}
  if version > snapshot_version then
    steps = redis.call('LRANGE', STEPS, snapshot_version, -1)
  end
  return version, snapshot, steps
end

-- Leases a thread for `ttl` microseconds if it is ready. `now` is people's clock, in milliseconds. Returns all that is
-- needed to continue it, or false.
-- A wait before a retry ends by the people's clock; everything else uses the server's clock.
local function acquire(thread, worker, ttl, now)
  local server_now = server_time()
  local ready = redis.call('ZSCORE', READY, thread)
  local waiting = redis.call('ZSCORE', WAITING, thread)
  if not (ready and tonumber(ready) <= server_now) and not (waiting and tonumber(waiting) <= now) then
    return false
  end
  redis.call('ZADD', READY, server_now + ttl, thread)
  redis.call('ZREM', WAITING, thread)
  local fence = redis.call('HINCRBY', META, 'fence', 1)
  redis.call('HSET', META, 'worker', worker)
  local version, snapshot, steps = saved()
  local meta = redis.call('HMGET', META, 'graph', 'audit_seq', 'audit_hash')
  return {fence, version, snapshot, steps, messages_after(0), meta}
end

-- Makes the thread ready and leases it, for `worker` or, if there is none, for whoever comes. Returns as `acquire`.
local function wake_for(worker, ttl, thread, now)
  if worker == '' then
    wake(thread, server_time())
    return false
  end
  redis.call('ZADD', READY, 'NX', server_time(), thread)
  return acquire(thread, worker, tonumber(ttl), tonumber(now))
end

-- Puts an entry into the inbox. It may be claimed from `claimable` on; if that is later than `arrived`, it counts as
-- claimed until then. Returns its position.
local function put_in_inbox(entry, arrived, claimable)
  local seq = redis.call('INCR', INBOX_SEQ)
  if claimable > arrived then
    redis.call('HSET', INBOX_ATTEMPTS, seq, 1)
  else
    hint()
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

-- Returns the outbox of the thread, in order. A message that was ever claimed counts as tried, since it may exist in
-- Slack.
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

-- Returns the messages that may be sent next, in order of preference: the next regular message, then those with many
-- failed attempts, the one that has waited longest first. No message is sent before one with many failed attempts for
-- the same slot.
-- The next regular message is the oldest one that is not a progress message, or else the oldest progress message.
-- However, an older progress message of the same slot is sent first: it was tried, may exist in Slack, and must not
-- overwrite the message that follows it.
local function to_send(entries)
  local first, first_progress
  local progress, often, held_up = {}, {}, {}
  for _, entry in ipairs(entries) do
    local slot = entry.slot or ''
    if held_up[slot] then
      -- It waits for the message with many failed attempts.
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

-- Adds a message to the outbox, and drops or replaces those that it makes obsolete. A message with `remove` deletes its
-- slot's message.
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
    if waits then -- the waiting entry keeps its position and its nonce, and its time if it was put off
      waits.remove = outgoing.remove
      if waits.not_before == waits.since then
        waits.not_before = math.min(waits.since, outgoing.not_before)
        waits.since = waits.not_before
      end
      outgoing = waits
    end
  end
  outgoing.seq = outgoing.seq or redis.call('HINCRBY', META, 'outbox_seq', 1)
  outgoing.attempts = outgoing.attempts or 0
  outgoing.since = outgoing.since or outgoing.not_before
  write_outgoing(outgoing)
  redis.call('HSET', OUTBOX_BODIES, outgoing.seq, body)
end

-- Updates the thread's entry in OUTBOX: the time of its next message, or none if it has no message or one is in flight.
local function index_outbox(thread)
  local at
  for _, entry in ipairs(to_send(read_outbox())) do
    at = math.min(at or entry.not_before, entry.not_before)
  end
  if at and not redis.call('HGET', META, 'in_flight') then
    redis.call('ZADD', OUTBOX, at, thread)
    hint()
  else
    redis.call('ZREM', OUTBOX, thread)
  end
end

-- Notes that a message is no longer in flight: the next ones of the thread may be claimed once none is.
local function land(thread, seq)
  local in_flight = {}
  for other in string.gmatch(redis.call('HGET', META, 'in_flight') or '', '%d+') do
    if other ~= seq then
      in_flight[#in_flight + 1] = other
    end
  end
  if #in_flight > 0 then
    redis.call('HSET', META, 'in_flight', table.concat(in_flight, ' '))
  elseif redis.call('HDEL', META, 'in_flight') == 1 then
    redis.call('ZREM', SENDING, thread)
  end
end

-- Returns those of the messages that may be sent one after another, at most `most`: the next one and, if none was tried
-- before, those that follow it. None of these reports progress.
local function next_messages(entries, now, most)
  local first, tried
  for _, entry in ipairs(to_send(entries)) do
    first = first or (entry.not_before <= now and entry)
  end
  local messages = {first or nil}
  local slots = {[first and first.slot or ''] = true} -- of one slot, a message may edit the one before
  for _, entry in ipairs(entries) do
    tried = tried or entry.attempts > 0
    if first and entry.seq > first.seq and not tried and not first.progress then
      local slot = entry.slot or ''
      if #messages == most or entry.progress or entry.not_before > now or (slot ~= '' and slots[slot]) then
        break
      end
      slots[slot] = true
      messages[#messages + 1] = entry
    end
  end
  return messages
end

-- Claims the next messages of a thread, at most `most`, for `ttl` microseconds. `now` is people's clock, in milliseconds.
local function claim_next(thread, ttl, now, most)
  local server_now = server_time()
  local claim_ends = redis.call('ZSCORE', SENDING, thread)
  if claim_ends and tonumber(claim_ends) > server_now then
    return {}
  end
  if claim_ends then -- the claim has expired, and it is unknown whether the messages arrived
    redis.call('ZREM', SENDING, thread)
    redis.call('HDEL', META, 'in_flight')
  end
  local claimed, in_flight = {}, {}
  for i, entry in ipairs(next_messages(read_outbox(), now, most)) do
    local attempts, slot = entry.attempts, entry.slot or false
    entry.attempts = attempts + 1
    write_outgoing(entry)
    in_flight[i] = entry.seq
    claimed[i] = {
      entry.seq, attempts, slot and redis.call('HGET', POSTED, slot),
      {slot, entry.nonce, entry.progress and 1 or 0, entry.not_before, redis.call('HGET', OUTBOX_BODIES, entry.seq)},
    }
  end
  if #claimed == 0 then
    index_outbox(thread)
    return claimed
  end
  redis.call('HSET', META, 'in_flight', table.concat(in_flight, ' '))
  redis.call('ZADD', SENDING, server_now + ttl, thread)
  redis.call('ZREM', OUTBOX, thread)
  return claimed
end
