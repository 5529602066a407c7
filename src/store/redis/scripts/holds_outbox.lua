-- Returns 1 if a claim is still valid. ARGV: thread, position, number of earlier claims.
local raw = redis.call('HGET', OUTBOX_META, ARGV[2])
local ends = redis.call('ZSCORE', SENDING, ARGV[1])
local in_flight = ' ' .. (redis.call('HGET', META, 'in_flight') or '') .. ' '
if not raw or not ends or tonumber(ends) <= server_time() or not string.find(in_flight, ' ' .. ARGV[2] .. ' ', 1, true) then
  return 0
end
return cjson.decode(raw).attempts == tonumber(ARGV[3]) + 1 and 1 or 0
