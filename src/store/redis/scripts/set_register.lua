-- Sets a register, if it was set so often. ARGV: how often, what it is to hold. Its key is the last one.
local register = KEYS[#KEYS]
local revision = tonumber(redis.call('HGET', register, 'revision') or 0)
if revision ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', register, 'revision', revision + 1, 'value', ARGV[2])
return 1
