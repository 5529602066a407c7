-- Claims interactions, oldest first. ARGV: ttl in microseconds, maximum number.
local now = server_time()
local due = redis.call('ZRANGEBYSCORE', INBOX, '-inf', now)
for i, seq in ipairs(due) do
  due[i] = tonumber(seq)
end
table.sort(due)
local claimed = {}
for i = 1, math.min(#due, tonumber(ARGV[2])) do
  redis.call('ZADD', INBOX, now + tonumber(ARGV[1]), due[i])
  local attempts = redis.call('HINCRBY', INBOX_ATTEMPTS, due[i], 1)
  claimed[i] = {due[i], attempts - 1, redis.call('HGET', INBOX_ENTRIES, due[i])}
end
return claimed
