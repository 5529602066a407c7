-- Looks for the same members in several sorted sets, which are only on one server if that has all partitions. The first keys
-- are the sets, and the last one is a register. ARGV: maximum number, and for each kind of member the end and the first.
-- Returns the register, or false if it cannot be read, and the last members of each kind in each set.
local found = {}
for set = 1, #KEYS - 1 do
  for i = 2, #ARGV, 2 do
    for _, member in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[set], ARGV[i], ARGV[i + 1], 'LIMIT', 0, ARGV[1])) do
      found[#found + 1] = member
    end
  end
end
local register = redis.pcall('HMGET', KEYS[#KEYS], 'revision', 'value')
return {not register.err and register, found}
