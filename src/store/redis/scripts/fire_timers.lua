-- Moves due timers to the inbox, the longest due first. ARGV: now in milliseconds (people), maximum number.
local due = redis.call('ZRANGEBYSCORE', TIMERS, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local now = server_time()
for _, timer in ipairs(due) do
  local entry = redis.call('HGET', TIMER_ENTRIES, timer)
  if entry then
    put_in_inbox(entry, now, now)
  end
  redis.call('ZREM', TIMERS, timer)
  redis.call('HDEL', TIMER_ENTRIES, timer)
end
return #due
