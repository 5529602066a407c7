-- Returns the last members of sorted sets that lie in each of several ranges, and a register after them if there is a key
-- for it after those of the sets. ARGV: the number of sets, the most members of each, the bounds of each range from its end.
local sets = tonumber(ARGV[1])
local found = {}
for bounds = 3, #ARGV, 2 do
  local members = {}
  for set = 1, sets do
    local last = redis.call('ZREVRANGEBYLEX', KEYS[set], ARGV[bounds], ARGV[bounds + 1], 'LIMIT', 0, ARGV[2])
    for _, member in ipairs(last) do
      members[#members + 1] = member
    end
  end
  found[#found + 1] = members
end
if #KEYS > sets then
  found[#found + 1] = redis.call('HMGET', KEYS[sets + 1], 'revision', 'value')
end
return found
