-- Sets a register, if it has been set exactly so many times. ARGV: that number, the new value. The last key is the
-- register.
local register = KEYS[#KEYS]
local revision = tonumber(redis.call('HGET', register, 'revision') or 0)
if revision ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', register, 'revision', revision + 1, 'value', ARGV[2])
return 1
