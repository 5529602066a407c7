-- Returns the last members of sorted sets that lie in each of several ranges, and after them a register, if there is one. The
-- last keys are the sets and the register. ARGV: the number of sets, that of registers, the most members of each set, the
-- bounds of each range from its end.
local sets, registers = tonumber(ARGV[1]), tonumber(ARGV[2])
local before = #KEYS - sets - registers
local found = {}
for bounds = 4, #ARGV, 2 do
  local members = {}
  for set = before + 1, before + sets do
    local last = redis.call('ZREVRANGEBYLEX', KEYS[set], ARGV[bounds], ARGV[bounds + 1], 'LIMIT', 0, ARGV[3])
    for _, member in ipairs(last) do
      members[#members + 1] = member
    end
  end
  found[#found + 1] = members
end
if registers > 0 then
  found[#found + 1] = redis.call('HMGET', KEYS[#KEYS], 'revision', 'value')
end
return found
